/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>

#include "alloc.h"
#include "collector/label/ksym.h"
#include "tree.h"

static const char listing[] = "0000000000000000 A fixed_percpu_data\n"
			      "ffffffff81000400 t late_local\n"
			      "ffffffff81000000 T _text\n"
			      "ffffffff81000100 D some_data\n"
			      "ffffffff81000200 W weak_one\n"
			      "ffffffff81000200 T strong_one\n"
			      "no line at all\n"
			      "ffffffffc0000000 t in_module\t[module]\n"
			      "ffffffff81000300 T last_without_end";

static int read_file(const char *path, struct ksyms **ret_ksyms)
{
	_cleanup_(fclosep) FILE *f = fopen(path, "re");

	return ksyms_new(f, ret_ksyms);
}

static struct ksyms *read_listing(const char *text)
{
	_cleanup_(tree_done) struct tree tree;
	struct ksyms *ksyms = NULL;

	tree_init(&tree);
	tree_write(&tree, "kallsyms", text);
	assert_ok(read_file(tree_path(&tree, "kallsyms"), &ksyms));
	return ksyms;
}

static void an_address_lies_in_the_function_that_begins_last_before_it(void **state)
{
	_cleanup_(ksyms_freep) struct ksyms *ksyms = read_listing(listing);

	assert_null(ksyms_find(ksyms, 0));
	assert_null(ksyms_find(ksyms, 0xffffffff80ffffff));
	assert_string_equal(ksyms_find(ksyms, 0xffffffff81000000), "_text");
	assert_string_equal(ksyms_find(ksyms, 0xffffffff810000ff), "_text");
	assert_string_equal(ksyms_find(ksyms, 0xffffffff81000300), "last_without_end");
	assert_string_equal(ksyms_find(ksyms, 0xffffffff81000401), "late_local");
	assert_string_equal(ksyms_find(ksyms, 0xffffffffc0000000), "in_module");
	assert_string_equal(ksyms_find(ksyms, 0xffffffffc0000fff), "in_module");
}

static void an_address_after_the_end_of_a_symbol_has_no_name(void **state)
{
	_cleanup_(ksyms_freep) struct ksyms *ksyms = read_listing(listing);

	/* data begins; the kernel's last symbol is done with its page; so is the last one of all */
	assert_null(ksyms_find(ksyms, 0xffffffff81000100));
	assert_null(ksyms_find(ksyms, 0xffffffff810001ff));
	assert_string_equal(ksyms_find(ksyms, 0xffffffff81000fff), "late_local");
	assert_null(ksyms_find(ksyms, 0xffffffff81001000));
	assert_null(ksyms_find(ksyms, 0xffffffffc0001000));
	assert_null(ksyms_find(ksyms, UINT64_MAX));
}

static void of_two_at_one_address_the_later_line_counts(void **state)
{
	_cleanup_(ksyms_freep) struct ksyms *ksyms = read_listing(listing);

	assert_string_equal(ksyms_find(ksyms, 0xffffffff81000200), "strong_one");
}

static void addresses_that_are_hidden_are_no_data(void **state)
{
	_cleanup_(tree_done) struct tree tree;
	struct ksyms *ksyms = NULL;

	tree_init(&tree);
	tree_write(&tree, "kallsyms", "0000000000000000 T _text\n0000000000000000 t other\n");
	assert_error(read_file(tree_path(&tree, "kallsyms"), &ksyms), ENODATA);
	assert_error(read_file(tree_path(&tree, "absent"), &ksyms), EBADF);
	assert_null(ksyms);
}

static void thousands_of_symbols_are_found(void **state)
{
	_cleanup_(tree_done) struct tree tree;
	_cleanup_(ksyms_freep) struct ksyms *ksyms = NULL;
	_cleanup_(fclosep) FILE *f = NULL;
	char name[32];

	tree_init(&tree);
	f = fopen(tree_path(&tree, "kallsyms"), "w");
	for (unsigned int i = 0; i < 5000; i++)
		fprintf(f, "ffffffff%08x T function_%u\n", 0x81000000u + 16 * ((i * 7919) % 5000), (i * 7919) % 5000);
	fflush(f);
	assert_ok(read_file(tree_path(&tree, "kallsyms"), &ksyms));
	for (unsigned int i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "function_%u", i);
		assert_string_equal(ksyms_find(ksyms, 0xffffffff81000000 + 16 * i + 15), name);
	}
}

static int read_once(const char *path)
{
	_cleanup_(ksyms_freep) struct ksyms *ksyms = NULL;

	return read_file(path, &ksyms);
}

static void a_failed_allocation_is_an_error_and_no_leak(void **state)
{
	_cleanup_(tree_done) struct tree tree;

	tree_init(&tree);
	tree_write(&tree, "kallsyms", listing);
	assert_survives_failing_allocations(read_once(tree_path(&tree, "kallsyms")), );
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_lies_in_the_function_that_begins_last_before_it),
		cmocka_unit_test(an_address_after_the_end_of_a_symbol_has_no_name),
		cmocka_unit_test(of_two_at_one_address_the_later_line_counts),
		cmocka_unit_test(addresses_that_are_hidden_are_no_data),
		cmocka_unit_test(thousands_of_symbols_are_found),
		cmocka_unit_test(a_failed_allocation_is_an_error_and_no_leak),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

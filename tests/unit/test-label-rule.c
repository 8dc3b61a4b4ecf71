/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdio.h>

#include "collector/descriptor.h"
#include "collector/label/rule.h"
#include "label-rig.h"
#include "util/diag.h"

static struct label_rule *rule_of(const struct descriptor_label *section)
{
	struct label_rule *rule = NULL;
	struct diag diag = DIAG_INIT;

	assert_ok(label_rule_new(section, NULL, &diag, "test", &rule));
	assert_int_equal(diag.n_errors, 0);
	assert_non_null(rule);
	return rule;
}

static void names_are_cut_replaced_and_matched_in_this_order(void **state)
{
	struct descriptor_item values[] = { { "2", "two" }, { "-1", "minus" }, { "0x10", "sixteen" }, { "EAGAIN", "again" },
					    { "9223372036854775808", "half" } };
	struct descriptor_item matches[] = { { "^(IO|BADF)$" }, { "[0-9]+" } };
	struct descriptor_label section = { .prefix = "E", .values = { values, ARRAY_SIZE(values) },
					    .matches = { matches, ARRAY_SIZE(matches) } };
	struct field word = integer("", 4), narrow = integer("", 1), wide = integer("", 8);
	uint64_t number[] = { 2, 16, 5, 11, 1, 1000, UINT64_MAX, 0, 1ull << 63 };
	struct label_rule *rule = rule_of(&section);
	struct fixture f;

	setup(&f);
	narrow.is_signed = true;
	assert_string_equal(text_as(&f, "errno", &word, &number[0], rule), "two");
	assert_string_equal(text_as(&f, "errno", &word, &number[1], rule), "sixteen");
	assert_string_equal(text_as(&f, "errno", &narrow, &number[6], rule), "minus");
	assert_string_equal(text_as(&f, "integer", &wide, &number[8], rule), "half");
	assert_string_equal(text_as(&f, "errno", &word, &number[2], rule), "IO");
	assert_string_equal(text_as(&f, "errno", &word, &number[5], rule), "1000");
	assert_string_equal(text_as(&f, "errno", &word, &number[4], rule), "PERM"); /* kept */
	assert_string_equal(text_as(&f, "errno", &word, &number[7], rule), "");
	values[3].text = "AGAIN"; /* after the prefix */
	assert_string_equal(text_as(&f, "errno", &word, &number[3], rule), "again");
	section.other = "rest";
	assert_string_equal(text_as(&f, "errno", &word, &number[4], rule), "rest");
	label_rule_free(rule);
	teardown(&f);
}

static void what_fits_nothing_may_be_dropped_for_now_or_for_good(void **state)
{
	struct descriptor_item match = { "^k(w[a-z]*)(x)?" };
	const struct descriptor_label section = { .matches = { &match, 1 }, .other = "drop" };
	struct field text = { .type_name = "", .class = FIELD_TEXT, .size_bytes = 16, .bucket_bytes = 1 };
	struct field index = integer("", 4);
	uint32_t unknown = 0x7ffffff0;
	struct key_label label;
	struct fixture f;

	setup(&f);
	label = (struct key_label){ label_type_find(&text), &f.context, &text, (char *)"given.name", rule_of(&section) };
	assert_string_equal(text_as(&f, NULL, &text, "kworker/3\0\0\0\0\0\0", label.rule), "worker");
	attributes_init(&f.attributes);
	assert_int_equal(label_add(&label, "bash\0\0\0\0\0\0\0\0\0\0\0", &f.attributes), LABEL_UNWANTED);
	assert_int_equal(f.attributes.n, 0);
	/* It may get a name that is wanted. */
	label.type = label_type_named("ifindex", &index);
	label.field = &index;
	assert_int_equal(label_add(&label, &unknown, &f.attributes), LABEL_UNWANTED | 1);
	label_rule_free(label.rule);
	teardown(&f);
}

static void constants_of_the_kernel_have_its_names(void **state)
{
	struct descriptor_label section = { .as = LABEL_KERNEL_ENUM " pid_type", .prefix = "PIDTYPE_", .line = 7 };
	struct field field = integer("", 4);
	struct diag diag = DIAG_INIT;
	uint64_t tgid = 1, strange = 77;
	struct label_rule *rule;
	struct fixture f;

	setup(&f);
	if (!labels_kernel_types(f.labels))
		skip();
	assert_ok(label_rule_new(&section, labels_kernel_types(f.labels), &diag, "test", &rule));
	assert_string_equal(text_as(&f, section.as, &field, &tgid, rule), "TGID");
	assert_string_equal(text_as(&f, section.as, &field, &strange, rule), "77");
	label_rule_free(rule);
	section.as = LABEL_KERNEL_ENUM " there_is_no_such_enum";
	assert_ok(label_rule_new(&section, labels_kernel_types(f.labels), &diag, "test", &rule));
	assert_string_equal(text_as(&f, section.as, &field, &tgid, rule), "1");
	label_rule_check_enum(rule, labels_kernel_types(f.labels), &diag, "test");
	assert_non_null(strstr(buf_text(&diag.text), "test:7: this kernel has no enum \"there_is_no_such_enum\""));
	diag_done(&diag);
	label_rule_free(rule);
	section.as = LABEL_KERNEL_ENUM " PIDTYPE_SID"; /* a constant, for enums without a name */
	assert_ok(label_rule_new(&section, labels_kernel_types(f.labels), &diag, "test", &rule));
	assert_string_equal(text_as(&f, section.as, &field, &tgid, rule), "TGID");
	label_rule_free(rule);
	labels_begin(f.labels, 0);
	assert_null(f.labels->kernel_types);
	teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_cut_replaced_and_matched_in_this_order),
		cmocka_unit_test(what_fits_nothing_may_be_dropped_for_now_or_for_good),
		cmocka_unit_test(constants_of_the_kernel_have_its_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

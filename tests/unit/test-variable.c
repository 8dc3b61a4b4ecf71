/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>

#include "alloc.h"
#include "btf-build.h"
#include "collector/label/label.h"
#include "collector/variable.h"
#include "collector/shape.h"

struct data {
	uint64_t syscalls[8];
	uint64_t wide;
	uint64_t pause;
	uint32_t limit;
	int32_t offset;
	uint16_t pair[2];
	uint32_t only;
	uint8_t small;
	uint8_t flag;
	char text[6];
};

struct fixture {
	struct btf_types t;
	struct variables variables;
	struct data data;
};

static void add_variable(struct fixture *f, const char *name, int type)
{
	int constant = btf_made(btf__add_const(f->t.btf, btf_made(btf__add_volatile(f->t.btf, type))));

	btf_made(btf__add_var(f->t.btf, name, BTF_VAR_GLOBAL_ALLOCATED, constant));
}

#define PLACE(member) offsetof(struct data, member), sizeof(((struct data *)0)->member)

static const struct {
	const char *name;
	size_t offset, size;
} places[] = {
	{ "syscalls", PLACE(syscalls) },
	{ "wide", PLACE(wide) },
	{ "pause", PLACE(pause) },
	{ "limit", PLACE(limit) },
	{ "offset", PLACE(offset) },
	{ "pair", PLACE(pair) },
	{ "only", PLACE(only) },
	{ "small", PLACE(small) },
	{ "flag", PLACE(flag) },
	{ "text", PLACE(text) },
	{ "beyond", sizeof(struct data) - 2, 4 },
	{ "huge", 0, 16 },
};

/* The types, then the variables, then the section with their places: a section's entries must follow it at once. */
static void setup(struct fixture *f)
{
	int words, set, only, first, types[ARRAY_SIZE(places)];
	struct btf_types *t = &f->t;

	memset(f, 0, sizeof(*f));
	f->data.limit = 5;
	btf_types_init(t);
	words = btf_array_of(t, t->u64, 8);
	set = btf_struct_of(t, NULL, 64);
	btf_member(t, "word", words, 0);
	set = btf_made(btf__add_typedef(t->btf, "prm_syscalls", set));
	only = btf_made(btf__add_enum(t->btf, "direction", 4));
	assert_ok(btf__add_enum_value(t->btf, "WAY_NONE", 0));
	assert_ok(btf__add_enum_value(t->btf, "WAY_WRITE", 2));
	types[0] = set;
	types[1] = t->u64;
	types[2] = btf_made(btf__add_typedef(t->btf, "prm_ns", t->u64));
	types[3] = t->u32;
	types[4] = t->s32;
	types[5] = btf_array_of(t, t->u16, 2);
	types[6] = only;
	types[7] = t->u8;
	types[8] = t->boolean;
	types[9] = btf_array_of(t, t->character, 6);
	types[10] = t->u32;
	types[11] = btf_made(btf__add_int(t->btf, "__int128", 16, 0));
	first = (int)btf__type_cnt(t->btf);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		add_variable(f, places[i].name, types[i]);
	btf_made(btf__add_datasec(t->btf, ".rodata", sizeof(f->data)));
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		assert_ok(btf__add_datasec_var_info(t->btf, first + 3 * (int)i + 2, (uint32_t)places[i].offset,
						    (uint32_t)places[i].size));
	assert_ok(variables_init(t->btf, t->btf, &f->data, sizeof(f->data), &f->variables));
}

static void teardown(struct fixture *f)
{
	variables_done(&f->variables);
	btf_types_done(&f->t);
}

static int set(struct fixture *f, const char *name, const char *text)
{
	struct variable *variable = variable_find(&f->variables, name);

	assert_non_null(variable);
	return variable_set(&f->variables, variable, text) ? -EINVAL : 0;
}

static uint64_t number(const struct fixture *f, const char *name)
{
	const struct variable *variable = variable_find(&f->variables, name);

	return shape_load(f->variables.data + variable->offset_bytes,
			  variable->size_bytes < 8 ? variable->size_bytes : 8);
}

static void variables_keep_what_the_object_holds_until_they_are_set(void **state)
{
	struct fixture f;

	setup(&f);
	assert_int_equal(number(&f, "limit"), 5);
	assert_true(variable_is_on(&f.variables, "limit"));
	assert_false(variable_is_on(&f.variables, "text"));
	assert_ok(set(&f, "limit", "0x10"));
	assert_int_equal(number(&f, "limit"), 16);
	assert_int_equal(f.data.limit, 5);
	teardown(&f);
}

static void variables_outside_the_section_are_not_there(void **state)
{
	struct fixture f;

	setup(&f);
	assert_null(variable_find(&f.variables, "beyond"));
	assert_null(variable_find(&f.variables, "nothing"));
	assert_int_equal(f.variables.n, 11);
	teardown(&f);
}

static void numbers_must_fit_their_type(void **state)
{
	static const struct {
		const char *name, *text;
		int err;
		uint64_t number;
	} cases[] = {
		{ "limit", "4294967295", 0, 4294967295 },
		{ "limit", "4294967296", EINVAL, 4294967295 },
		{ "limit", "-1", EINVAL, 4294967295 },
		{ "limit", "", EINVAL, 4294967295 },
		{ "limit", "12 ", EINVAL, 4294967295 },
		{ "small", "255", 0, 255 },
		{ "small", "256", EINVAL, 255 },
		{ "wide", "18446744073709551615", 0, UINT64_MAX },
		{ "wide", "18446744073709551616", EINVAL, UINT64_MAX },
		{ "offset", "-2147483648", 0, 0x80000000 },
		{ "offset", "-2147483649", EINVAL, 0x80000000 },
		{ "offset", "2147483647", 0, 0x7fffffff },
		{ "offset", "2147483648", EINVAL, 0x7fffffff },
	};
	struct fixture f;

	setup(&f);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_error(set(&f, cases[i].name, cases[i].text), cases[i].err);
		assert_int_equal(number(&f, cases[i].name), cases[i].number);
	}
	teardown(&f);
}

static void a_flag_is_yes_or_no(void **state)
{
	struct fixture f;

	setup(&f);
	assert_ok(set(&f, "flag", "yes"));
	assert_int_equal(number(&f, "flag"), 1);
	assert_error(set(&f, "flag", "2"), EINVAL);
	assert_ok(set(&f, "flag", "off"));
	assert_int_equal(number(&f, "flag"), 0);
	teardown(&f);
}

static void an_enum_is_set_by_its_constants_short_name(void **state)
{
	struct fixture f;

	setup(&f);
	assert_ok(set(&f, "only", "write"));
	assert_int_equal(number(&f, "only"), 2);
	assert_error(set(&f, "only", "WAY_WRITE"), EINVAL);
	assert_error(set(&f, "only", "1"), EINVAL);
	assert_int_equal(number(&f, "only"), 2);
	teardown(&f);
}

static void a_text_leaves_room_for_its_end_and_nothing_of_the_last_one(void **state)
{
	const uint8_t *at;
	struct fixture f;

	setup(&f);
	at = f.variables.data + variable_find(&f.variables, "text")->offset_bytes;
	assert_ok(set(&f, "text", "12345"));
	assert_string_equal((const char *)at, "12345");
	assert_error(set(&f, "text", "123456"), EINVAL);
	assert_ok(set(&f, "text", "ab"));
	assert_memory_equal(at, "ab\0\0\0\0", 6);
	teardown(&f);
}

static void what_is_neither_number_nor_text_cannot_be_set(void **state)
{
	struct fixture f;

	setup(&f);
	assert_error(set(&f, "pair", "1"), EINVAL);
	assert_error(set(&f, "huge", "1"), EINVAL);
	assert_int_equal(number(&f, "huge"), 0);
	teardown(&f);
}

static bool has(const struct fixture *f, const char *name)
{
	int n = label_syscall_number(name, strlen(name));
	const uint8_t *bits = f->variables.data + variable_find(&f->variables, "syscalls")->offset_bytes;

	assert_true(n >= 0);
	return bits[n / 8] >> n % 8 & 1;
}

static void system_calls_are_chosen_by_name(void **state)
{
	struct fixture f;

	setup(&f);
	assert_ok(set(&f, "syscalls", "read,  openat,futex"));
	assert_true(has(&f, "read") && has(&f, "openat") && has(&f, "futex"));
	assert_false(has(&f, "write"));
	assert_error(set(&f, "syscalls", "write, opeat"), EINVAL);
	assert_true(has(&f, "read"));
	assert_false(has(&f, "write"));
	assert_ok(set(&f, "syscalls", "all"));
	assert_true(has(&f, "write"));
	assert_ok(set(&f, "syscalls", "none"));
	assert_false(variable_is_on(&f.variables, "syscalls"));
	assert_ok(set(&f, "syscalls", "read"));
	assert_ok(set(&f, "syscalls", ""));
	assert_false(variable_is_on(&f.variables, "syscalls"));
	teardown(&f);
}

static void a_failed_allocation_is_an_error_and_no_leak(void **state)
{
	struct fixture f;

	setup(&f);
	variables_done(&f.variables);
	assert_survives_failing_allocations(
		variables_init(f.t.btf, f.t.btf, &f.data, sizeof(f.data), &f.variables), );
	teardown(&f);
}

static void a_duration_has_a_unit(void **state)
{
	_cleanup_(buf_done) struct buf out = BUF_INIT;
	struct fixture f;

	setup(&f);
	assert_ok(set(&f, "pause", "1s500ms"));
	assert_int_equal(number(&f, "pause"), 1500000000);
	assert_error(set(&f, "pause", "10"), EINVAL);
	assert_error(set(&f, "pause", "-1s"), EINVAL);
	assert_int_equal(number(&f, "pause"), 1500000000);
	variable_find(&f.variables, "pause")->text = NULL;
	assert_true(variable_show(&f.variables, variable_find(&f.variables, "pause"), &out));
	assert_string_equal(buf_text(&out), "1500000000ns");
	teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(variables_keep_what_the_object_holds_until_they_are_set),
		cmocka_unit_test(variables_outside_the_section_are_not_there),
		cmocka_unit_test(numbers_must_fit_their_type),
		cmocka_unit_test(a_flag_is_yes_or_no),
		cmocka_unit_test(an_enum_is_set_by_its_constants_short_name),
		cmocka_unit_test(a_text_leaves_room_for_its_end_and_nothing_of_the_last_one),
		cmocka_unit_test(what_is_neither_number_nor_text_cannot_be_set),
		cmocka_unit_test(system_calls_are_chosen_by_name),
		cmocka_unit_test(a_duration_has_a_unit),
		cmocka_unit_test(a_failed_allocation_is_an_error_and_no_leak),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

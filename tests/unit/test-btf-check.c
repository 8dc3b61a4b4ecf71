/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "btf-build.h"
#include "collector/shape.h"

#define NOWHERE 100000

static void assert_whole(void (*add)(struct btf_types *t), bool is_whole)
{
	struct btf_types t;

	btf_types_init(&t);
	add(&t);
	assert_int_equal(btf_is_whole(t.btf), is_whole);
	btf_types_done(&t);
}

static void add_sound(struct btf_types *t)
{
	int array = btf_array_of(t, t->u8, 4), prototype, function, variable, inner;

	inner = btf_struct_of(t, "list", 8);
	btf_member(t, "next", inner + 1, 0); /* forward, and back to itself */
	btf_made(btf__add_ptr(t->btf, inner));
	btf_made(btf__add_union(t->btf, "either", 4));
	btf_member(t, "bytes", array, 0);
	prototype = btf_made(btf__add_func_proto(t->btf, 0));
	assert_ok(btf__add_func_param(t->btf, "ctx", inner + 1));
	function = btf_made(btf__add_func(t->btf, "run", BTF_FUNC_GLOBAL, prototype));
	variable = btf_made(btf__add_var(t->btf, "limit", BTF_VAR_GLOBAL_ALLOCATED, t->u32));
	btf_made(btf__add_datasec(t->btf, ".rodata", 4));
	assert_ok(btf__add_datasec_var_info(t->btf, variable, 0, 4));
	btf_made(btf__add_datasec(t->btf, ".ksyms", 0));
	assert_ok(btf__add_datasec_var_info(t->btf, function, 0, 0));
}

static void sound_types_are_whole(void **state)
{
	assert_whole(add_sound, true);
}

static void add_pointer(struct btf_types *t)
{
	btf_made(btf__add_ptr(t->btf, NOWHERE));
}

static void add_array(struct btf_types *t)
{
	btf_made(btf__add_array(t->btf, NOWHERE, t->u32, 1));
}

static void add_member(struct btf_types *t)
{
	btf_struct_of(t, "one", 8);
	btf_member(t, "lost", NOWHERE, 0);
}

static void add_param(struct btf_types *t)
{
	btf_made(btf__add_func_proto(t->btf, 0));
	assert_ok(btf__add_func_param(t->btf, "lost", NOWHERE));
}

static void add_result(struct btf_types *t)
{
	btf_made(btf__add_func_proto(t->btf, NOWHERE));
}

static void add_function_of_number(struct btf_types *t)
{
	btf_made(btf__add_func(t->btf, "run", BTF_FUNC_GLOBAL, t->u32));
}

static void add_section_of_number(struct btf_types *t)
{
	btf_made(btf__add_datasec(t->btf, ".rodata", 4));
	assert_ok(btf__add_datasec_var_info(t->btf, t->u32, 0, 4));
}

static void add_variable(struct btf_types *t)
{
	btf_made(btf__add_var(t->btf, "limit", BTF_VAR_GLOBAL_ALLOCATED, NOWHERE));
}

static void references_to_what_is_not_there_are_found(void **state)
{
	assert_whole(add_pointer, false);
	assert_whole(add_array, false);
	assert_whole(add_member, false);
	assert_whole(add_param, false);
	assert_whole(add_result, false);
	assert_whole(add_function_of_number, false);
	assert_whole(add_section_of_number, false);
	assert_whole(add_variable, false);
}

static void add_typedef_of_itself(struct btf_types *t)
{
	btf_made(btf__add_typedef(t->btf, "again", (int)btf__type_cnt(t->btf)));
}

static void add_circle(struct btf_types *t)
{
	int first = btf_made(btf__add_const(t->btf, (int)btf__type_cnt(t->btf) + 1));

	btf_made(btf__add_typedef(t->btf, "round", first));
}

static void typedefs_of_themselves_are_found(void **state)
{
	assert_whole(add_typedef_of_itself, false);
	assert_whole(add_circle, false);
}

static void names_that_are_not_there_are_found(void **state)
{
	struct btf_types t;
	struct btf_type *type;

	btf_types_init(&t);
	type = (struct btf_type *)btf__type_by_id(t.btf, (uint32_t)t.u32);
	type->name_off = 1 << 20;
	assert_false(btf_is_whole(t.btf));
	btf_types_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sound_types_are_whole),
		cmocka_unit_test(references_to_what_is_not_there_are_found),
		cmocka_unit_test(typedefs_of_themselves_are_found),
		cmocka_unit_test(names_that_are_not_there_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

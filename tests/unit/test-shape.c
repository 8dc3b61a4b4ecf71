/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <stdlib.h>

#include "alloc.h"
#include "btf-build.h"
#include "collector/shape.h"

static void assert_field(const struct shape *shape, const char *name, enum field_class class, const char *type_name,
			 uint32_t offset_bytes, uint32_t size_bytes)
{
	const struct field *field = shape_find(shape, name);

	assert_non_null(field);
	assert_int_equal(field->class, class);
	assert_string_equal(field->type_name, type_name);
	assert_int_equal(field->offset_bytes, offset_bytes);
	assert_int_equal(field->size_bytes, size_bytes);
}

static void a_number_is_one_field_without_a_name(void **state)
{
	struct btf_types t;
	struct shape shape;

	btf_types_init(&t);
	assert_ok(shape_from_btf(t.btf, t.u64, &shape, NULL));
	assert_int_equal(shape.n_fields, 1);
	assert_int_equal(shape.size_bytes, 8);
	assert_field(&shape, "", FIELD_INTEGER, "", 0, 8);
	assert_false(shape.fields[0].is_signed);
	shape_done(&shape);
	assert_ok(shape_from_btf(t.btf, t.s32, &shape, NULL));
	assert_true(shape.fields[0].is_signed);
	shape_done(&shape);
	btf_types_done(&t);
}

static int add_key(struct btf_types *t)
{
	int cgroup = btf_made(btf__add_typedef(t->btf, "lbl_cgroup", t->u64));
	int inner = btf_made(btf__add_typedef(t->btf, "inner_id", t->u32));
	int outer = btf_made(btf__add_typedef(t->btf, "lbl_errno", inner));
	int text = btf_array_of(t, t->character, 16), bytes = btf_array_of(t, t->u8, 16);
	int process = btf_made(btf__add_const(t->btf, t->u64)), owner, ip, key;

	owner = btf_struct_of(t, "owner", 16);
	btf_member(t, "cgroup", cgroup, 0);
	btf_member(t, "process", process, 8);
	owner = btf_made(btf__add_volatile(t->btf, owner));
	ip = btf_struct_of(t, NULL, 16);
	btf_member(t, "byte", bytes, 0);
	ip = btf_made(btf__add_typedef(t->btf, "lbl_ipv6", ip));
	key = btf_struct_of(t, "key", 72);
	btf_member(t, "owner", owner, 0);
	btf_member(t, "error", outer, 16);
	btf_member(t, "name", text, 20);
	btf_member(t, "raw", bytes, 36);
	btf_member(t, "peer", ip, 52);
	btf_member(t, "flag", t->boolean, 68);
	return key;
}

static void structures_are_flattened_and_typedefs_keep_their_outermost_name(void **state)
{
	struct btf_types t;
	struct shape shape;

	btf_types_init(&t);
	assert_ok(shape_from_btf(t.btf, (uint32_t)add_key(&t), &shape, NULL));
	assert_int_equal(shape.n_fields, 7);
	assert_int_equal(shape.size_bytes, 72);
	assert_field(&shape, "owner.cgroup", FIELD_INTEGER, "lbl_cgroup", 0, 8);
	assert_field(&shape, "owner.process", FIELD_INTEGER, "", 8, 8);
	assert_field(&shape, "error", FIELD_INTEGER, "lbl_errno", 16, 4);
	assert_field(&shape, "name", FIELD_TEXT, "", 20, 16);
	assert_field(&shape, "raw", FIELD_BYTES, "", 36, 16);
	assert_field(&shape, "peer", FIELD_BYTES, "lbl_ipv6", 52, 16);
	assert_field(&shape, "flag", FIELD_INTEGER, "", 68, 1);
	assert_null(shape_find(&shape, "owner"));
	shape_done(&shape);
	btf_types_done(&t);
}

static int add_histogram(struct btf_types *t, uint32_t n_buckets)
{
	int ns = btf_made(btf__add_typedef(t->btf, "val_ns", t->u64)), buckets = btf_array_of(t, t->u32, n_buckets);
	int hist = btf_struct_of(t, "hist_time", 8 + 4 * n_buckets);

	btf_member(t, "sum", ns, 0);
	btf_member(t, "bucket", buckets, 8);
	return hist;
}

static void sum_and_bucket_make_a_histogram_at_its_place(void **state)
{
	const struct field *field;
	struct btf_types t;
	struct shape shape;
	int hist, value;

	btf_types_init(&t);
	hist = add_histogram(&t, 48);
	value = btf_struct_of(&t, "value", 8 + 200);
	btf_member(&t, "count", t.u64, 0);
	btf_member(&t, "time", hist, 8);
	assert_ok(shape_from_btf(t.btf, (uint32_t)value, &shape, NULL));
	assert_int_equal(shape.n_fields, 2);
	field = shape_find(&shape, "time");
	assert_int_equal(field->class, FIELD_HISTOGRAM);
	assert_string_equal(field->type_name, "val_ns");
	assert_int_equal(field->offset_bytes, 8);
	assert_int_equal(field->size_bytes, 8);
	assert_int_equal(field->bucket_offset_bytes, 16);
	assert_int_equal(field->bucket_bytes, 4);
	assert_int_equal(field->n_buckets, 48);
	shape_done(&shape);
	btf_types_done(&t);
}

static void one_bucket_is_no_histogram_but_an_array_of_bytes(void **state)
{
	struct btf_types t;
	struct shape shape;

	btf_types_init(&t);
	assert_ok(shape_from_btf(t.btf, (uint32_t)add_histogram(&t, 1), &shape, NULL));
	assert_int_equal(shape.n_fields, 2);
	assert_field(&shape, "sum", FIELD_INTEGER, "val_ns", 0, 8);
	assert_field(&shape, "bucket", FIELD_BYTES, "", 8, 4);
	shape_done(&shape);
	btf_types_done(&t);
}

static void assert_refused(struct btf_types *t, int type, const char *expected_culprit)
{
	struct shape shape = { .n_fields = 42 };
	char *culprit = NULL;

	assert_error(shape_from_btf(t->btf, (uint32_t)type, &shape, &culprit), EINVAL);
	assert_int_equal(shape.n_fields, 42);
	if (expected_culprit)
		assert_string_equal(culprit, expected_culprit);
	else
		assert_null(culprit);
	free(culprit);
}

static int struct_with(struct btf_types *t, int type, uint32_t size_bytes)
{
	int inner = btf_struct_of(t, "inner", size_bytes + 8), outer;

	btf_member(t, "before", t->u64, 0);
	btf_member(t, "bad", type, 8);
	outer = btf_struct_of(t, "outer", size_bytes + 8);
	btf_member(t, "inner", inner, 0);
	return outer;
}

static void what_cannot_be_read_is_refused_by_name(void **state)
{
	struct btf_types t;
	int type;

	btf_types_init(&t);
	assert_refused(&t, struct_with(&t, btf_made(btf__add_ptr(t.btf, t.u32)), 8), "inner.bad");
	assert_refused(&t, struct_with(&t, btf_made(btf__add_float(t.btf, "double", 8)), 8), "inner.bad");
	assert_refused(&t, struct_with(&t, btf_made(btf__add_int(t.btf, "__int128", 16, 0)), 16), "inner.bad");
	assert_refused(&t, struct_with(&t, btf_made(btf__add_fwd(t.btf, "hidden", BTF_FWD_STRUCT)), 8), "inner.bad");
	assert_refused(&t, struct_with(&t, btf_array_of(&t, btf_array_of(&t, t.u32, 2), 2), 16), "inner.bad");
	assert_refused(&t, struct_with(&t, btf_array_of(&t, t.u32, 0), 8), "inner.bad");
	assert_refused(&t, struct_with(&t, btf_array_of(&t, t.u32, 1025), 4100), "inner.bad");
	type = btf_made(btf__add_union(t.btf, "either", 8));
	btf_member(&t, "a", t.u64, 0);
	assert_refused(&t, struct_with(&t, type, 8), "inner.bad");
	assert_refused(&t, btf_made(btf__add_ptr(t.btf, t.u32)), NULL);
	assert_refused(&t, 0, NULL);
	assert_refused(&t, 100000, NULL);
	btf_types_done(&t);
}

static void bit_fields_are_refused(void **state)
{
	struct btf_types t;
	int type;

	btf_types_init(&t);
	type = btf_struct_of(&t, "bits", 4);
	assert_ok(btf__add_field(t.btf, "low", t.u32, 0, 4));
	assert_refused(&t, type, "low");
	btf_types_done(&t);
}

static void members_beyond_the_end_of_what_holds_them_are_refused(void **state)
{
	struct btf_types t;
	int type, hist, buckets;

	btf_types_init(&t);
	type = btf_struct_of(&t, "short", 8);
	btf_member(&t, "far", t.u64, 4);
	assert_refused(&t, type, "far");
	type = btf_struct_of(&t, "shorter", 8);
	btf_member(&t, "farther", t.u64, 0x10000000);
	assert_refused(&t, type, "farther");
	buckets = btf_array_of(&t, t.u32, 1000);
	hist = btf_struct_of(&t, "hist_value", 16);
	btf_member(&t, "sum", t.u64, 0);
	btf_member(&t, "bucket", buckets, 8);
	assert_refused(&t, hist, "bucket");
	btf_types_done(&t);
}

static void nesting_and_members_have_limits(void **state)
{
	struct btf_types t;
	struct shape shape;
	int type;

	btf_types_init(&t);
	type = t.u32;
	for (int i = 0; i < 8; i++) {
		int outer = btf_struct_of(&t, "level", 4);

		btf_member(&t, "in", type, 0);
		type = outer;
	}
	assert_ok(shape_from_btf(t.btf, (uint32_t)type, &shape, NULL));
	assert_string_equal(shape.fields[0].name, "in.in.in.in.in.in.in.in");
	shape_done(&shape);
	int outer = btf_struct_of(&t, "level", 4);

	btf_member(&t, "in", type, 0);
	assert_refused(&t, outer, "in.in.in.in.in.in.in.in.in");
	type = btf_struct_of(&t, "wide", 257);
	for (uint32_t i = 0; i < 257; i++) {
		char name[8];

		snprintf(name, sizeof(name), "m%u", i);
		btf_member(&t, name, t.boolean, i);
	}
	assert_refused(&t, type, "m256");
	btf_types_done(&t);
}

/* 256 members at each of 8 levels would be 2^64 steps. */
static void structures_without_members_do_not_multiply(void **state)
{
	struct btf_types t;
	int type;

	btf_types_init(&t);
	type = btf_struct_of(&t, "hollow", 4);
	for (int level = 0; level < 7; level++) {
		int outer = btf_struct_of(&t, "level", 4);

		for (int i = 0; i < 256; i++)
			btf_member(&t, "in", type, 0);
		type = outer;
	}
	assert_refused(&t, type, "in.in.in.in.in.in.in");
	btf_types_done(&t);
}

static void endless_typedefs_are_refused(void **state)
{
	struct btf_types t;
	int type;

	btf_types_init(&t);
	type = btf_made(btf__add_typedef(t.btf, "again", btf__type_cnt(t.btf)));
	assert_refused(&t, type, NULL);
	btf_types_done(&t);
}

static int add_enum(struct btf_types *t, const char *const *names, const int64_t *values, size_t n)
{
	int type = btf_made(btf__add_enum(t->btf, "some", 4));

	for (size_t i = 0; i < n; i++)
		assert_ok(btf__add_enum_value(t->btf, names[i], values[i]));
	return type;
}

static void constants_lose_what_all_of_them_begin_with_and_their_case(void **state)
{
	static const char *const names[] = { "TCP_CLOSE", "TCP_CLOSE_WAIT", "TCP_MINUS" };
	static const int64_t values[] = { 7, 8, 0xffffffff };
	char text[32], little[6];
	struct btf_types t;
	uint32_t id;

	btf_types_init(&t);
	id = (uint32_t)add_enum(&t, names, values, 3);
	assert_string_equal(shape_enum_name(t.btf, id, 7, text, sizeof(text)), "close");
	assert_string_equal(shape_enum_name(t.btf, id, 8, text, sizeof(text)), "close_wait");
	assert_string_equal(shape_enum_name(t.btf, id, 8, little, sizeof(little)), "close");
	assert_string_equal(shape_enum_name(t.btf, id, 0xffffffff, text, sizeof(text)), "minus");
	assert_null(shape_enum_name(t.btf, id, 9, text, sizeof(text)));
	assert_null(shape_enum_name(t.btf, id, 7, text, 0));
	assert_null(shape_enum_name(t.btf, (uint32_t)t.u32, 7, text, sizeof(text)));
	btf_types_done(&t);
}

static void a_single_constant_keeps_its_whole_name(void **state)
{
	static const char *const names[] = { "KIND_ONE" };
	static const int64_t values[] = { 1 };
	struct btf_types t;
	char text[32];
	uint32_t id;

	btf_types_init(&t);
	id = (uint32_t)add_enum(&t, names, values, 1);
	assert_string_equal(shape_enum_name(t.btf, id, 1, text, sizeof(text)), "kind_one");
	btf_types_done(&t);
}

static void prefixes_end_at_an_underscore(void **state)
{
	static const char *const names[] = { "DIR_READ", "DIR_RENAME", "DIR_REST" };
	static const int64_t values[] = { 0, 1, 2 };
	struct btf_types t;
	char text[32];
	uint32_t id;

	btf_types_init(&t);
	id = (uint32_t)add_enum(&t, names, values, 3);
	assert_string_equal(shape_enum_name(t.btf, id, 1, text, sizeof(text)), "rename");
	btf_types_done(&t);
}

static void constants_of_64_bits_have_names_too(void **state)
{
	struct btf_types t;
	char text[32];
	int id;

	btf_types_init(&t);
	id = btf_made(btf__add_enum64(t.btf, "wide", 8, true));
	assert_ok(btf__add_enum64_value(t.btf, "W_LOW", (uint64_t)-5));
	assert_ok(btf__add_enum64_value(t.btf, "W_HIGH", 1ull << 40));
	assert_string_equal(shape_enum_name(t.btf, (uint32_t)id, 1ll << 40, text, sizeof(text)), "high");
	assert_string_equal(shape_enum_name(t.btf, (uint32_t)id, -5, text, sizeof(text)), "low");
	btf_types_done(&t);
}

static void numbers_are_loaded_from_wherever_they_lie(void **state)
{
	static const uint8_t bytes[] = { 0xff, 1, 2, 3, 4, 5, 6, 7, 0x80 };

	assert_int_equal(shape_load(bytes + 1, 1), 1);
	assert_int_equal(shape_load(bytes + 1, 2), 0x0201);
	assert_int_equal(shape_load(bytes + 1, 4), 0x04030201);
	assert_int_equal(shape_load(bytes + 1, 8), 0x8007060504030201);
}

static int shape_once(const struct btf *btf, uint32_t id)
{
	struct shape shape = { 0 };
	char *culprit = NULL;
	int err = shape_from_btf(btf, id, &shape, &culprit);

	free(culprit);
	shape_done(&shape);
	return err;
}

static void a_failed_allocation_is_an_error_and_no_leak(void **state)
{
	struct btf_types t;
	uint32_t id;

	btf_types_init(&t);
	id = (uint32_t)add_key(&t);
	assert_survives_failing_allocations(shape_once(t.btf, id), );
	btf_types_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_number_is_one_field_without_a_name),
		cmocka_unit_test(structures_are_flattened_and_typedefs_keep_their_outermost_name),
		cmocka_unit_test(sum_and_bucket_make_a_histogram_at_its_place),
		cmocka_unit_test(one_bucket_is_no_histogram_but_an_array_of_bytes),
		cmocka_unit_test(what_cannot_be_read_is_refused_by_name),
		cmocka_unit_test(bit_fields_are_refused),
		cmocka_unit_test(members_beyond_the_end_of_what_holds_them_are_refused),
		cmocka_unit_test(nesting_and_members_have_limits),
		cmocka_unit_test(structures_without_members_do_not_multiply),
		cmocka_unit_test(endless_typedefs_are_refused),
		cmocka_unit_test(constants_lose_what_all_of_them_begin_with_and_their_case),
		cmocka_unit_test(a_single_constant_keeps_its_whole_name),
		cmocka_unit_test(prefixes_end_at_an_underscore),
		cmocka_unit_test(constants_of_64_bits_have_names_too),
		cmocka_unit_test(numbers_are_loaded_from_wherever_they_lie),
		cmocka_unit_test(a_failed_allocation_is_an_error_and_no_leak),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

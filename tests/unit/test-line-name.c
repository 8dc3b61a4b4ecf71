/* SPDX-License-Identifier: Apache-2.0 */
#include "lines-rig.h"

#include <stdio.h>

static void bytes_that_a_receiver_reads_as_something_else_are_replaced(void **state)
{
	static const char hostile[] = "a.b:1|c\n@#,;= []{}/../\\~\"'\xff\xc3\xa9*?%$x";
	struct rig rig;

	rig_init(&rig, DIALECT_PLAIN, "{unit}.{metric}.{attributes}");
	begin(&rig);
	series_add(SERIES(&rig, 0, "systemd.unit.name", hostile, "process.executable.name", ".."), 1);
	assert_lines(&rig, 0, "a_b_1_c_________________________x.a.sum.__:1|c");
	rig_done(&rig);

	rig_init(&rig, DIALECT_TAGGED, NULL);
	rig.tags.n_items = 0;
	begin(&rig);
	series_add(SERIES(&rig, 0, "na me", hostile), 1);
	assert_lines(&rig, 0, "a.sum.count;na_me=a.b:1_c_@__________..___________x 1 1700000010\n");
	rig_done(&rig);
}

static void an_empty_value_is_an_underscore(void **state)
{
	struct rig rig;

	rig_init(&rig, DIALECT_GRAPHITE, "{unit}.{no.such}.{metric}");
	rig.tags.n_items = 0;
	begin(&rig);
	series_add(SERIES(&rig, 0, "key", ""), 1);
	assert_lines(&rig, 0, "_._.a.sum;key=_:1|c");
	rig_done(&rig);
}

static void attributes_that_are_not_there_leave_no_level(void **state)
{
	static const struct {
		const char *template, *expected;
	} cases[] = {
		{ "{metric}.{attributes}", "a.sum:1|c" },
		{ "{attributes}.{metric}", "a.sum:1|c" },
		{ "x.{attributes}.{metric}", "x.a.sum:1|c" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rig rig;

		rig_init(&rig, DIALECT_PLAIN, cases[i].template);
		begin(&rig);
		series_add(SERIES(&rig, 0), 1);
		assert_lines(&rig, 0, cases[i].expected);
		rig_done(&rig);
	}
}

static void what_the_path_has_is_no_tag(void **state)
{
	struct rig rig;

	rig_init(&rig, DIALECT_INFLUX, "{host}.{unit}.{metric}");
	begin(&rig);
	series_add(SERIES(&rig, 0, "systemd.unit.name", "cron.service", "error.type", "EIO"), 1);
	assert_lines(&rig, 0, "vm1.cron_service.a.sum,deployment.environment.name=prod/eu,error.type=EIO:1|c");
	rig_done(&rig);
}

static void tags_of_one_name_and_names_that_are_taken_get_an_underscore(void **state)
{
	struct rig rig;

	rig_init(&rig, DIALECT_GRAPHITE, NULL);
	rig.tags.n_items = 1;
	begin(&rig);
	series_add(SERIES(&rig, 0, "a b", "1", "a:b", "2", "a|b", "3", "host.name", "4", "name", "5", "series", "6", "upper", "7"), 1);
	assert_lines(&rig, 0,
		     "a.sum;host.name=vm1;a_b=1;a_b_=2;a_b__=3;host.name_=4;name_=5;series_=6;upper_=7:1|c");
	rig_done(&rig);
}

static void long_values_are_cut_and_stay_apart(void **state)
{
	char one[256], other[256];
	struct rig rig;
	const char *first, *second;

	memset(one, 'x', 255);
	one[255] = '\0';
	memcpy(other, one, 256);
	other[254] = 'y';
	rig_init(&rig, DIALECT_PLAIN, "{metric}.{attributes}");
	begin(&rig);
	series_add(SERIES(&rig, 0, "key", one), 1);
	series_add(SERIES(&rig, 0, "key", other), 2);
	assert_ok(push(&rig, 0));
	first = buf_text(&rig.out);
	second = strchr(first, '\n') + 1;
	assert_int_equal(second - first, 6 + NAME_LEVEL_BYTES + 4 + 1);
	assert_int_equal(strlen(second), 6 + NAME_LEVEL_BYTES + 4);
	assert_memory_equal(first, second, 6 + NAME_LEVEL_BYTES - 8);
	assert_memory_not_equal(first, second, 6 + NAME_LEVEL_BYTES);
	assert_int_equal(rig.exporter.stats.name_collisions, 0);
	rig_done(&rig);
}

static void a_path_is_bounded(void **state)
{
	struct rig rig;
	char text[256], name[8];
	const char *texts[33] = { 0 };
	char names[16][8];

	memset(text, 'x', 255);
	text[255] = '\0';
	for (size_t i = 0; i < 16; i++) {
		snprintf(name, sizeof(name), "k%zu", i);
		memcpy(names[i], name, sizeof(name));
		texts[2 * i] = names[i];
		texts[2 * i + 1] = text;
	}
	rig_init(&rig, DIALECT_DOTTED, "{metric}.{attributes}");
	begin(&rig);
	series_add(series(&rig, 0, texts), 1);
	assert_ok(push(&rig, 0));
	assert_int_equal(strcspn(buf_text(&rig.out), " "), NAME_PATH_BYTES - strlen("_x01234567"));
	rig_done(&rig);
}

static void a_shorter_bound_holds_for_every_line(void **state)
{
	const uint64_t bucket[6] = { 1, 1, 1, 1, 1, 1 };
	static const char text[] = "0123456789012345678901234567890123456789012345678901234567890123456789";
	struct rig rig;

	rig_init(&rig, DIALECT_PLAIN, "{metric}.{attributes}");
	rig.options.naming.limit_bytes = NAME_PATH_LEAST;
	begin(&rig);
	series_add(SERIES(&rig, 0, "key", text, "other", "a/b"), 1);
	series_add(SERIES(&rig, 0, "key", text, "other", "a b"), 1);
	series_add_histogram(SERIES(&rig, 2, "key", text), 1000, bucket);
	assert_ok(push(&rig, 0));
	assert_int_equal(rig.n_points, 3);
	for (const char *line = buf_text(&rig.out); line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		assert_true(strcspn(line, ":") <= NAME_PATH_LEAST);
	assert_int_equal(rig.exporter.stats.name_collisions, 0);
	rig_done(&rig);
}

static void two_series_never_have_one_name(void **state)
{
	struct rig rig;
	const char *first, *second;

	rig_init(&rig, DIALECT_PLAIN, "{metric}.{attributes}");
	begin(&rig);
	series_add(SERIES(&rig, 0, "key", "a/b"), 1);
	series_add(SERIES(&rig, 0, "key", "a b"), 2);
	assert_ok(push(&rig, 0));
	first = buf_text(&rig.out);
	second = strchr(first, '\n') + 1;
	assert_memory_equal(first, "a.sum.a_b:1|c\n", 14);
	assert_memory_equal(second, "a.sum.a_b_x", 11);
	assert_int_equal(strspn(second + 11, "0123456789abcdef"), 8);
	assert_string_equal(second + 19, ":2|c");
	assert_int_equal(rig.exporter.stats.name_collisions, 1);
	/* The names stay, and nothing is counted again. */
	begin(&rig);
	series_add(SERIES(&rig, 0, "key", "a b"), 3);
	assert_ok(push(&rig, 0));
	assert_memory_equal(buf_text(&rig.out), "a.sum.a_b_x", 11);
	assert_int_equal(rig.exporter.stats.name_collisions, 1);
	rig_done(&rig);

	rig_init(&rig, DIALECT_TAGGED, NULL);
	rig.tags.n_items = 0;
	begin(&rig);
	series_add(SERIES(&rig, 0, "key", "a/b"), 1);
	series_add(SERIES(&rig, 0, "key", "a b"), 2);
	assert_ok(push(&rig, 0));
	second = strchr(buf_text(&rig.out), '\n') + 1;
	assert_memory_equal(second, "a.sum.count;key=a_b;series=", 27);
	rig_done(&rig);
}

static void tags_in_another_order_are_the_same_name(void **state)
{
	struct rig rig;
	const char *second;

	rig_init(&rig, DIALECT_GRAPHITE, NULL);
	rig.tags.n_items = 0;
	begin(&rig);
	series_add(SERIES(&rig, 0, "b!", "x", "b-", "y"), 1);
	series_add(SERIES(&rig, 0, "b-", "y", "b_", "x"), 2);
	assert_ok(push(&rig, 0));
	second = strchr(buf_text(&rig.out), '\n') + 1;
	assert_memory_equal(buf_text(&rig.out), "a.sum;b_=x;b-=y:1|c\n", 20);
	assert_memory_equal(second, "a.sum;b-=y;b_=x;series=", 23);
	assert_int_equal(rig.exporter.stats.name_collisions, 1);
	rig_done(&rig);
}

static void values_of_two_types_are_two_series(void **state)
{
	struct attributes flag, number;
	struct series *first, *second;
	struct rig rig;

	attributes_init(&flag);
	assert_ok(attributes_add_flag(&flag, "1", true));
	attributes_init(&number);
	assert_ok(attributes_add_number(&number, "1", 1));
	rig_init(&rig, DIALECT_PLAIN, "{metric}.{attributes}");
	begin(&rig);
	assert_ok(series_get(&rig.metrics[0], &flag, 1, &first));
	assert_ok(series_get(&rig.metrics[0], &number, 1, &second));
	series_add(first, 1);
	series_add(second, 2);
	assert_ok(push(&rig, 0));
	assert_memory_equal(buf_text(&rig.out), "a.sum.1:1|c\na.sum.1_x", 21);
	assert_int_equal(rig.exporter.stats.name_collisions, 1);
	rig_done(&rig);
}

static void a_line_of_a_histogram_is_told_from_a_counter_of_that_name(void **state)
{
	static const struct {
		const char *key, *line; /* of the sum, whose name ends like a line of the histogram */
	} cases[] = {
		{ "count", "x.count" }, { "sum", "x.sum" }, { "bucket.0_5", "x.bucket.0_5" },
	};

	for (size_t i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
		struct rig rig;
		char name[32], expected[64];
		const char *found;

		/* Whichever of them comes first. */
		rig_init(&rig, DIALECT_PLAIN, "{metric}");
		snprintf(name, sizeof(name), "x.%s", cases[i / 2].key);
		rig.metrics[0].name = name;
		rig.metrics[2].name = "x";
		rig.options.time_unit = LINES_SECONDS;
		if (i % 2) {
			rig.list[0] = &rig.metrics[2];
			rig.list[2] = &rig.metrics[0];
		}
		add_times(&rig, 0, 0, 1, 0);
		series_add(SERIES(&rig, 0), 77);
		assert_ok(push(&rig, 0));
		assert_int_equal(rig.exporter.stats.name_collisions, 1);
		snprintf(expected, sizeof(expected), "%s%s", cases[i / 2].line, i % 2 ? "_" : ":77|c");
		found = strstr(buf_text(&rig.out), expected);
		assert_non_null(found);
		found = strstr(buf_text(&rig.out), cases[i / 2].line);
		snprintf(expected, sizeof(expected), "%s:", cases[i / 2].line);
		found = strstr(buf_text(&rig.out), expected);
		assert_null(found ? strstr(found + 1, expected) : NULL);
		rig_done(&rig);
	}
}

static void a_series_that_comes_back_has_its_name_again(void **state)
{
	struct rig rig;
	struct series *gone;

	rig_init(&rig, DIALECT_PLAIN, "{metric}.{attributes}");
	begin(&rig);
	gone = SERIES(&rig, 0, "key", "a/b");
	series_add(gone, 1);
	assert_ok(push(&rig, 0));
	series_put(gone);
	begin(&rig);
	assert_ok(push(&rig, 0));
	assert_int_equal(rig.metrics[0].n_series, 0);
	begin(&rig);
	series_add(SERIES(&rig, 0, "key", "a/b"), 5);
	assert_lines(&rig, 0, "a.sum.a_b:5|c");
	assert_int_equal(rig.exporter.stats.name_collisions, 0);
	rig_done(&rig);
}

static void names_of_what_has_ended_are_free_again_after_some_thousands(void **state)
{
	struct rig rig;
	struct series *some;
	char text[32];

	rig_init(&rig, DIALECT_PLAIN, "{metric}.{attributes}");
	for (int i = 0; i < 10000; i++) {
		begin(&rig);
		snprintf(text, sizeof(text), "a/%d", i);
		some = SERIES(&rig, 0, "key", text);
		series_add(some, 1);
		assert_ok(push(&rig, 0));
		series_put(some);
	}
	begin(&rig);
	assert_ok(push(&rig, 0));
	begin(&rig);
	series_add(SERIES(&rig, 0, "key", "a:0"), 5); /* once another's */
	assert_lines(&rig, 0, "a.sum.a_0:5|c");
	assert_int_equal(rig.exporter.stats.name_collisions, 0);
	rig_done(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_that_a_receiver_reads_as_something_else_are_replaced),
		cmocka_unit_test(an_empty_value_is_an_underscore),
		cmocka_unit_test(attributes_that_are_not_there_leave_no_level),
		cmocka_unit_test(what_the_path_has_is_no_tag),
		cmocka_unit_test(tags_of_one_name_and_names_that_are_taken_get_an_underscore),
		cmocka_unit_test(long_values_are_cut_and_stay_apart),
		cmocka_unit_test(a_path_is_bounded),
		cmocka_unit_test(a_shorter_bound_holds_for_every_line),
		cmocka_unit_test(two_series_never_have_one_name),
		cmocka_unit_test(tags_in_another_order_are_the_same_name),
		cmocka_unit_test(values_of_two_types_are_two_series),
		cmocka_unit_test(a_line_of_a_histogram_is_told_from_a_counter_of_that_name),
		cmocka_unit_test(a_series_that_comes_back_has_its_name_again),
		cmocka_unit_test(names_of_what_has_ended_are_free_again_after_some_thousands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "alloc.h"
#include "metric/series.h"
#include "util/duration.h"
#include "view/heat.h"

#define START_NS (UINT64_C(1800000000) * NS_PER_S) /* 08:00:00 */
#define MS_BUCKET 21				    /* (0.98 ms, 1.95 ms] */

struct example {
	struct metric metric;
	struct series *units[2];
	struct heat *heat;
};

static void example_init(struct example *example, size_t n_columns)
{
	*example = (struct example){ .metric = { .name = "call.duration", .unit = "s", .kind = METRIC_HISTOGRAM,
						 .divisor = NS_PER_S, .layout = { 0, -30, 48 } } };
	metric_init_series(&example->metric, NULL);
	for (int i = 0; i < 2; i++) {
		struct attributes attributes;

		attributes_init(&attributes);
		assert_ok(attributes_add_number(&attributes, "unit", i));
		assert_ok(series_get(&example->metric, &attributes, 1, &example->units[i]));
	}
	example->heat = heat_new(&example->metric, n_columns);
	assert_non_null(example->heat);
}

static void example_done(struct example *example)
{
	heat_free(example->heat);
	metric_done_series(&example->metric);
}

/* One collection: of the first unit values of about 1 ms, of the second one of about 16 ms. */
static void collect(struct example *example, uint64_t time_ns, uint64_t fast, uint64_t slow)
{
	const uint64_t first[48] = { [MS_BUCKET] = fast }, second[48] = { [MS_BUCKET + 4] = slow };

	series_begin(&example->metric);
	series_add_histogram(example->units[0], 0, first);
	series_add_histogram(example->units[1], 0, second);
	series_end(&example->metric);
	heat_add(example->heat, &example->metric, time_ns);
}

static void assert_counts(const struct example *example, size_t width, size_t height, size_t n_columns, size_t n_rows,
			  const uint64_t *counts)
{
	struct heat_cells cells;

	assert_ok(heat_cells_init(&cells, example->heat, width, height));
	assert_int_equal(cells.n_columns, n_columns);
	assert_int_equal(cells.n_rows, n_rows);
	for (size_t i = 0; i < n_columns * n_rows; i++)
		assert_int_equal(cells.counts[i], counts[i]);
	heat_cells_done(&cells);
}

static void two_latencies_are_two_rows(void **state)
{
	const uint64_t counts[] = { 900, 800, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 7 };
	struct example example;

	example_init(&example, 10);
	assert_true(heat_is_empty(example.heat));
	assert_counts(&example, 80, 20, 0, 0, NULL);
	collect(&example, START_NS + NS_PER_S, 900, 3);
	collect(&example, START_NS + 2 * NS_PER_S, 800, 0);
	collect(&example, START_NS + 3 * NS_PER_S, 0, 7);
	assert_false(heat_is_empty(example.heat));
	assert_counts(&example, 80, 20, 3, 5, counts);
	example_done(&example);
}

static void what_does_not_fit_is_put_together(void **state)
{
	struct example example;

	example_init(&example, 4);
	for (uint64_t i = 2; i <= 6; i++)
		collect(&example, START_NS + i * NS_PER_S, i, 10 * i); /* the one of 2 has left */
	assert_counts(&example, 3, 5, 3, 5, (const uint64_t[]){ 3, 9, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 30, 90, 60 });
	collect(&example, START_NS + 7 * NS_PER_S, 0, 0);
	collect(&example, START_NS + 7 * NS_PER_S + NS_PER_MS, 1, 2); /* the rest of the last one */
	assert_counts(&example, 2, 4, 2, 3, (const uint64_t[]){ 9, 7, 0, 0, 90, 62 });
	example_done(&example);
}

static void zeros_have_a_row_next_to_the_others(void **state)
{
	const uint64_t zeros[48] = { 7 };
	struct example example;

	example_init(&example, 10);
	for (uint64_t i = 1; i <= 2; i++) {
		series_begin(&example.metric);
		series_add_histogram(example.units[0], 0, zeros);
		series_end(&example.metric);
		heat_add(example.heat, &example.metric, START_NS + i * NS_PER_S);
	}
	assert_counts(&example, 80, 20, 2, 1, (const uint64_t[]){ 7, 7 });
	collect(&example, START_NS + 3 * NS_PER_S, 9, 3);
	assert_counts(&example, 80, 20, 3, 6,
		      (const uint64_t[]){ 7, 7, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3 });
	assert_counts(&example, 80, 3, 3, 3, (const uint64_t[]){ 7, 7, 0, 0, 0, 9, 0, 0, 3 });
	assert_counts(&example, 80, 1, 3, 1, (const uint64_t[]){ 7, 7, 12 });
	example_done(&example);
}

static void levels_rise_with_the_logarithm(void **state)
{
	struct heat_cells cells = { .most = 10000 };

	assert_int_equal(heat_level(&cells, 0), 0);
	assert_int_equal(heat_level(&cells, 1), 1);
	assert_int_equal(heat_level(&cells, 100), 5);
	assert_int_equal(heat_level(&cells, 10000), 9);
	cells.most = 1;
	assert_int_equal(heat_level(&cells, 1), 9);
}

static void the_terminal_shows_limits_times_and_density(void **state)
{
	_cleanup_(buf_done) struct buf out = BUF_INIT;
	struct example example;

	example_init(&example, 30);
	heat_print(example.heat, 80, 24, true, &out);
	assert_string_equal(buf_text(&out), "call.duration: no values\n");
	for (uint64_t i = 1; i <= 30; i++)
		collect(&example, START_NS + i * NS_PER_S, 100, i == 7 ? 1 : i == 9 ? 10 : 0);
	buf_reset(&out);
	heat_print(example.heat, 80, 24, false, &out);
	assert_string_equal(buf_text(&out),
			    "call.duration, all series together\n"
			    "  31.2ms |            ..  ++                                          \n"
			    "  15.6ms |                                                            \n"
			    "  7.81ms |                                                            \n"
			    "  3.91ms |                                                            \n"
			    "  1.95ms |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\n"
			    "         ++---------+---------+---------+---------+---------+---------\n"
			    "          08:00:00  08:00:05  08:00:10  08:00:15  08:00:20  08:00:25\n"
			    "          1 .:-=+*#%@ 100 values in a cell, logarithmic; times in UTC\n");
	example_done(&example);
}

static void the_terminal_has_colours(void **state)
{
	_cleanup_(buf_done) struct buf out = BUF_INIT;
	struct example example;

	example_init(&example, 2);
	collect(&example, START_NS + NS_PER_S, 100, 0);
	heat_print(example.heat, 14, 24, true, &out);
	assert_non_null(strstr(buf_text(&out), "  1.95ms |\033[48;5;227m  \033[0m\n"));
	example_done(&example);
}

static unsigned int count(const char *text, const char *part)
{
	unsigned int n = 0;

	while ((text = strstr(text, part))) {
		text++;
		n++;
	}
	return n;
}

static void the_picture_has_a_cell_for_each_count(void **state)
{
	_cleanup_(buf_done) struct buf out = BUF_INIT;
	struct example example;
	const char *text;

	example_init(&example, 10);
	example.metric.name = "<script>\"&'";
	heat_free(example.heat);
	example.heat = heat_new(&example.metric, 10);
	collect(&example, START_NS + NS_PER_S, 900, 3);
	collect(&example, START_NS + 2 * NS_PER_S, 800, 0);
	heat_svg(example.heat, &out);
	text = buf_text(&out);
	assert_int_equal(count(text, "<title>"), 3);
	/* 5 rows below the name, 2 columns as wide as 60 characters */
	assert_non_null(strstr(text, "x=\"70\" y=\"80\" width=\"420\" height=\"16\"><title>08:00:00.000, 977\xc2\xb5s to 1.95ms: 900<"));
	assert_non_null(strstr(text, "x=\"70\" y=\"16\" width=\"420\" height=\"16\"><title>08:00:00.000, 15.6ms to 31.2ms: 3<"));
	assert_non_null(strstr(text, "x=\"490\" y=\"80\" width=\"420\" height=\"16\"><title>08:00:01.000, "));
	assert_non_null(strstr(text, ": 800<"));
	assert_int_equal(count(text, ">1.95ms |</text>"), 1);
	assert_null(strstr(text, "<script>"));
	assert_non_null(strstr(text, "&#60;script&#62;&#34;&#38;&#39;"));
	example_done(&example);
}

static int draw(const struct example *example)
{
	_cleanup_(buf_done) struct buf out = BUF_INIT;

	heat_svg(example->heat, &out);
	heat_print(example->heat, 80, 24, false, &out);
	return buf_error(&out);
}

static void it_ends_well_without_memory(void **state)
{
	struct example example;
	struct heat *heat = NULL;

	example_init(&example, 10);
	collect(&example, START_NS + NS_PER_S, 900, 3);
	assert_survives_failing_allocations(draw(&example), (void)0);
	assert_survives_failing_allocations((heat = heat_new(&example.metric, 5)) ? 0 : -ENOMEM,
					    heat = heat_free(heat));
	example_done(&example);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_latencies_are_two_rows),
		cmocka_unit_test(what_does_not_fit_is_put_together),
		cmocka_unit_test(zeros_have_a_row_next_to_the_others),
		cmocka_unit_test(levels_rise_with_the_logarithm),
		cmocka_unit_test(the_terminal_shows_limits_times_and_density),
		cmocka_unit_test(the_terminal_has_colours),
		cmocka_unit_test(the_picture_has_a_cell_for_each_count),
		cmocka_unit_test(it_ends_well_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

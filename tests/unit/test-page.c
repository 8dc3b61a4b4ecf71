/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "alloc.h"
#include "metric/series.h"
#include "report/report.h"
#include "util/duration.h"

#define LONG 4000

struct example {
	struct metric metric, *metrics[1];
	struct batch batch;
	struct heat *heats[1];
	struct report report;
};

static void add(struct example *example, const char *text, size_t size)
{
	struct attributes attributes;
	struct series *series;

	attributes_init(&attributes);
	assert_ok(attributes_add_lines(&attributes, "stack", text, size));
	assert_ok(series_get(&example->metric, &attributes, 1, &series));
	series_add_histogram(series, 3000, (const uint64_t[8]){ [5] = 2 });
}

static void add_row(struct grid *grid, const char *text)
{
	grid_add_row(grid, NULL);
	for (unsigned int i = 0; i < grid->n_columns; i++) {
		buf_append_text(&grid->text, text);
		grid_end_cell(grid, 0, LEVEL_PLAIN);
	}
}

static void example_init(struct example *example)
{
	static char stack[LONG];

	*example = (struct example){ .metric = { .scope = "own<i>", .name = "call.\"duration", .unit = "s",
						 .description = "<u>",
						 .kind = METRIC_HISTOGRAM, .divisor = NS_PER_S,
						 .layout = { 0, -30, 8 } } };
	metric_init_series(&example->metric, NULL);
	series_begin(&example->metric);
	memset(stack, 'x', sizeof(stack));
	add(example, stack, sizeof(stack));
	add(example, "<script>a\nb</script>", 20);
	series_end(&example->metric);
	example->metrics[0] = &example->metric;
	example->batch = (struct batch){ 2 * NS_PER_S, NS_PER_S, example->metrics, 1, true };
	example->heats[0] = heat_new(&example->metric, 10);
	heat_add(example->heats[0], &example->metric, 2 * NS_PER_S);
	example->report.batch = &example->batch;
	example->report.heats = example->heats;
	grid_begin(&example->report.facts);
	grid_add_column(&example->report.facts, "fact", NULL, false);
	grid_add_column(&example->report.facts, "value", NULL, false);
	add_row(&example->report.facts, "<h1>&host");
	grid_begin(&example->report.missing);
	grid_add_column(&example->report.missing, "reason", NULL, false);
	add_row(&example->report.missing, "<b>");
}

static void example_done(struct example *example)
{
	heat_free(example->heats[0]);
	grid_done(&example->report.facts);
	grid_done(&example->report.missing);
	metric_done_series(&example->metric);
}

static unsigned int count(const char *text, const char *part)
{
	unsigned int n = 0;

	for (; (text = strstr(text, part)); text++)
		n++;
	return n;
}

static void no_text_becomes_markup(void **state)
{
	_cleanup_(buf_done) struct buf out = BUF_INIT;
	struct example example;
	const char *text;

	example_init(&example);
	assert_ok(report_write(&example.report, &out));
	text = buf_text(&out);
	assert_int_equal(count(text, "<script"), 1);
	assert_int_equal(count(text, "<b>") + count(text, "<i>") + count(text, "call.\"") + count(text, "<u>"), 0);
	assert_int_equal(count(text, "<h1>"), 1);
	assert_int_equal(count(text, "<tr>"), 6); /* three heads, two series, a reason, and no unit */
	assert_non_null(strstr(text, "&#60;script&#62;a"));
	assert_true(out.size > LONG);
	example_done(&example);
}

static int write_again(const struct example *example)
{
	_cleanup_(buf_done) struct buf out = BUF_INIT;

	return report_write(&example->report, &out);
}

static void a_page_is_complete_or_an_error(void **state)
{
	struct example example;

	example_init(&example);
	assert_survives_failing_allocations(write_again(&example), (void)0);
	example_done(&example);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_text_becomes_markup),
		cmocka_unit_test(a_page_is_complete_or_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <string.h>

#include "alloc.h"
#include "export/text/table.h"
#include "metric/series.h"
#include "util/cleanup.h"

#define CONTAINER "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

struct example {
	struct metric metric;
	struct table layout;
};

static void table_add(struct example *table, const char *owner, const char *text, const char *error)
{
	struct attributes attributes;
	struct series *series;

	attributes_init(&attributes);
	if (owner)
		assert_ok(attributes_add_text(&attributes, owner, text, strlen(text)));
	if (error)
		assert_ok(attributes_add_text(&attributes, "error.type", error, strlen(error)));
	assert_ok(series_get(&table->metric, &attributes, 1, &series));
	series_add(series, 1);
}

static void table_init(struct example *table)
{
	*table = (struct example){ .metric = { .name = "example", .unit = "1", .kind = METRIC_SUM, .divisor = 1 } };
	metric_init_series(&table->metric, NULL);
	series_begin(&table->metric);
}

/* The names, then a line a series. */
static void assert_table(struct example *table, const char *expected)
{
	_cleanup_(buf_done) struct buf out = BUF_INIT, scratch = BUF_INIT;
	struct series *series;

	series_end(&table->metric);
	table_find(&table->layout, &table->metric);
	table_append_names(&table->layout, &out);
	metric_for_each_series(series, &table->metric)
		table_widen(&table->layout, series, &scratch);
	metric_for_each_series(series, &table->metric) {
		buf_append_byte(&out, '\n');
		table_append_values(&table->layout, series, &out);
	}
	assert_string_equal(buf_text(&out), expected);
	metric_done_series(&table->metric);
}

static void owners_share_a_column(void **state)
{
	struct example table;

	table_init(&table);
	table_add(&table, "systemd.unit.name", "cron.service", "ENOENT");
	table_add(&table, "process.linux.cgroup", "/", NULL);
	table_add(&table, "container.id", CONTAINER, NULL);
	table_add(&table, NULL, NULL, "EIO");
	assert_table(&table,
		     " by error.type, owner\n"
		     "  ENOENT  cron.service\n"
		     "  -       /           \n"
		     "  -       0123456789ab\n"
		     "  EIO     -           ");
}

static void owners_of_one_kind_keep_their_name(void **state)
{
	struct example table;

	table_init(&table);
	table_add(&table, "systemd.unit.name", "cron.service", NULL);
	table_add(&table, NULL, NULL, NULL);
	assert_table(&table, " by systemd.unit.name\n  cron.service\n  -           ");
}

static void a_cell_has_48_characters_at_most(void **state)
{
	struct example table;

	table_init(&table);
	table_add(&table, "process.linux.cgroup", "/" CONTAINER, NULL);
	assert_table(&table,
		     " by process.linux.cgroup\n  /0123456789abcdef0123456789abcdef0123456789abcd\xe2\x80\xa6");
}

static void table_add_overflow(struct example *table)
{
	struct series *series;

	assert_ok(series_get_overflow(&table->metric, OVERFLOW_SERIES, 1, &series));
	series_add(series, 1);
}

static void what_is_over_the_limit_says_so(void **state)
{
	struct example table;

	table_init(&table);
	table_add(&table, "systemd.unit.name", "cron.service", "EIO");
	table_add_overflow(&table);
	assert_table(&table,
		     " by error.type, systemd.unit.name\n"
		     "  EIO  cron.service       \n"
		     "  (others: over the limit)");
	table_init(&table);
	table_add_overflow(&table);
	assert_table(&table, "\n  (others: over the limit)");
}

static void rows_stay_short_when_memory_ends(void **state)
{
	for (unsigned int n = 0; n < 8; n++) {
		_cleanup_(buf_done) struct buf out = BUF_INIT, scratch = BUF_INIT;
		struct example table;
		struct series *series;

		table_init(&table);
		table_add(&table, "process.linux.cgroup", "/" CONTAINER, "EIO");
		series_end(&table.metric);
		table_find(&table.layout, &table.metric);
		buf_append_text(&out, "before");
		series = table.metric.series[0];
		alloc_fail_at(n);
		table_widen(&table.layout, series, &scratch);
		alloc_end();
		table_append_values(&table.layout, series, &out);
		assert_ok(buf_error(&out));
		assert_true(out.size < 100);
		alloc_fail_at(n);
		table_append_values(&table.layout, series, &out);
		alloc_end();
		assert_true(out.size < 200);
		metric_done_series(&table.metric);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(owners_share_a_column),
		cmocka_unit_test(owners_of_one_kind_keep_their_name),
		cmocka_unit_test(a_cell_has_48_characters_at_most),
		cmocka_unit_test(what_is_over_the_limit_says_so),
		cmocka_unit_test(rows_stay_short_when_memory_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows are found as series are: by a metric of their own, whose series keep what is added up
 * for a row.
 */
#include "view/overview.h"

#include <math.h>
#include <string.h>

#include "metric/bounds.h"
#include "metric/decimal.h"
#include "metric/series.h"
#include "util/array.h"

#define MB 1e6

const struct overview_column overview_columns[] = {
	{ "cpu%", "time on CPUs; 100 % is one CPU", "bpfpush.scheduler.cpu.time", NULL, NULL, OVERVIEW_SHARE, 50, 90 },
	{ "memory", "memory in use, with the page cache", "bpfpush.cgroup.memory.usage", NULL, NULL, OVERVIEW_LEVEL_BYTES, 0,
	  0 },
	{ "tasks", "processes and threads", "bpfpush.cgroup.tasks", NULL, NULL, OVERVIEW_LEVEL, 1e3, 1e4 },
	{ "stall%", "time in which some task was stalled for CPU, memory or I/O", "bpfpush.cgroup.pressure.time",
	  "bpfpush.pressure.resource", NULL, OVERVIEW_STALL, 10, 50 },
	{ "p99wait", "99 of 100 waits for a CPU were shorter than this", "bpfpush.scheduler.run_queue.duration", NULL, NULL,
	  OVERVIEW_P99, 0.01, 0.1 },
	{ "calls/s", "system calls", "bpfpush.syscalls", NULL, NULL, OVERVIEW_RATE, 1e5, 1e6 },
	{ "errs/s", "system calls that failed", "bpfpush.syscalls", "error.type", NULL, OVERVIEW_RATE, 1e3, 1e5 },
	{ "disk-rd", "bytes read from disks per second", "process.disk.io", "disk.io.direction", "read", OVERVIEW_BYTES,
	  10 * MB, 100 * MB },
	{ "disk-wr", "bytes to be written to disks per second", "process.disk.io", "disk.io.direction", "write",
	  OVERVIEW_BYTES, 10 * MB, 100 * MB },
	{ "net-in", "bytes received per second, over TCP and UDP", "process.network.io", "network.io.direction", "receive",
	  OVERVIEW_BYTES, 10 * MB, 100 * MB },
	{ "net-out", "bytes sent per second, over TCP and UDP", "process.network.io", "network.io.direction", "transmit",
	  OVERVIEW_BYTES, 10 * MB, 100 * MB },
	{ "file-rd", "bytes read from files per second, in memory or on disk", "bpfpush.file.io", "disk.io.direction",
	  "read", OVERVIEW_BYTES, 100 * MB, 1000 * MB },
	{ "file-wr", "bytes written to files per second, in memory or on disk", "bpfpush.file.io", "disk.io.direction",
	  "write", OVERVIEW_BYTES, 100 * MB, 1000 * MB },
	{ "conns/s", "TCP connections opened and accepted, and attempts", "bpfpush.tcp.connections", NULL, NULL,
	  OVERVIEW_RATE, 100, 1000 },
	{ "retrans/s", "TCP segments sent again", "bpfpush.tcp.retransmits", NULL, NULL, OVERVIEW_RATE, 1, 100 },
	{ "faults/s", "page faults", "process.paging.faults", NULL, NULL, OVERVIEW_RATE, 1e4, 1e5 },
};
const size_t overview_n_columns = ARRAY_SIZE(overview_columns);

static const struct kind {
	const char *unit; /* NULL: % */
	bool is_level;	  /* of this time; it does not grow */
	bool is_largest;  /* of the series of a row, not their sum */
	bool is_of_units; /* it is not counted for each process */
} kinds[] = {
	[OVERVIEW_RATE] = { .unit = "" },
	[OVERVIEW_BYTES] = { .unit = "By" },
	[OVERVIEW_SHARE] = { .unit = NULL },
	[OVERVIEW_P99] = { .unit = "s", .is_largest = true },
	[OVERVIEW_LEVEL] = { .unit = "", .is_level = true, .is_of_units = true },
	[OVERVIEW_LEVEL_BYTES] = { .unit = "By", .is_level = true, .is_of_units = true },
	[OVERVIEW_STALL] = { .unit = NULL, .is_largest = true, .is_of_units = true },
};

/* Of what numbers are: of the last interval, or of all that is counted. */
struct span {
	double elapsed_s;
	bool is_whole;
};

/* What a series of the rows' metric keeps. */
struct row {
	const struct series *of;
	double numbers[ARRAY_SIZE(overview_columns)];
};

static int add_once(struct setting_list *list, const char *word)
{
	return !word || question_lists(list, word) ? 0 : setting_list_add(list, word);
}

int overview_extend(struct question *question)
{
	int err = 0;

	for (size_t i = 0; i < overview_n_columns && !err; i++)
		err = add_once(&question->metrics, overview_columns[i].metric) ?:
		      add_once(&question->by, overview_columns[i].attribute);
	return err;
}

bool overview_has_processes(const struct batch *batch)
{
	struct metric *metric;
	struct series *series;

	batch_for_each_metric(metric, batch)
		metric_for_each_series(series, metric)
			for (size_t i = 0; i < overview_n_columns; i++)
				if (!strcmp(metric->name, overview_columns[i].metric) &&
				    array_find(series->attributes, series->n_attributes, "process.pid"))
					return true;
	return false;
}

bool overview_needs(const char *word)
{
	for (size_t i = 0; i < overview_n_columns; i++)
		if (overview_columns[i].attribute &&
		    question_is_named(word, overview_columns[i].attribute))
			return true;
	return false;
}

static bool counts_series(const struct overview_column *column, const struct series *series)
{
	for (unsigned int i = 0; i < series->n_attributes; i++)
		if (column->attribute && !strcmp(series->attributes[i].name, column->attribute))
			return !column->value || (series->attributes[i].type == ATTRIBUTE_TEXT &&
						  !strcmp(series->attributes[i].text,
							  column->value));
	return !column->attribute;
}

static double compute_number(const struct overview_column *column, const struct series *series,
			     const struct span *span)
{
	const struct numbers *numbers = span->is_whole ? &series->total : &series->delta;
	double divisor = (double)series->metric->divisor,
		rate = (double)numbers->sum / divisor / span->elapsed_s;
	const struct kind *kind = &kinds[column->kind];

	if (column->kind == OVERVIEW_P99)
		return bounds_quantile(series->metric, numbers, 0.99);
	if (kind->is_level)
		return (double)(int64_t)series->total.sum / divisor;
	/* a short interval may get the time of a longer one, see usage.bpf.c */
	if (column->kind == OVERVIEW_STALL)
		return rate < 1 ? rate * 100 : 100;
	return kind->unit ? rate : rate * 100;
}

static struct row *find_row(struct metric *rows, const struct question *question,
			    const struct series *series)
{
	struct attributes attributes;
	struct series_cache *cache;
	struct series *own;

	question_choose(question, series, &attributes);
	if (series_is_overflow(series))
		(void)attributes_add_flag(&attributes, "otel.metric.overflow", true);
	if (series_get(rows, &attributes, 0, &own))
		return NULL;
	cache = series_cache(own, rows) ?: series_cache_new(own, rows, NULL, sizeof(struct row));
	if (cache)
		((struct row *)cache->data)->of = ((struct row *)cache->data)->of ?: series;
	return cache ? (struct row *)cache->data : NULL;
}

static void add_metric(struct metric *rows, const struct question *question,
		       const struct metric *metric, const struct span *span, bool *has)
{
	struct series *series;

	metric_for_each_series(series, metric) {
		struct row *row = find_row(rows, question, series);

		for (size_t i = 0; i < overview_n_columns && row; i++) {
			const struct overview_column *column = &overview_columns[i];
			double *sum = &row->numbers[i], more;

			if (strcmp(column->metric, metric->name) || !counts_series(column, series))
				continue;
			more = compute_number(column, series, span);
			*sum = kinds[column->kind].is_largest ? fmax(*sum, more) : *sum + more;
			has[i] = true;
		}
	}
}

static void append_number(struct buf *out, const struct overview_column *column, double value)
{
	const struct kind *kind = &kinds[column->kind];

	/* a level may be less than 0 for a moment */
	if (value <= 0 && (kind->is_level || kind->is_largest))
		buf_append_byte(out, '-');
	else if (!kind->unit)
		buf_printf(out, "%.1f", value);
	else if (!value)
		buf_append_byte(out, '0');
	else
		decimal_human(out, value, kind->unit);
	/* 64.0K, since columns are narrow */
	if (out->size > 2 && !memcmp(out->data + out->size - 2, "iB", 2))
		out->size -= 2;
}

static void end_row(struct grid *grid, const struct question *question, const struct row *row,
		    const bool *has)
{
	grid_add_row(grid, row->of);
	for (size_t i = 0; i < question->by.n_items; i++) {
		const char *word = question->by.items[i];

		grid_end_attribute(grid, row->of, question_find(word, row->of),
				   !i && question_is_named(word, "process.pid") ? "(brief)" : "-");
	}
	for (size_t i = 0; i < overview_n_columns; i++) {
		const struct overview_column *column = &overview_columns[i];
		double value = row->numbers[i];
		enum level level = value <= 0 ? LEVEL_NONE : LEVEL_PLAIN;

		if (!has[i])
			continue;
		append_number(&grid->text, column, value);
		if (column->high && value >= column->high)
			level = LEVEL_HIGH;
		if (column->alarm && value >= column->alarm)
			level = LEVEL_ALARM;
		grid_end_cell(grid, value, level);
	}
}

void overview_fill(struct grid *grid, const struct question *question, const struct batch *batch,
		   uint64_t begin_ns)
{
	const struct span span =
		{ (double)(batch->time_ns - (begin_ns ?: batch->previous_ns)) / 1e9,
			begin_ns != 0 };
	bool has[ARRAY_SIZE(overview_columns)] = { 0 };
	struct metric rows = { .name = "" }, *metric;
	bool is_of_processes = question_lists(&question->by, "process.pid");

	metric_init_series(&rows, NULL);
	grid_begin(grid);
	for (size_t i = 0; i < question->by.n_items; i++)
		grid_add_column(grid, grid_heading(question->by.items[i]), NULL, false);
	batch_for_each_metric(metric, batch) {
		bool is_used = false;

		for (size_t i = 0; i < overview_n_columns; i++)
			if (!strcmp(overview_columns[i].metric, metric->name) &&
			    !(is_of_processes && kinds[overview_columns[i].kind].is_of_units)) {
				has[i] = !kinds[overview_columns[i].kind].is_level;
				is_used = true;
			}
		if (is_used)
			add_metric(&rows, question, metric, &span, has);
	}
	for (size_t i = 0; i < overview_n_columns; i++)
		if (has[i])
			grid_add_column(grid, overview_columns[i].heading,
					overview_columns[i].about, true);
	for (size_t i = 0; i < rows.n_series; i++)
		if (rows.series[i]->caches)
			end_row(grid, question, (const struct row *)rows.series[i]->caches->data,
				has);
	if (grid->n_columns > question->by.n_items)
		grid_sort(grid, (unsigned int)question->by.n_items, false);
	metric_done_series(&rows);
}

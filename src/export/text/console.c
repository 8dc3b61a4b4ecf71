/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table for people: one block per metric, one line per series. Series that grew most come
 * first, after those that count what had no room.
 *
 *     bpfpush.syscall.count (call), 1 of 37, by bpfpush.syscall.name, systemd.unit.name
 *       read  cron.service          1234    12.3/s
 *     bpfpush.syscall.duration (s) by bpfpush.syscall.name
 *       read             12    1.2/s  mean 3.20ms  p50 2.00ms  p90 8.00ms  p99 9.00ms  ▁▃█▂
 *
 * On a terminal, each collection replaces the last one, and shows as many lines of each metric as
 * fit. Elsewhere, and for a single batch, all lines are written, one collection after the other,
 * unless their number is limited.
 */
#include <string.h>
#include <time.h>

#include "export/bounds.h"
#include "export/decimal.h"
#include "export/text/output.h"
#include "export/text/table.h"
#include "util/duration.h"

#define NUMBER_WIDTH	 12
#define SECONDS(ns)	 ((double)(ns) / 1e9)
#define SCREEN_CLEAR	 "\033[2J"
#define SCREEN_HOME	 "\033[H"
#define SCREEN_LINE_END	 "\033[K"
#define SCREEN_REST	 "\033[J"

struct page {
	const struct batch *batch;
	struct buf *out;
	bool is_screen;
	unsigned int columns, lines;
	size_t rows;	/* of one metric, at most */
	size_t n_left;	/* series that were not shown */
};

struct console_options {
	struct output_options output; /* first, as output_open() expects */
	uint64_t limit_rows;
};

static void append_line(struct page *page, struct buf *line)
{
	if (page->is_screen) {
		text_append_cut(page->out, buf_text(line), page->columns);
		buf_append_text(page->out, SCREEN_LINE_END);
	} else {
		buf_append(page->out, line->data, line->size);
	}
	buf_append_byte(page->out, '\n');
	if (buf_error(line))
		page->out->error = buf_error(line);
	buf_reset(line);
}

static void append_right(struct buf *line, struct buf *number, unsigned int width)
{
	unsigned int taken = text_width(buf_text(number));

	buf_printf(line, "%*s%s", taken < width ? (int)(width - taken) : 1, "", buf_text(number));
	buf_reset(number);
}

/* Heights of the buckets that hold something, and of those between them. */
static void append_bars(struct buf *line, const struct series *series)
{
	static const char *const bars[] = { "\xe2\x96\x81", "\xe2\x96\x82", "\xe2\x96\x83", "\xe2\x96\x84",
					    "\xe2\x96\x85", "\xe2\x96\x86", "\xe2\x96\x87", "\xe2\x96\x88" };
	const uint64_t *bucket = series->total.bucket;
	uint32_t first = 0, end = series->metric->layout.n_buckets;
	uint64_t most = 1;

	bounds_trim(bucket, &first, &end);
	for (uint32_t i = first; i < end; i++)
		most = bucket[i] > most ? bucket[i] : most;
	for (uint32_t i = first; i < end; i++)
		buf_append_text(line, bucket[i] ? bars[(size_t)(7.0 * (double)bucket[i] / (double)most)] : " ");
}

static void append_histogram(struct buf *line, const struct series *series)
{
	const struct metric *metric = series->metric;
	const struct numbers *total = &series->total;
	const struct {
		const char *name;
		double value;
	} columns[] = {
		{ "mean", (double)total->sum / (double)metric->divisor / (double)total->count },
		{ "p50", bounds_quantile(metric, total, 0.5) },
		{ "p90", bounds_quantile(metric, total, 0.9) },
		{ "p99", bounds_quantile(metric, total, 0.99) },
	};
	_cleanup_(buf_done) struct buf number = BUF_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		buf_reset(&number);
		if (!i && metric->layout.has_no_sum)
			buf_append_byte(&number, '-');
		else
			decimal_human(&number, columns[i].value, metric->unit, false);
		buf_printf(line, "  %s %-7s", columns[i].name, buf_text(&number));
	}
	buf_append_text(line, "  ");
	append_bars(line, series);
}

/* The number that is shown for a series, as the kernel counts it. */
static uint64_t shown(const struct series *series, const struct numbers *numbers)
{
	return series->metric->kind == METRIC_HISTOGRAM ? numbers->count : numbers->sum;
}

static void append_numbers(const struct page *page, struct buf *line, const struct series *series)
{
	const struct metric *metric = series->metric;
	bool is_histogram = metric->kind == METRIC_HISTOGRAM;
	uint64_t elapsed_ns = page->batch->time_ns - page->batch->previous_ns;
	uint64_t total = shown(series, &series->total), divisor = is_histogram ? 1 : metric->divisor;
	const char *unit = is_histogram ? "" : metric->unit;
	_cleanup_(buf_done) struct buf number = BUF_INIT;

	if (metric->kind != METRIC_GAUGE && (!strcmp(unit, "s") || !strcmp(unit, "By")))
		decimal_human(&number, (double)total / (double)divisor, unit, false);
	else
		decimal_quotient(&number, total, divisor, metric->kind == METRIC_GAUGE);
	append_right(line, &number, NUMBER_WIDTH);
	if (metric->kind == METRIC_GAUGE)
		return;
	if (elapsed_ns)
		decimal_human(&number, (double)shown(series, &series->delta) / (double)divisor / SECONDS(elapsed_ns),
			      unit, true);
	append_right(line, &number, NUMBER_WIDTH);
	if (is_histogram && total)
		append_histogram(line, series);
}

/* For qsort(): the overflow series first, then the growth, the total, and for an order that stays, the hash. */
static int by_growth(const void *left_, const void *right_)
{
	const struct series *left = *(struct series *const *)left_, *right = *(struct series *const *)right_;
	const uint64_t keys[][2] = {
		{ series_is_overflow(left), series_is_overflow(right) },
		{ shown(left, &left->delta), shown(right, &right->delta) },
		{ shown(left, &left->total), shown(right, &right->total) },
		{ left->hash, right->hash },
	};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (keys[i][0] != keys[i][1])
			return keys[i][0] > keys[i][1] ? -1 : 1;
	return 0;
}

/* The values of the attributes, as wide as the widest of the metric or the screen allows, then the numbers. */
static void append_rows(struct page *page, struct table *table, struct series *const *series, size_t n)
{
	unsigned int limit = page->columns > 2 * NUMBER_WIDTH ? page->columns - 2 * NUMBER_WIDTH : 1;
	_cleanup_(buf_done) struct buf values = BUF_INIT, line = BUF_INIT;
	bool is_cut;

	for (size_t row = 0; row < n; row++)
		table_widen(table, series[row], &values);
	is_cut = page->is_screen && table->width > limit;
	for (size_t row = 0; row < n; row++) {
		buf_reset(&values);
		table_append_values(table, series[row], is_cut ? &values : &line);
		if (is_cut)
			text_append_cut(&line, buf_text(&values), limit);
		append_numbers(page, &line, series[row]);
		append_line(page, &line);
	}
	if (buf_error(&values))
		page->out->error = buf_error(&values);
}

/* "{call}" is UCUM's way to write a plain word. */
static void append_heading(struct buf *line, const struct metric *metric)
{
	size_t size = strlen(metric->unit), at = metric->unit[0] == '{' && metric->unit[size - 1] == '}';

	buf_printf(line, "%s (%.*s)", metric->name, (int)(size - 2 * at), metric->unit + at);
}

/* What the numbers below lack. */
static void append_loss(struct buf *line, const struct loss *loss)
{
	if (!loss->missed)
		return;
	buf_append_text(line, ", ");
	loss_append(loss, line);
	buf_append_text(line, " missed");
}

static void append_metric(struct page *page, const struct metric *metric, size_t shown)
{
	size_t n;
	_cleanup_(freep) struct series **sorted = columns_sort(metric, by_growth, page->out, &n);
	_cleanup_(buf_done) struct buf line = BUF_INIT;
	struct table table;

	if (!n)
		return;
	table_find(&table, metric);
	append_heading(&line, metric);
	append_loss(&line, &metric->loss);
	if (shown < n)
		buf_printf(&line, ", %zu of %zu", shown, n);
	if ((shown < n || metric->loss.missed) && (table.n_places || table.owner))
		buf_append_byte(&line, ',');
	table_append_names(&table, &line);
	append_line(page, &line);
	append_rows(page, &table, sorted, shown);
	page->n_left += n - shown;
}

static void append_title(struct page *page)
{
	uint64_t length_ns = page->batch->time_ns - page->batch->previous_ns;
	time_t now = (time_t)(page->batch->time_ns / NS_PER_S);
	_cleanup_(buf_done) struct buf line = BUF_INIT;
	char text[32] = "";
	struct tm tm;

	if (gmtime_r(&now, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
	if (length_ns < NS_PER_S)
		buf_printf(&line, "%s UTC, %.1f ms", text, SECONDS(length_ns) * 1e3);
	else
		buf_printf(&line, "%s UTC, %.1f s", text, SECONDS(length_ns));
	append_line(page, &line);
}

/* The lines of all metrics, each with a heading and with no more rows than that. */
static size_t count_lines(const struct batch *batch, size_t rows)
{
	struct metric *metric;
	size_t n_lines = 0;

	batch_for_each_metric(metric, batch) {
		size_t n = columns_count(metric);

		n_lines += n ? 1 + (n < rows ? n : rows) : 0;
	}
	return n_lines;
}

/*
 * On a screen that is too small, no metric gets more rows than all others can have. If one row for each
 * is too much, the last metrics are only counted.
 */
static void append_page(struct page *page)
{
	/* Besides the title and the line that the cursor stays on. */
	size_t left = page->lines > 3 ? page->lines - 2 : 1, rows = page->rows, n_hidden = 0;
	struct metric *metric;
	bool is_cut;

	if (page->is_screen && rows > left)
		rows = left;
	while (page->is_screen && rows > 1 && count_lines(page->batch, rows) > left)
		rows--;
	is_cut = page->is_screen && count_lines(page->batch, rows) > left;
	batch_for_each_metric(metric, page->batch) {
		size_t n = columns_count(metric);

		n = n < rows ? n : rows;
		if (is_cut && n && left < 3) { /* with the line that says how many are hidden */
			n_hidden++;
			continue;
		}
		append_metric(page, metric, n);
		left -= is_cut && n ? 1 + n : 0;
	}
	if (n_hidden)
		buf_printf(page->out, "\xe2\x80\xa6 %zu more metric%s" SCREEN_LINE_END "\n", n_hidden,
			   plural(n_hidden));
}

static int console_push(struct exporter *exporter, const struct batch *batch)
{
	struct output *output = exporter->state;
	const struct console_options *options = (const struct console_options *)output->options;
	struct page page = {
		.batch = batch,
		.out = &output->out,
		.is_screen = output->is_terminal && !exporter->context->is_once,
		.rows = options->limit_rows ? options->limit_rows : SIZE_MAX,
	};

	if (!output_is_ready(exporter, batch))
		return 0;
	if (page.is_screen) {
		output_window(output, &page.columns, &page.lines);
		buf_append_text(page.out, exporter->stats.requests ? SCREEN_HOME : SCREEN_CLEAR SCREEN_HOME);
	}
	append_title(&page);
	append_page(&page);
	if (page.n_left && exporter->context->is_once)
		buf_printf(page.out, "\xe2\x80\xa6 %zu more series; --rows=0 shows all\n", page.n_left);
	if (page.is_screen)
		buf_append_text(page.out, SCREEN_REST);
	else if (!exporter->context->is_once)
		buf_append_byte(page.out, '\n');
	return output_flush(exporter, batch);
}

static const struct setting_row rows[] = {
	SETTING(struct console_options, output.path, "path", SETTING_TEXT, "-"),
	SETTING(struct console_options, limit_rows, "rows", SETTING_U64, "0"),
};
static const struct setting_table console_settings = SETTING_TABLE(rows, struct console_options);

const struct exporter_ops console_exporter = {
	.type = "console",
	.settings = &console_settings,
	OUTPUT_OPS,
	.push = console_push,
};

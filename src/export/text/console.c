/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table for people: a grid for each metric, those series first that grew most.
 *
 *     2027-01-15 08:00:20 UTC, 10.0 s
 *
 *     bpfpush.syscalls (call), 1.28 % missed
 *       unit          syscall.name  total    rate
 *       cron.service  read           1234  12.3/s
 *       … 36 more
 *
 * A terminal gets colours, and lines that are as wide as it is; anything else gets all of the
 * texts.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "export/text/output.h"
#include "util/duration.h"
#include "view/grid.h"
#include "view/histogram.h"

struct console_options {
	struct output_options output; /* first, as output_open() expects */
	char *sort;
	uint64_t limit;
	bool has_histograms;
};

struct page {
	const struct console_options *options;
	unsigned int width; /* 0: any */
	bool has_colour;
	struct buf *out;
	struct grid grid;
	bool is_cut; /* some series were not shown */
};

static void append_title(struct page *page, const struct batch *batch)
{
	double seconds = (double)(batch->time_ns - batch->previous_ns) / (double)NS_PER_S;
	bool is_short = seconds < 1;
	const char *unit = is_short ? "ms" : "s";
	time_t now = (time_t)(batch->time_ns / NS_PER_S);
	char text[32] = "";
	struct tm tm;

	if (gmtime_r(&now, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
	buf_printf(page->out, "%s UTC, %.1f %s\n", text, is_short ? seconds * 1e3 : seconds, unit);
}

/* Which series it is of, as "unit cron.service, syscall.name read". */
static void append_histogram(struct page *page, size_t row)
{
	const struct grid *grid = &page->grid;
	const struct series *series = grid->rows[row];

	buf_append_byte(page->out, '\n');
	for (unsigned int i = 0; i < grid->n_columns && strcmp(grid->columns[i].heading, "count"); i++)
		buf_printf(page->out, "%s%s %s", i ? ", " : "  ", grid->columns[i].heading,
			   grid_text(grid, &grid->cells[row * grid->n_columns + i]));
	buf_append_text(page->out, series->n_attributes ? "\n" : "");
	histogram_print(series->metric, series->total.bucket, page->width, page->out);
}

static void append_metric(struct page *page, const struct metric *metric, uint64_t elapsed_ns)
{
	struct grid *grid = &page->grid;
	unsigned int column;

	grid_of_metric(grid, metric, elapsed_ns, GRID_BOTH);
	if (!grid->n_rows && !buf_error(&grid->text))
		return;
	column = page->options->sort ? grid_find_column(grid, page->options->sort) :
		 grid->n_columns;
	if (column < grid->n_columns)
		grid_sort(grid, column, false);
	grid_limit(grid, page->options->limit);
	page->is_cut |= grid->n_left > 0;
	buf_append_byte(page->out, '\n');
	grid_print(grid, page->width, page->has_colour, page->out);
	if (page->options->has_histograms && metric->kind == METRIC_HISTOGRAM)
		for (size_t row = 0; row < grid->n_rows; row++)
			append_histogram(page, row);
}

bool output_has_colour(int fd, unsigned int *ret_width)
{
	const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
	struct winsize size = { 0 };
	bool is_terminal = !ioctl(fd, TIOCGWINSZ, &size);

	*ret_width = size.ws_col ?: 80;
	return is_terminal && !(no_colour && *no_colour) && term && strcmp(term, "dumb");
}

static int console_push(struct exporter *exporter, const struct batch *batch)
{
	struct output *output = exporter->state;
	struct page page = {
		.options = exporter->options,
		.out = &output->out,
	};
	struct metric *metric;

	if (!output_is_ready(exporter, output_count(batch)))
		return 0;
	if (output->is_terminal)
		page.has_colour = output_has_colour(output->fd, &page.width);
	if (exporter->context->is_once && exporter->stats.requests)
		buf_append_byte(page.out, '\n');
	append_title(&page, batch);
	batch_for_each_metric(metric, batch)
		append_metric(&page, metric, batch->time_ns - batch->previous_ns);
	if (page.is_cut && exporter->context->is_once && batch->is_last)
		buf_append_text(page.out, "\n--limit=0 shows all series\n");
	if (!exporter->context->is_once)
		buf_append_byte(page.out, '\n');
	grid_done(&page.grid);
	return output_flush(exporter, output_count(batch));
}

static const struct setting_row rows[] = {
	SETTING(struct console_options, output.path, "path", SETTING_TEXT, "-"),
	SETTING(struct console_options, sort, "sort", SETTING_TEXT, NULL),
	SETTING(struct console_options, limit, "limit", SETTING_U64, "0"),
	SETTING(struct console_options, has_histograms, "histogram", SETTING_BOOL, "no"),
};
static const struct setting_table console_settings = SETTING_TABLE(rows, struct console_options);

const struct exporter_ops console_exporter = {
	.type = "console",
	.settings = &console_settings,
	OUTPUT_OPS,
	.push = console_push,
};

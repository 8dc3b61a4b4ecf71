/* SPDX-License-Identifier: Apache-2.0 */
#include "top/draw.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/status/page.h"
#include "top/screen.h"
#include "util/duration.h"
#include "view/histogram.h"

#define LINES_FOR_BELOW 16 /* of a screen that has more about the chosen row below the rows */
#define LINES_FOR_TITLE 6  /* of one that has more than rows */

static const struct {
	const char *name, *keys;
} kinds[] = {
	[PAGE_OVERVIEW] = { "", "h help  Enter detail  Tab metrics  p processes  <> sort  / filter  q quit" },
	[PAGE_DETAIL] = { "all metrics", "h help  Esc back  Enter metric  p processes  / filter  Space pause  q quit" },
	[PAGE_METRICS] = { "metrics", "h help  Esc back  Enter metric  p processes  <> sort  / filter  q quit" },
	[PAGE_METRIC] = { "", "h help  Esc back  p processes  <> sort  / filter  Space pause  q quit" },
	[PAGE_HELP] = { "help", "Esc back  q quit" },
};

/* The machine's use, in % of a CPU. NAN: it is not counted. */
static double machine_share(const struct batch *batch)
{
	struct metric *metric;
	struct series *series;
	double sum_ns = NAN;

	batch_for_each_metric(metric, batch) {
		if (strcmp(metric->name, "bpfpush.scheduler.cpu.time"))
			continue;
		sum_ns = 0;
		metric_for_each_series(series, metric)
			sum_ns += (double)series->delta.sum;
	}
	return sum_ns / (double)(batch->time_ns - batch->previous_ns) * 100;
}

void draw_heading(const struct top *top, const char *length, struct buf *out)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	double share;

	if (top->batch) {
		heat_append_time(out, top->batch->time_ns, 0);
		buf_append_text(out, " UTC, ");
	}
	buf_append_text(out, length);
	if (!top->batch)
		return;
	share = machine_share(top->batch);
	if (!isnan(share))
		buf_printf(out, ", machine %.1f of %ld00 %%", share, n);
	if (top->agent)
		buf_printf(out, ", agent %.1f %%", top->agent_share);
	else if (top->event)
		buf_append_text(out, ", by the service");
}

static void put_styled(unsigned int line, const char *style, struct buf *text)
{
	_cleanup_(buf_done) struct buf styled = BUF_INIT;

	buf_printf(&styled, "%s%s", style, buf_text(text));
	screen_put(line, buf_text(&styled), false);
	buf_reset(text);
}

/* The keys that sort by a column show it, too. */
static void append_more(const struct grid *grid, struct buf *out)
{
	struct grid_layout layout;

	grid_lay_out(grid, screen_columns(), 0, &layout);
	if (layout.n_out)
		buf_printf(out, "  \xe2\x96\xb8 %u more column%s: \xe2\x86\x92", layout.n_out, plural(layout.n_out));
}

static void put_line(const struct line *of, unsigned int line, bool is_chosen)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	struct grid_layout layout;

	if (of->kind == LINE_TITLE) {
		buf_printf(&text, SGR_TITLE "%s", buf_text((struct buf *)&of->grid->title));
		append_more(of->grid, &text);
	} else {
		grid_lay_out(of->grid, screen_columns(), 0, &layout);
		grid_print_row(of->grid, &layout, of->row, true, &text);
	}
	screen_put(line, buf_text(&text), is_chosen);
}

/* It comes first, since the line may be cut. */
static void append_state(const struct top *top, struct buf *out)
{
	if (*top->state)
		buf_printf(out, "%s; ", top->state);
	else if (top->is_paused)
		buf_printf(out, "paused for %u s; ", top->paused_s);
	else if (!top->batch)
		buf_append_text(out, "counting; ");
}

static void append_title(const struct top *top, struct buf *out)
{
	const struct content *content = &top->content;
	const struct page *page = top->page;

	buf_append_text(out, page->name ?: kinds[page->kind].name);
	if (content->n_grids == 1 && content->grids->title.size)
		buf_printf(out, "%s%s", out->size ? ": " : "", buf_text(&top->content.grids->title));
	if (content->n_grids == 1 && page->kind == PAGE_OVERVIEW) {
		buf_append_text(out, out->size ? ": " : "");
		if (content->n_lines < content->n_rows)
			buf_printf(out, "%zu of ", content->n_lines);
		buf_printf(out, "%zu row%s", content->n_rows, plural(content->n_rows));
	}
	if (top->is_whole && top->batch && page->kind != PAGE_HELP) {
		uint64_t s = (top->batch->time_ns - top->begin_ns) / NS_PER_S;

		buf_printf(out, "%ssince counting began, %" PRIu64 ":%02" PRIu64 ":%02" PRIu64 " ago", out->size ? ", " : "",
			   s / 3600, s / 60 % 60, s % 60);
	}
	if (top->is_typing || *page->filter)
		buf_printf(out, ", only with \"%s%s\"", page->filter, top->is_typing ? "_" : "");
	if (content->n_grids == 1)
		append_more(content->grids, out);
}

/* Broken between words, as far as there are some. */
static void append_folded(struct buf *out, const char *text, unsigned int width)
{
	for (size_t n; *text; text += n + strspn(text + n, " ")) {
		n = grid_fit(text, width) ?: strlen(text);
		for (size_t i = n; text[n] && i; i--)
			if (text[i] == ' ') {
				n = i;
				break;
			}
		buf_append(out, text, n);
		buf_append_byte(out, '\n');
	}
}

/* As many lines as it takes, but of a quarter of the screen. Returns the next line. */
static unsigned int put_problems(unsigned int line, const char *problems)
{
	unsigned int end = line + screen_lines() / 4;
	_cleanup_(buf_done) struct buf lines = BUF_INIT, text = BUF_INIT;
	char *rest, *at;

	append_folded(&lines, problems, screen_columns());
	rest = (char *)buf_text(&lines);
	while (line < end && (at = strsep(&rest, "\n")) && *at) {
		buf_append_text(&text, at);
		put_styled(line++, SGR_ALARM, &text);
	}
	return line;
}

/* Returns how many lines it took. */
static unsigned int draw_top(const struct top *top)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT, problems = BUF_INIT;
	unsigned int line = 0;
	const char *message;
	char every[32];

	snprintf(every, sizeof(every), "every %g s", (double)top->options.interval_ns / 1e9);
	buf_append_text(&text, "bpfpush ");
	append_state(top, &text);
	draw_heading(top, every, &text);
	put_styled(line++, SGR_CHOSEN, &text);
	if (screen_lines() < LINES_FOR_TITLE)
		return line;
	if (top->agent)
		page_append_problems(top->agent, "", "; ", &problems);
	buf_append_text(&problems, top->problems ?: "");
	message = *top->note ? top->note : screen_message();
	buf_printf(&problems, "%s%s", problems.size && *message ? "; " : "", message);
	line = put_problems(line, buf_text(&problems));
	append_title(top, &text);
	put_styled(line++, SGR_TITLE, &text);
	return line;
}

static void append_histogram(const struct top *top, const struct series *series, struct buf *out)
{
	const struct numbers *numbers = top->is_whole ? &series->total : &series->delta;

	histogram_print(series->metric, numbers->bucket, screen_columns(), out);
}

/*
 * About the chosen row, in lines: the buckets of a histogram, or how they came over time; or the
 * last text of the row, if it is cut.
 */
static void append_below(const struct top *top, unsigned int height, struct buf *out)
{
	const struct page *page = top->page;
	unsigned int width = screen_columns(), last;
	struct grid_layout layout;
	const struct line *line;
	const char *text;

	if (page->cursor >= top->content.n_lines)
		return;
	line = &top->content.lines[page->cursor];
	if (page->heat && top->options.is_heatmap)
		heat_print(page->heat, width - 1, height, screen_has_colours(), out);
	else if (page->heat && line->kind == LINE_ROW)
		append_histogram(top, line->grid->rows[line->row], out);
	if (page->kind != PAGE_METRICS && page->kind != PAGE_HELP)
		return;
	grid_lay_out(line->grid, width, 0, &layout);
	last = line->grid->n_columns - 1;
	text = grid_text(line->grid, &line->grid->cells[line->row * line->grid->n_columns + last]);
	if (layout.widths[last] < grid_width(text))
		append_folded(out, text, width);
}

/* Returns how many lines it took. */
static unsigned int draw_below(const struct top *top)
{
	unsigned int most = screen_lines() / 2, n = 0, line;
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	char *rest, *at;

	if (screen_lines() >= LINES_FOR_BELOW)
		append_below(top, most, &text);
	rest = (char *)buf_text(&text);
	for (at = rest; (at = strchr(at, '\n')); at++)
		n++;
	n = n < most ? n : most;
	line = screen_lines() - 1 - n;
	while (line < screen_lines() - 1 && (at = strsep(&rest, "\n")))
		screen_put(line++, at, false);
	return n;
}

/* Shows n_lines of the page, with the chosen one. */
static void scroll_page(struct page *page, size_t n_lines, size_t n_all)
{
	if (page->cursor < page->first)
		page->first = page->cursor;
	if (page->cursor >= page->first + n_lines)
		page->first = page->cursor - n_lines + 1;
	if (page->first + n_lines > n_all) /* the screen has grown, or there are fewer */
		page->first = n_all > n_lines ? n_all - n_lines : 0;
}

void draw(struct top *top)
{
	const struct content *content = &top->content;
	_cleanup_(buf_done) struct buf keys = BUF_INIT;
	unsigned int line = draw_top(top), bottom;
	bool has_keys;

	if (content->n_grids == 1 && screen_lines() > line + 2)
		put_line(&(struct line){ LINE_HEADINGS, content->grids, GRID_HEADINGS },
			 line++, false);
	has_keys = screen_lines() > line + 1;
	buf_append_text(&keys, top->is_typing ? "type a part of a name; Enter keeps it, Esc shows all" :
						kinds[top->page->kind].keys);
	if (top->page->heat && !top->is_typing)
		buf_append_text(&keys, "  H heat map");
	if (has_keys)
		put_styled(screen_lines() - 1, SGR_CHOSEN, &keys);
	bottom = screen_lines() - has_keys - draw_below(top);
	top->n_shown = bottom > line ? bottom - line : 1;
	scroll_page(top->page, top->n_shown, content->n_lines);
	for (size_t i = top->page->first; i < content->n_lines && line < bottom; i++, line++)
		put_line(&content->lines[i], line, i == top->page->cursor);
	screen_show();
}

void top_fill(struct top *top)
{
	size_t *cursor = &top->page->cursor, n;

	if (!top->is_filled)
		page_fill(top->page, top->is_whole ? top->begin_ns : 0, &top->content);
	top->is_filled = true;
	n = top->content.n_lines;
	if (*cursor >= n)
		*cursor = n ? n - 1 : 0;
}

void top_show(struct top *top)
{
	if (!top->is_screen)
		return;
	top_fill(top);
	draw(top);
}

void top_stop(struct top *top)
{
	if (top->agent)
		agent_stop(top->agent);
	else if (top->event)
		sd_event_exit(top->event, 0);
}

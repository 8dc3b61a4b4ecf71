/* SPDX-License-Identifier: Apache-2.0 */
#include "top/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "top/script.h"
#include "util/array.h"
#include "util/utf8.h"
#include "view/overview.h"

#define DETAIL_ROWS 10	       /* of each metric */
#define HEAT_COLUMNS 300       /* collections that are kept */
#define COMMAND_LINE_BYTES 4096

struct page *page_new(enum page_kind kind, struct page *below, const struct setting_list *by,
		      const struct setting_list *where)
{
	static char unit[] = "unit";
	static char *const units[] = { unit };
	static const struct setting_list by_unit = { .items = (char **)units, .n_items = 1 }, none;
	struct page *page = calloc(1, sizeof(*page));
	/* what is asked here has been checked, or is made here */
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	int err = page ? 0 : -ENOMEM;

	if (!err)
		*page = (struct page){ .kind = kind };
	if (!by || !by->n_items)
		by = kind == PAGE_OVERVIEW ? &by_unit : &none;
	for (size_t i = 0; !err && where && i < where->n_items; i++)
		err = setting_list_add(&page->where, where->items[i]);
	err = err ?: question_init(&page->question, by, &page->where, &diag);
	if (!err && kind == PAGE_OVERVIEW)
		err = question_init(&page->rows, by, &none, &diag) ?:
		      overview_extend(&page->question);
	if (err) {
		page_free(page);
		return NULL;
	}
	page->below = below;
	return page;
}

struct page *page_free(struct page *page)
{
	struct page *below = page ? page->below : NULL;

	if (!page)
		return NULL;
	view_free(page->view);
	heat_free(page->heat);
	question_done(&page->question);
	question_done(&page->rows);
	setting_list_clear(&page->where);
	free(page->name);
	free(page);
	return below;
}

void page_restart(struct page *page)
{
	for (; page; page = page->below) {
		if (page->kind == PAGE_METRIC && !page->below) /* there may be more metrics then */
			page->kind = PAGE_DETAIL;
		page->view = view_free(page->view);
		page->heat = heat_free(page->heat);
	}
}

int page_add(struct page *page, const struct batch *batch)
{
	bool keeps_all = page->kind == PAGE_DETAIL || page->kind == PAGE_METRIC;
	int err = page->view ? 0 : view_new(&page->question, keeps_all, &page->view);
	const struct metric *metric;

	err = err ?: view_add(page->view, batch);
	if (err || page->kind != PAGE_METRIC || !view_batch(page->view)->n_metrics)
		return err;
	metric = view_batch(page->view)->metrics[0];
	if (metric->kind == METRIC_HISTOGRAM)
		page->heat = page->heat ?: heat_new(metric, HEAT_COLUMNS);
	if (page->heat)
		heat_add(page->heat, metric, batch->time_ns);
	return 0;
}

static void end_text(struct grid *grid, const char *text)
{
	buf_append_text(&grid->text, text);
	grid_end_cell(grid, 0, LEVEL_PLAIN);
}

static void fill_metrics(struct grid *grid, const struct batch *batch, uint64_t begin_ns)
{
	double elapsed_s = (double)(batch->time_ns - (begin_ns ?: batch->previous_ns)) / 1e9;
	struct metric *metric;

	grid_begin(grid);
	grid_add_column(grid, "metric", NULL, false);
	grid_add_column(grid, "series", "how many it has", true);
	grid_add_column(grid, "rate", "of all together, per second", true);
	grid_add_column(grid, "what it is", NULL, false);
	batch_for_each_metric(metric, batch) {
		struct series *series;
		double sum = 0;
		size_t n = 0;

		metric_for_each_series(series, metric) {
			const struct numbers *numbers = begin_ns ? &series->total : &series->delta;

			sum += (double)(metric->kind == METRIC_HISTOGRAM ? numbers->count :
					numbers->sum);
			n++;
		}
		sum = metric->kind == METRIC_GAUGE ? 0 : sum / elapsed_s;
		sum /= metric->kind == METRIC_SUM ? (double)metric->divisor : 1;
		grid_add_row(grid, metric);
		end_text(grid, metric->name);
		buf_printf(&grid->text, "%zu", n);
		grid_end_cell(grid, (double)n, n ? LEVEL_PLAIN : LEVEL_NONE);
		if (sum)
			grid_append_rate(&grid->text, sum,
					 metric->kind == METRIC_SUM ? metric->unit : "");
		grid_end_cell(grid, sum, LEVEL_PLAIN);
		end_text(grid, metric->description);
	}
}

static void fill_help(struct grid *grid)
{
	static const char *const keys[][2] = {
		{ "Up Down Home End", "choose a row" },
		{ "PgUp PgDn", "a page up or down" },
		{ "Enter", "of a unit all metrics, of a metric all series" },
		{ "Esc Backspace", "back" },
		{ "Tab m", "all metrics, and back" },
		{ "p", "processes: of all units, or of the one that is shown; and back" },
		{ "Left Right < >", "sort by the column to the left or to the right" },
		{ "r", "the other way round" },
		{ "/ \\ F4", "only rows with a text; Enter keeps it, Esc shows all again" },
		{ "s", "numbers since counting began instead of the last interval's, and back" },
		{ "H", "of durations: a heat map or a histogram" },
		{ "Space", "pause; what is counted meanwhile comes with the next numbers" },
		{ "+ -", "the next longer or shorter interval" },
		{ "h ? F1", "this help, and back" },
		{ "q F10 Ctrl-C", "end" },
		{ "", "" },
	};

	grid_begin(grid);
	grid_add_column(grid, "key or column", NULL, false);
	grid_add_column(grid, "what it does or shows", NULL, false);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		grid_add_row(grid, NULL);
		end_text(grid, keys[i][0]);
		end_text(grid, keys[i][1]);
	}
	for (size_t i = 0; i < overview_n_columns; i++) {
		grid_add_row(grid, NULL);
		end_text(grid, overview_columns[i].heading);
		end_text(grid, overview_columns[i].about);
	}
}

static void fill_grids(const struct page *page, uint64_t begin_ns, struct content *content)
{
	static const struct batch none;
	const struct batch *batch = page->view ? view_batch(page->view) : &none;
	uint64_t since_ns = begin_ns ?: batch->previous_ns;
	bool is_of_metrics = page->kind == PAGE_DETAIL || page->kind == PAGE_METRIC;
	size_t n = is_of_metrics ? batch->n_metrics : page->view || page->kind == PAGE_HELP;

	/* A grid has headings that point into it, so none moves once the first is filled. */
	while (content->n_made < n &&
	       array_add(&content->grids, &content->n_made, sizeof(*content->grids)))
		;
	for (size_t i = 0; i < n && i < content->n_made; i++) {
		struct grid *grid = &content->grids[content->n_grids];

		if (page->kind == PAGE_OVERVIEW)
			overview_fill(grid, &page->rows, batch, begin_ns);
		else if (page->kind == PAGE_METRICS)
			fill_metrics(grid, batch, begin_ns);
		else if (page->kind == PAGE_HELP)
			fill_help(grid);
		else
			grid_of_metric(grid, batch->metrics[i], batch->time_ns - since_ns,
				       begin_ns ? GRID_WHOLE : GRID_INTERVAL);
		content->n_grids += grid->n_rows || page->kind != PAGE_DETAIL;
	}
}

static bool matches_filter(const struct grid *grid, size_t row, const char *filter)
{
	bool is_found = !*filter;

	for (unsigned int i = 0; i < grid->n_columns && !is_found; i++)
		is_found = strcasestr(grid_text(grid, &grid->cells[row * grid->n_columns + i]),
				      filter);
	return is_found;
}

static void add_line(struct content *content, int kind, const struct grid *grid, size_t row)
{
	const struct line line = { kind, grid, row };

	(void)array_append(&content->lines, &content->n_lines, &line);
}

/*
 * What all rows have in common stands in the title. The start of a process is of no use to a
 * reader.
 */
static void hide_columns(const struct page *page, struct grid *grid)
{
	for (unsigned int i = 0; i < grid->n_columns; i++) {
		bool is_hidden = !strcmp(grid->columns[i].heading, "creation.time");

		for (size_t j = 0; page->below && page->name && j < page->below->rows.by.n_items;
		     j++)
			is_hidden |= !strcmp(grid_heading(page->below->rows.by.items[j]),
					     grid->columns[i].heading);
		if (is_hidden)
			grid->columns[i].width = 0;
	}
}

/* An interpreter's process is known by what it runs: "python3.11 app.py". */
static void name_scripts(struct grid *grid)
{
	unsigned int column = grid_find_column(grid, "executable.name");
	char words[COMMAND_LINE_BYTES];

	for (size_t row = 0; row < grid->n_rows && column < grid->n_columns; row++) {
		const struct series *series = grid->rows[row];
		const char *executable = grid_text(grid,
						   &grid->cells[row * grid->n_columns + column]);
		const struct attribute *pid = array_find(series->attributes,
							 series->n_attributes, "process.pid");
		const char *script = pid ?
				     script_of(executable, (pid_t)pid->number, words,
					       sizeof(words)) : NULL;
		_cleanup_(buf_done) struct buf name = BUF_INIT;

		if (!script)
			continue;
		buf_printf(&name, "%s %s", executable, script);
		utf8_clean((char *)buf_text(&name)); /* a command line may hold any bytes */
		grid_replace(grid, row, column, buf_text(&name));
	}
}

void page_fill(const struct page *page, uint64_t begin_ns, struct content *content)
{
	size_t limit = page->kind == PAGE_DETAIL ? DETAIL_ROWS : page->limit;

	content->n_grids = 0;
	content->n_rows = 0;
	array_free(&content->lines, &content->n_lines);
	fill_grids(page, begin_ns, content);
	for (size_t i = 0; i < content->n_grids; i++) {
		struct grid *grid = &content->grids[i];
		unsigned int column = *page->sort ? grid_find_column(grid, page->sort) :
				      grid->sorted;

		if (page->kind != PAGE_METRICS && page->kind != PAGE_HELP)
			name_scripts(grid);
		if (column < grid->n_columns)
			grid_sort(grid, column, page->is_reversed);
		hide_columns(page, grid);
		for (int kind = LINE_TITLE; content->n_grids > 1 && kind <= LINE_HEADINGS; kind++)
			add_line(content, kind, grid, GRID_HEADINGS);
		for (size_t row = 0, n = 0; row < grid->n_rows; row++) {
			if (!matches_filter(grid, row, page->filter))
				continue;
			content->n_rows++;
			if (!limit || n++ < limit)
				add_line(content, LINE_ROW, grid, row);
		}
	}
}

void content_done(struct content *content)
{
	for (size_t i = 0; i < content->n_made; i++)
		grid_done(&content->grids[i]);
	free(content->grids);
	free(content->lines);
	*content = (struct content){ 0 };
}

/*
 * What a row of an overview is: a condition for each attribute that it is told apart by, and a
 * name, as "cron.service" or "4711 sshd ssh.service".
 */
static int add_conditions(struct page *page, const struct question *rows, const struct line *line,
			  struct buf *name)
{
	struct diag diag = DIAG_INIT; /* all of them are right */
	const struct grid_cell *cells = &line->grid->cells[line->row * line->grid->n_columns];
	const struct series *series = line->grid->rows[line->row];
	int err = 0;

	for (size_t i = 0; i < rows->by.n_items && !err; i++) {
		_cleanup_(buf_done) struct buf text = BUF_INIT, value = BUF_INIT;
		const struct attribute *found = question_find(rows->by.items[i], series);
		const char *word = found ? found->name : rows->by.items[i];

		buf_printf(name, "%s%s", i ? " " : "", grid_text(line->grid, &cells[i]));
		if (found)
			attribute_append(&value, found);
		buf_printf(&text, found ? "%s=" : "!%s", word);
		for (const char *at = buf_text(&value); *at; at++)
			buf_printf(&text, strchr("*?[", *at) ? "[%c]" : "%c", *at);
		err = buf_error(&text) ?: setting_list_add(&page->where, buf_text(&text));
		err = err ?: question_add(&page->question, buf_text(&text), &diag);
	}
	return err;
}

struct page *page_open(struct page *page, const struct line *line, enum page_kind kind,
		       const char *by)
{
	char *items[] = { (char *)by };
	const struct setting_list list = { .items = items, .n_items = by != NULL };
	struct page *next = page_new(kind, page, &list, &page->where);
	_cleanup_(buf_done) struct buf name = BUF_INIT;

	buf_append_text(&name, line || !page->name ? "" : page->name);
	if (next && line && add_conditions(next, &page->rows, line, &name)) {
		page_free(next);
		return NULL;
	}
	if (next && name.size)
		next->name = strdup(buf_text(&name));
	return next;
}

struct page *page_enter(struct page *page, const struct line *line)
{
	const struct metric *metric = NULL;
	struct page *next;

	if (page->kind == PAGE_OVERVIEW && !series_is_overflow(line->grid->rows[line->row]))
		return page_open(page, line, PAGE_DETAIL, NULL);
	if (page->kind == PAGE_METRICS)
		metric = line->grid->rows[line->row];
	if (page->kind == PAGE_DETAIL)
		metric = ((const struct series *)line->grid->rows[0])->metric;
	next = metric ? page_open(page, NULL, PAGE_METRIC, NULL) : NULL;
	if (next && setting_list_add(&next->question.metrics, metric->name)) {
		page_free(next);
		return NULL;
	}
	return next;
}

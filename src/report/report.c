/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"

#include <math.h>
#include <string.h>

#include "report/page.h"
#include "view/overview.h"
#include "view/view.h"

/* Rows of a table: all units that may be looked for, but only the first of many calls. */
#define UNITS_MAX 500
#define ROWS_MAX  50

static bool has_series(const struct metric *metric)
{
	struct series *series;

	metric_for_each_series(series, metric)
		return true;
	return false;
}

#define OWNERS "systemd.unit.name, container.id or process.linux.cgroup"

static void append_text(struct buf *out, const char *before, const char *text, const char *after)
{
	buf_append_text(out, before);
	buf_append_html(out, text);
	buf_append_text(out, after);
}

static void append_cell(struct buf *out, const struct grid *grid, const struct grid_column *column,
			const struct grid_cell *cell)
{
	const char *text = (const char *)grid->text.data + cell->text;

	buf_printf(out, "<td class=\"level-%d%s\"", cell->level, column->is_number ? " n" : "");
	if (column->is_number && isfinite(cell->number))
		buf_printf(out, " data-n=\"%.17g\"", cell->number);
	append_text(out, "><bdi>", text, "</bdi></td>");
}

static void append_grid(struct buf *out, const struct grid *grid, const char *about)
{
	append_text(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"", about, "\"><table>\n<thead><tr>");
	for (unsigned int i = 0; i < grid->n_columns; i++) {
		const struct grid_column *column = &grid->columns[i];

		buf_printf(out, "<th scope=\"col\"%s", column->is_number ? " class=\"n\"" : "");
		if (column->about)
			append_text(out, " title=\"",
				    attribute_owner(column->about) ? OWNERS : column->about, "\"");
		append_text(out, ">", column->heading, "</th>");
	}
	buf_append_text(out, "</tr></thead>\n<tbody>\n");
	for (size_t row = 0; row < grid->n_rows && !buf_error(&grid->text); row++) {
		buf_append_text(out, "<tr>");
		for (unsigned int i = 0; i < grid->n_columns; i++)
			append_cell(out, grid, &grid->columns[i],
				    &grid->cells[row * grid->n_columns + i]);
		buf_append_text(out, "</tr>\n");
	}
	buf_append_text(out, "</tbody></table></div>\n");
	if (grid->n_left)
		buf_printf(out, "<p>%zu more row%s not shown.</p>\n", grid->n_left, grid->n_left == 1 ? " is" : "s are");
	out->error = out->error ?: buf_error(&grid->text);
}

/* The i-th of the batch, if something was counted. prefix: of its id. heat: NULL: there is none. */
static void append_metric(struct buf *out, const struct batch *batch, size_t i, char prefix,
			  const struct heat *heat)
{
	const struct metric *metric = batch->metrics[i];
	_cleanup_(grid_done) struct grid grid = { 0 };

	if (!has_series(metric))
		return;
	buf_printf(out, "<details open id=\"%c%zu\"><summary><h3>", prefix, i);
	append_text(out, "", metric->name, "</h3><span>");
	append_text(out, "", metric->description, "</span></summary>\n");
	if (heat && !heat_is_empty(heat)) {
		buf_append_text(out, "<div class=\"scroll chart\" tabindex=\"0\" role=\"region\" aria-label=\"Heat map\">");
		heat_svg(heat, out);
		buf_append_text(out, "</div>\n");
	}
	grid_of_metric(&grid, metric, batch->time_ns - batch->previous_ns, GRID_BOTH);
	grid_limit(&grid, ROWS_MAX);
	append_grid(out, &grid, metric->name);
	buf_append_text(out, "</details>\n");
}

static void append_units(struct buf *out, const struct batch *batch)
{
	static char *unit = "unit";
	const struct question question = { .by = { &unit, 1 } };
	_cleanup_(grid_done) struct grid grid = { 0 };

	overview_fill(&grid, &question, batch, 0);
	grid_limit(&grid, UNITS_MAX);
	append_grid(out, &grid, "Units");
}

/* All series that have an error. */
static int append_errors(struct buf *out, const struct batch *batch)
{
	struct condition has_error = { .attribute = (char[]){ "error.type" } };
	const struct question question = { .conditions = &has_error, .n_conditions = 1 };
	_cleanup_(view_freep) struct view *view = NULL;
	int err = view_new(&question, true, &view) ?: view_add(view, batch);

	for (size_t i = 0; i < batch->n_metrics && !err; i++)
		if (strcmp(batch->metrics[i]->scope, REPORT_OWN))
			append_metric(out, view_whole(view), i, 'e', NULL);
	return err;
}

/* A section for each collector that has counted something; contents: the list of them. */
static void append_collectors(struct buf *out, struct buf *contents, const struct report *report)
{
	const char *scope = "";

	for (size_t i = 0; i < report->batch->n_metrics; i++) {
		const struct metric *metric = report->batch->metrics[i];
		bool is_first = strcmp(scope, metric->scope);

		if (!has_series(metric))
			continue;
		if (is_first) {
			const char *name = strcmp(metric->scope, REPORT_OWN) ? metric->scope : "bpfpush itself";

			buf_printf(contents, "%s</li>\n<li><a href=\"#c%zu\">", *scope ? "</ul>" : "", i);
			append_text(contents, "", name, "</a><ul>\n");
			buf_printf(out, "</section>\n<section id=\"c%zu\"><h2>", i);
			append_text(out, "", name, "</h2>\n");
			scope = metric->scope;
		}
		buf_printf(contents, "<li><a href=\"#m%zu\">", i);
		append_text(contents, "", metric->name, "</a></li>\n");
		append_metric(out, report->batch, i, 'm', report->heats[i]);
	}
	buf_append_text(contents, *scope ? "</ul>" : "");
}

static void append_header(struct buf *out, const struct grid *facts)
{
	const char *text = (const char *)facts->text.data;

	append_text(out, "<header><h1>bpfpush report of ", text + facts->cells[1].text, "</h1>\n<dl>\n");
	for (size_t i = 0; i < facts->n_rows; i++) {
		append_text(out, "<div><dt>", text + facts->cells[2 * i].text, "</dt>");
		append_text(out, "<dd>", text + facts->cells[2 * i + 1].text, "</dd></div>\n");
	}
	buf_append_text(out, "</dl></header>\n<nav aria-label=\"Contents\"><ul>\n<li><a href=\"#units\">Units</a></li>\n"
			"<li><a href=\"#errors\">Errors</a>");
}

int report_write(const struct report *report, struct buf *out)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT;
	int err;

	buf_append_text(&body, "<main>\n<section id=\"units\"><h2>Units</h2>\n<p>Which systemd unit, container or cgroup is busy, "
			"and with what.</p>\n");
	append_units(&body, report->batch);
	buf_append_text(&body, "</section>\n<section id=\"errors\"><h2>Errors</h2>\n<p>What fails most.</p>\n");
	err = append_errors(&body, report->batch) ?: buf_error(&report->facts.text);
	if (err)
		return err;
	buf_append_text(out, page_head);
	append_header(out, &report->facts);
	append_collectors(&body, out, report);
	buf_append_text(&body, "</section>\n<section id=\"missing\"><h2>Not counted</h2>\n");
	if (report->missing.n_rows)
		append_grid(&body, &report->missing, "Not counted");
	else
		buf_append_text(&body, "<p>All that was asked for has been counted.</p>\n");
	buf_append_text(&body, "</section>\n</main>\n");
	buf_append_text(out, "</li>\n<li><a href=\"#missing\">Not counted</a></li>\n</ul></nav>\n");
	buf_append_text(out, buf_text(&body));
	buf_append_text(out, page_tail);
	return buf_error(&body) ?: buf_error(out);
}

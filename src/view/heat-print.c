/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A terminal and a picture show the same: lines of characters of one width, some of which are
 * cells.
 */
#include <errno.h>
#include <inttypes.h>

#include "view/grid.h"
#include "view/heat.h"

#define AXIS_WIDTH  10 /* of the limits of rows and the line after them */
#define OTHER_LINES 4  /* the name, the axis, its times and the legend */
#define TIME_WIDTH  8
#define TIMES_APART (TIME_WIDTH + 2)

/* Of a picture, in pixels and in characters. */
#define CHARACTER_WIDTH	 7
#define LINE_HEIGHT	 16
#define PICTURE_COLUMNS	 120
#define PICTURE_ROWS_MAX 40
#define PICTURE_WIDTH	 (AXIS_WIDTH + PICTURE_COLUMNS + TIME_WIDTH)

static const char densities[] = " .:-=+*#%@";
/* Of the 256 of a terminal, each brighter than the one before. */
static const unsigned char colours[] = { 0, 53, 90, 126, 162, 197, 203, 209, 215, 227 };
/* As light as those, and told apart by every kind of eye; the most stands out from white. */
static const char *const fills[] = { "",	"#fde7a9", "#fecf83", "#feae6c", "#f98e61",
				     "#ec6b61", "#d34b70", "#ad347c", "#7f2482", "#42136b" };

struct canvas {
	struct buf *out, text; /* text: for the next put_text() or put_cell() */
	bool has_colour, is_picture;
	unsigned int width;
	size_t column, line; /* where what was put last ended */
};

static void end_text(struct canvas *canvas)
{
	canvas->out->error = canvas->out->error ?: buf_error(&canvas->text);
	buf_reset(&canvas->text);
}

static void put_text(struct canvas *canvas, size_t column)
{
	const char *text = buf_text(&canvas->text);
	size_t width = grid_width(text);

	if (canvas->is_picture) {
		buf_printf(canvas->out, "<text x=\"%zu\" y=\"%zu\" textLength=\"%zu\">", column * CHARACTER_WIDTH,
			   canvas->line * LINE_HEIGHT + LINE_HEIGHT * 3 / 4,
			   width * CHARACTER_WIDTH);
		buf_append_html(canvas->out, text);
		buf_append_text(canvas->out, "</text>\n");
	} else {
		buf_printf(canvas->out, "%*s%s", (int)(column - canvas->column), "", text);
	}
	canvas->column = column + width;
	end_text(canvas);
}

/* A cell as wide as n characters. The text is markup in it, as its tooltip. */
static void put_cell(struct canvas *canvas, unsigned int level, size_t n)
{
	bool is_coloured = level && canvas->has_colour;

	if (canvas->is_picture && level)
		buf_printf(canvas->out, "<rect class=\"heat-%u\" fill=\"%s\" x=\"%zu\" y=\"%zu\" width=\"%zu\" height=\"%d\">%s</rect>\n",
			   level, fills[level], canvas->column * CHARACTER_WIDTH,
			   canvas->line * LINE_HEIGHT,
			   n * CHARACTER_WIDTH, LINE_HEIGHT, buf_text(&canvas->text));
	if (is_coloured)
		buf_printf(canvas->out, "\033[48;5;%um", colours[level]);
	for (size_t i = 0; i < n && !canvas->is_picture; i++)
		buf_append_byte(canvas->out, (uint8_t)densities[is_coloured ? 0 : level]);
	buf_append_text(canvas->out, is_coloured ? SGR_END : "");
	canvas->column += n;
	end_text(canvas);
}

static void end_line(struct canvas *canvas)
{
	canvas->line++;
	canvas->column = 0;
	buf_append_text(canvas->out, canvas->is_picture ? "" : "\n");
}

static void draw_row(struct canvas *canvas, const struct heat *heat,
		     const struct heat_cells *cells, size_t row)
{
	size_t width;

	heat_append_limit(&canvas->text, heat, cells, row + 1);
	buf_append_text(&canvas->text, " |");
	width = grid_width(buf_text(&canvas->text));
	put_text(canvas, width < AXIS_WIDTH ? AXIS_WIDTH - width : 0);
	for (size_t i = 0; i < cells->n_columns; i++) {
		uint64_t count = cells->counts[row * cells->n_columns + i];

		if (canvas->is_picture) {
			buf_append_text(&canvas->text, "<title>");
			heat_append_time(&canvas->text, cells->times_ns[i], 3);
			buf_append_text(&canvas->text, ", ");
			heat_append_limit(&canvas->text, heat, cells, row);
			buf_append_text(&canvas->text, " to ");
			heat_append_limit(&canvas->text, heat, cells, row + 1);
			buf_printf(&canvas->text, ": %" PRIu64 "</title>", count);
		}
		put_cell(canvas, heat_level(cells, count), cells->stretch);
	}
	end_line(canvas);
}

static void draw_axis(struct canvas *canvas, const struct heat_cells *cells)
{
	size_t stretch = cells->stretch, apart = (TIMES_APART + stretch - 1) / stretch;

	buf_append_byte(&canvas->text, '+');
	for (size_t i = 0; i < cells->n_columns * stretch; i++)
		buf_append_byte(&canvas->text, i % (apart * stretch) ? '-' : '+');
	put_text(canvas, AXIS_WIDTH - 1);
	end_line(canvas);
	for (size_t i = 0;
	     i < cells->n_columns &&
	     AXIS_WIDTH + i * stretch + TIME_WIDTH <= canvas->width; i += apart) {
		heat_append_time(&canvas->text, cells->times_ns[i], 0);
		put_text(canvas, AXIS_WIDTH + i * stretch);
	}
	end_line(canvas);
}

static void draw_map(struct canvas *canvas, const struct heat *heat, const struct heat_cells *cells)
{
	_cleanup_(buf_done) struct buf name = BUF_INIT;

	heat_append_name(&name, heat);
	canvas->out->error = canvas->out->error ?: buf_error(&name);
	grid_cut(&canvas->text, buf_text(&name), canvas->width);
	buf_append_text(&canvas->text, cells->n_rows ? "" : ": no values");
	put_text(canvas, 0);
	end_line(canvas);
	for (size_t row = cells->n_rows; row--;)
		draw_row(canvas, heat, cells, row);
	if (cells->n_rows) {
		draw_axis(canvas, cells);
		buf_append_text(&canvas->text, "1 ");
		put_text(canvas, AXIS_WIDTH);
		for (unsigned int level = 1; level <= HEAT_LEVELS; level++)
			put_cell(canvas, level, 1 + (canvas->has_colour || canvas->is_picture));
		buf_printf(&canvas->text, "%" PRIu64 " value%s in a cell, logarithmic; times in UTC", cells->most,
			   plural(cells->most));
		put_text(canvas, canvas->column + 1);
		end_line(canvas);
	}
	buf_done(&canvas->text);
}

void heat_print(const struct heat *heat, unsigned int width, unsigned int height, bool has_colour,
		struct buf *out)
{
	struct canvas canvas = { .out = out, .has_colour = has_colour, .width = width };
	unsigned int n_columns = width > AXIS_WIDTH ? width - AXIS_WIDTH : 1;
	unsigned int n_rows = height > OTHER_LINES ? height - OTHER_LINES : 1;
	_cleanup_(heat_cells_done) struct heat_cells cells;

	if (heat_cells_init(&cells, heat, n_columns, n_rows))
		out->error = out->error ?: -ENOMEM;
	draw_map(&canvas, heat, &cells);
}

void heat_svg(const struct heat *heat, struct buf *out)
{
	struct canvas canvas = { .out = out, .is_picture = true, .width = PICTURE_WIDTH };
	int width = PICTURE_WIDTH * CHARACTER_WIDTH, height;
	_cleanup_(heat_cells_done) struct heat_cells cells;
	_cleanup_(buf_done) struct buf name = BUF_INIT;

	if (heat_cells_init(&cells, heat, PICTURE_COLUMNS, PICTURE_ROWS_MAX))
		out->error = out->error ?: -ENOMEM;
	cells.stretch = cells.n_columns ? PICTURE_COLUMNS / cells.n_columns : 1;
	height = ((int)cells.n_rows + OTHER_LINES) * LINE_HEIGHT;
	buf_printf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"heat\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
		   "role=\"img\" font-family=\"monospace\" font-size=\"12\" shape-rendering=\"crispEdges\" aria-label=\"Heat map of ",
		   width, height, width, height);
	heat_append_name(&name, heat);
	out->error = out->error ?: buf_error(&name);
	buf_append_html(out, buf_text(&name));
	buf_printf(out, "\">\n<rect class=\"heat-back\" width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n"
		   "<g class=\"heat-text\" fill=\"#444\">\n", width, height);
	draw_map(&canvas, heat, &cells);
	buf_append_text(out, "</g>\n</svg>\n");
}

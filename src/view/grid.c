/* SPDX-License-Identifier: Apache-2.0 */
#include "view/grid.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "util/array.h"

void grid_begin(struct grid *grid)
{
	buf_reset(&grid->title);
	buf_reset(&grid->text);
	grid->n_columns = 0;
	grid->sorted = GRID_COLUMNS_MAX;
	grid->n_rows = grid->n_cells = grid->n_ended = grid->n_left = grid->text_start = 0;
}

void grid_done(struct grid *grid)
{
	buf_done(&grid->title);
	buf_done(&grid->text);
	free(grid->cells);
	free(grid->rows);
	*grid = (struct grid){ 0 };
}

void grid_add_column(struct grid *grid, const char *heading, const char *about, bool is_number)
{
	if (grid->n_columns < GRID_COLUMNS_MAX)
		grid->columns[grid->n_columns++] =
			(struct grid_column){ heading, about, is_number, false,
					      grid_width(heading) };
}

void grid_add_row(struct grid *grid, const void *of)
{
	for (unsigned int i = 0; i < grid->n_columns && !grid->text.error; i++)
		if (!array_add(&grid->cells, &grid->n_cells, sizeof(*grid->cells)))
			grid->text.error = -ENOMEM;
	if (grid->text.error || array_append(&grid->rows, &grid->n_rows, &of))
		grid->text.error = -ENOMEM;
}

static void widen_column(struct grid_column *column, const char *text)
{
	unsigned int width = grid_width(text);

	column->width = width > column->width ? width : column->width;
}

void grid_end_cell(struct grid *grid, double number, enum level level)
{
	size_t i = grid->n_ended++, start = grid->text_start;

	buf_append_byte(&grid->text, '\0');
	if (buf_error(&grid->text) || i >= grid->n_cells)
		return;
	grid_clean((char *)grid->text.data + start);
	grid->cells[i] = (struct grid_cell){ start, number, level };
	grid->text_start = grid->text.size;
	grid->columns[i % grid->n_columns].is_telling |= level != LEVEL_NONE;
	widen_column(&grid->columns[i % grid->n_columns], grid_text(grid, &grid->cells[i]));
}

void grid_replace(struct grid *grid, size_t row, unsigned int column, const char *text)
{
	struct grid_cell *cell = &grid->cells[row * grid->n_columns + column];

	buf_append_text(&grid->text, text);
	buf_append_byte(&grid->text, '\0');
	if (buf_error(&grid->text))
		return;
	cell->text = grid->text_start;
	grid->text_start = grid->text.size;
	grid_clean((char *)grid->text.data + cell->text);
	widen_column(&grid->columns[column], grid_text(grid, cell));
}

unsigned int grid_find_column(const struct grid *grid, const char *heading)
{
	unsigned int i = 0;

	while (i < grid->n_columns && strcasecmp(grid->columns[i].heading, heading))
		i++;
	return i;
}

struct order {
	const struct grid *grid;
	unsigned int column;
	int sign;
};

static int by_column(const void *left_, const void *right_, void *order_)
{
	const struct order *order = order_;
	const struct grid *grid = order->grid;
	size_t left = *(const size_t *)left_, right = *(const size_t *)right_;
	const struct grid_cell *a = &grid->cells[left * grid->n_columns + order->column],
			       *b = &grid->cells[right * grid->n_columns + order->column];
	int difference;

	if (grid->columns[order->column].is_number)
		difference = (a->number < b->number) - (a->number > b->number);
	else
		difference = strcmp(grid_text(grid, a), grid_text(grid, b));
	return difference * order->sign ?: (left > right) - (left < right);
}

void grid_sort(struct grid *grid, unsigned int column, bool is_reversed)
{
	size_t n = grid->n_rows, row_bytes = grid->n_columns * sizeof(*grid->cells);
	struct order order = { grid, column, is_reversed ? -1 : 1 };
	_cleanup_(freep) size_t *places = calloc(n, sizeof(*places));
	_cleanup_(freep) struct grid_cell *cells = calloc(n, row_bytes);
	_cleanup_(freep) const void **rows = calloc(n, sizeof(*rows));

	if (!n)
		return;
	if (!places || !cells || !rows) {
		grid->text.error = -ENOMEM;
		return;
	}
	grid->sorted = column;
	for (size_t i = 0; i < n; i++)
		places[i] = i;
	qsort_r(places, n, sizeof(*places), by_column, &order);
	for (size_t i = 0; i < n; i++) {
		memcpy(&cells[i * grid->n_columns],
		       &grid->cells[places[i] * grid->n_columns], row_bytes);
		rows[i] = grid->rows[places[i]];
	}
	memcpy(grid->cells, cells, n * row_bytes);
	memcpy(grid->rows, rows, n * sizeof(*rows));
}

void grid_limit(struct grid *grid, size_t n)
{
	if (!n || n >= grid->n_rows)
		return;
	grid->n_left += grid->n_rows - n;
	grid->n_rows = n;
	for (unsigned int i = 0; i < grid->n_columns; i++) {
		if (!grid->columns[i].width)
			continue;
		grid->columns[i].width = grid_width(grid->columns[i].heading);
		for (size_t row = 0; row < n; row++)
			widen_column(&grid->columns[i],
				     grid_text(grid, &grid->cells[row * grid->n_columns + i]));
	}
}

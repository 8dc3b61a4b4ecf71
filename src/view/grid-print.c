/* SPDX-License-Identifier: Apache-2.0 */
#include "view/grid.h"

#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <stdint.h>
#include <string.h>
#include <wchar.h>

#include "util/utf8.h"

#define TEXT_WIDTH_MIN 12 /* of a text that is cut for the columns after it */
#define NAME_WIDTH_MIN 20 /* of the first, where it leaves two thirds to the numbers */
#define TAIL_WIDTH_MIN 8  /* of a text that keeps its end, too */
#define ELLIPSIS       "\xe2\x80\xa6"
#define USUAL_END      ".service" /* which a name is understood without */

/*
 * The character at text, which is not empty: its bytes and its columns, -1 where a terminal may do
 * anything.
 */
static size_t next_character(const char *text, int *ret_width)
{
	/* Invisible ones that change the direction, join, or choose another shape of others. */
	static const wchar_t unruly[][2] = { { 0xad, 0xad },	 { 0x61c, 0x61c },
					     { 0x180b, 0x180f },
					     { 0x200b, 0x200f }, { 0x2028, 0x202e },
					     { 0x2060, 0x206f },
					     { 0xfe00, 0xfe0f }, { 0xfeff, 0xfeff },
					     { 0xfff9, 0xfffb },
					     { 0x1f1e6, 0x1f1ff }, { 0x1f3fb, 0x1f3ff },
					     { 0xe0000, 0xe0fff } };
	mbstate_t state = { 0 };
	wchar_t character;
	size_t bytes;

	*ret_width = 1;
	if ((unsigned char)*text < 0x80)
		return 1;
	bytes = mbrtowc(&character, text, strlen(text), &state);
	if (bytes > 4)
		return 1;
	*ret_width = wcwidth(character);
	for (size_t i = 0; i < ARRAY_SIZE(unruly); i++)
		if (character >= unruly[i][0] && character <= unruly[i][1])
			*ret_width = -1;
	return bytes;
}

void grid_clean(char *text)
{
	char *to = text;
	size_t bytes;
	int width;

	for (; *text; text += bytes) {
		bytes = next_character(text, &width);
		if (width >= 0 && !utf8_is_control(text)) {
			memmove(to, text, bytes);
			to += bytes;
		} else {
			*to++ = *text == '\n' || *text == '\t' ? ' ' : '?';
		}
	}
	*to = '\0';
}

unsigned int grid_width(const char *text)
{
	unsigned int sum = 0;
	int width;

	while (*text) {
		text += next_character(text, &width);
		sum += width > 0 ? (unsigned int)width : 0;
	}
	return sum;
}

/*
 * As many whole characters as width holds, with what combines with the last; takes their columns
 * off *width.
 */
static const char *skip_characters(const char *text, unsigned int *width)
{
	while (*text) {
		int columns;
		size_t bytes = next_character(text, &columns);

		if (columns > 0 && (unsigned int)columns > *width)
			break;
		*width -= columns > 0 ? (unsigned int)columns : 0;
		text += bytes;
	}
	return text;
}

size_t grid_fit(const char *text, unsigned int width)
{
	return (size_t)(skip_characters(text, &width) - text);
}

void grid_cut(struct buf *out, const char *text, unsigned int width)
{
	unsigned int whole = grid_width(text), tail = width < TAIL_WIDTH_MIN ? 0 : (width - 1) / 2,
		left;
	size_t size = strlen(text);
	const char *end;

	if (whole > width && size > strlen(USUAL_END) &&
	    !strcmp(text + size - strlen(USUAL_END), USUAL_END)) {
		size -= strlen(USUAL_END);
		whole -= (unsigned int)strlen(USUAL_END);
	}
	if (whole <= width) {
		buf_append(out, text, size);
		return;
	}
	if (!width)
		return;
	buf_append(out, text, grid_fit(text, width - 1 - tail));
	buf_append_text(out, ELLIPSIS);
	/*
	 * What goes in front of the tail ends inside a wide character perhaps: then that one goes,
	 * too.
	 */
	left = whole - tail;
	end = skip_characters(text, &left);
	if (left) {
		left = whole - tail + 1;
		end = skip_characters(text, &left);
	}
	buf_append(out, end, tail ? size - (size_t)(end - text) : 0);
}

static bool has_utf8(void)
{
	locale_t locale = newlocale(LC_CTYPE_MASK, "", NULL);
	bool is_utf8 = locale && !strcmp(nl_langinfo_l(CODESET, locale), "UTF-8");

	if (locale)
		freelocale(locale);
	return is_utf8;
}

void grid_to_locale(char *text)
{
	static const char *const known[] = { "\xc2\xb5u", ELLIPSIS "~", "\xe2\x89\xa4<", "\xe2\x96\xb8>", "\xe2\x86\x92>" };
	static const char bars[] = "._-:=+*#"; /* U+2581 to U+2588 */
	static int is_utf8 = -1; /* unknown */
	char *to = text, character;
	size_t bytes;
	int width;

	is_utf8 = is_utf8 < 0 ? has_utf8() : is_utf8;
	if (is_utf8)
		return;
	for (; *text; text += bytes) {
		bytes = next_character(text, &width);
		character = (unsigned char)*text < 0x80 ? *text : '?';
		if (!strncmp(text, "\xe2\x96", 2) && (unsigned char)(text[2] - '\x81') < strlen(bars))
			character = bars[(unsigned char)(text[2] - '\x81')];
		for (size_t i = 0; i < ARRAY_SIZE(known); i++)
			if (!strncmp(text, known[i], bytes))
				character = known[i][bytes];
		memset(to, character, width > 0 ? (size_t)width : 0);
		to += width > 0 ? width : 0;
	}
	*to = '\0';
}

/*
 * From the right, those that tell nothing, until all others have room; texts that of half of the
 * screen.
 */
static void leave_out(const struct grid *grid, unsigned int width, const struct grid_layout *layout,
		      bool *is_out)
{
	uint64_t wanted = layout->indent;

	for (unsigned int i = 0; i < grid->n_columns; i++) {
		unsigned int most = grid->columns[i].is_number ? UINT_MAX : width / 2,
			own = grid->columns[i].width;

		if (own && i)
			wanted += layout->gap;
		wanted += own < most ? own : most;
	}
	for (unsigned int i = grid->n_columns; grid->n_rows && i-- > 1 && wanted > width;)
		if (grid->columns[i].width && !grid->columns[i].is_telling && i != grid->sorted) {
			is_out[i] = true;
			wanted -= grid->columns[i].width + layout->gap;
		}
}

/*
 * As many columns as fit with their texts cut, without those that are out. Neither numbers nor bars
 * can be cut. Returns the first column that found no room.
 */
static unsigned int fit_columns(const struct grid *grid, unsigned int width, const bool *is_out,
				struct grid_layout *layout)
{
	unsigned int name = width / 3 < NAME_WIDTH_MIN ? width / 3 : NAME_WIDTH_MIN;

	memset(layout->widths, 0, sizeof(layout->widths));
	layout->taken = 0;
	for (unsigned int i = 0; i < grid->n_columns; i++) {
		const struct grid_column *column = &grid->columns[i];
		unsigned int before = layout->taken ? layout->gap : layout->indent;
		unsigned int least = layout->taken ? TEXT_WIDTH_MIN : name;

		if (!column->width || is_out[i])
			continue;
		if (column->is_number || column->heading == grid->axis || column->width < least)
			least = column->width;
		if (!layout->taken && before + least > width)
			least = width > before ? width - before : 0;
		if (layout->taken + before + least > width)
			return i;
		layout->widths[i] = least ?: 1;
		layout->taken += before + layout->widths[i];
	}
	return grid->n_columns;
}

void grid_lay_out(const struct grid *grid, unsigned int width, unsigned int indent,
		  struct grid_layout *ret_layout)
{
	struct grid_layout layout = { .indent = indent, .gap = 2 };
	bool is_out[GRID_COLUMNS_MAX] = { 0 };
	unsigned int end;

	leave_out(grid, width, &layout, is_out);
	end = fit_columns(grid, width, is_out, &layout);
	if (end < grid->n_columns) {
		layout.gap = 1;
		end = fit_columns(grid, width, is_out, &layout);
	}
	for (unsigned int i = 1;
	     end <= grid->sorted && grid->sorted < grid->n_columns && i < grid->sorted; i++)
		if (grid->columns[i].is_number && grid->columns[i].width && !is_out[i]) {
			is_out[i] = true;
			end = fit_columns(grid, width, is_out, &layout);
		}
	/* Texts then grow, the narrowest first. */
	for (; layout.taken < width; layout.taken++) {
		unsigned int narrowest = grid->n_columns;

		for (unsigned int i = 0; i < grid->n_columns; i++)
			if (layout.widths[i] && layout.widths[i] < grid->columns[i].width &&
			    (narrowest == grid->n_columns ||
			     layout.widths[i] < layout.widths[narrowest]))
				narrowest = i;
		if (narrowest == grid->n_columns)
			break;
		layout.widths[narrowest]++;
	}
	for (unsigned int i = 0; i < grid->n_columns; i++)
		layout.n_out += grid->columns[i].width && !layout.widths[i];
	*ret_layout = layout;
}

void grid_print_row(const struct grid *grid, const struct grid_layout *layout, size_t row,
		    bool has_colour, struct buf *out)
{
	static const char *const colours[] = { [LEVEL_PLAIN] = "", [LEVEL_NONE] = SGR_FAINT,
					       [LEVEL_HIGH] = SGR_HIGH, [LEVEL_ALARM] = SGR_ALARM };
	_cleanup_(buf_done) struct buf shown = BUF_INIT;
	unsigned int before = layout->indent;

	for (unsigned int i = 0; i < grid->n_columns; i++) {
		const struct grid_cell *cell = row == GRID_HEADINGS ? NULL :
					       &grid->cells[row * grid->n_columns + i];
		const char *text = cell ? grid_text(grid, cell) : grid->columns[i].heading,
			*colour = "";
		unsigned int width = layout->widths[i], blanks;
		bool is_number = grid->columns[i].is_number;

		if (!width)
			continue;
		buf_reset(&shown);
		grid_cut(&shown, text, width);
		blanks = width - grid_width(buf_text(&shown)); /* it may be cut to less */
		if (has_colour && cell)
			colour = colours[cell->level];
		else if (has_colour)
			colour = i == grid->sorted ? SGR_CHOSEN : SGR_HEADING;
		buf_printf(out, "%*s%s", (int)(before + (is_number ? blanks : 0)), "", colour);
		buf_append_text(out, buf_text(&shown));
		buf_append_text(out, *colour ? SGR_END : "");
		before = layout->gap + (is_number ? 0 : blanks);
	}
}

void grid_print(const struct grid *grid, unsigned int width, bool has_colour, struct buf *out)
{
	const char *title = grid->title.size ? buf_text((struct buf *)&grid->title) : "";
	struct grid_layout layout;

	grid_lay_out(grid, width ?: UINT32_MAX, 2, &layout);
	buf_append_text(out, has_colour && *title ? SGR_TITLE : "");
	grid_cut(out, title, width ?: UINT32_MAX);
	if (*title)
		buf_append_text(out, has_colour ? SGR_END "\n" : "\n");
	for (size_t row = GRID_HEADINGS; row + 1 <= grid->n_rows; row++) {
		grid_print_row(grid, &layout, row, has_colour, out);
		buf_append_byte(out, '\n');
	}
	if (grid->n_left)
		buf_printf(out, "  " ELLIPSIS " %zu more\n", grid->n_left);
	if (grid->title.error || grid->text.error)
		out->error = grid->title.error ?: grid->text.error;
}

/* SPDX-License-Identifier: Apache-2.0 */
#define NCURSES_NOMACROS
#include "top/keys.h"

#include <curses.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "util/duration.h"
#include "view/overview.h"

#define ESCAPE	     27
#define INTERVAL_MIN (100 * NS_PER_MS)
#define INTERVAL_MAX (60 * NS_PER_S)

static void move_cursor(struct top *top, ssize_t by)
{
	ssize_t to = (ssize_t)top->page->cursor + by;

	top->page->cursor = to < 0 ? 0 : (size_t)to; /* top_fill() sees to its end */
}

/* To the next column, from the one that is sorted by. */
static void move_sort(struct top *top, int by)
{
	const struct grid *grid = top->content.n_lines ?
				  top->content.lines[top->page->cursor].grid : NULL;
	int n = grid ? (int)grid->n_columns : 0, at;

	if (!n)
		return;
	at = (int)grid->sorted;
	if (at >= n)
		at = by > 0 ? n - 1 : 0;
	do
		at = (at + by + n) % n;
	while (!grid->columns[at].width);
	snprintf(top->page->sort, sizeof(top->page->sort), "%s", grid->columns[at].heading);
	top->is_filled = false;
}

static void show_page(struct top *top, struct page *page)
{
	if (!page)
		return;
	/* At once the numbers of the last collection. */
	if (top->batch && page->kind != PAGE_HELP)
		(void)page_add(page, top->batch);
	top->page = page;
	top->is_filled = false;
}

/* Again leads back to what was before. */
static void open_or_return(struct top *top, enum page_kind kind)
{
	if (top->page->kind == kind && top->page->below)
		top->page = page_free(top->page);
	else
		show_page(top, page_open(top->page, NULL, kind, kind == PAGE_OVERVIEW ? "process" : NULL));
	top->is_filled = false;
}

static void go_back(struct top *top)
{
	if (*top->page->filter)
		top->page->filter[0] = '\0';
	else if (top->page->below)
		top->page = page_free(top->page);
	top->is_filled = false;
}

static void enter_row(struct top *top, const struct line *line)
{
	struct page *page = line ? page_enter(top->page, line) : NULL;

	show_page(top, page);
	if (!page)
		snprintf(top->note, sizeof(top->note), "this row has nothing more to show");
}

static void switch_heat_map(struct top *top)
{
	top->options.is_heatmap = !top->options.is_heatmap;
	if (top->options.is_heatmap && !top->page->heat)
		snprintf(top->note, sizeof(top->note), "heat maps are of durations: open a metric of them (Tab)");
}

static void pause_or_go_on(struct top *top)
{
	top->is_paused = !top->is_paused;
	top->paused_s = 0;
	if (top->agent)
		agent_set_interval(top->agent, top->is_paused ? 0 : top->options.interval_ns);
}

/* What the service does not do: top counts by itself then. */
static void request_agent(struct top *top, int what)
{
	if (!top->options.can_count) {
		snprintf(top->note, sizeof(top->note), "the service does not do this, and to count by itself takes root");
		return;
	}
	top->wish = what;
	top_stop(top);
}

static void change_interval(struct top *top, uint64_t ns)
{
	if (!top->agent) {
		request_agent(top, TOP_ALONE);
		return;
	}
	ns = ns < INTERVAL_MAX ? ns : INTERVAL_MAX;
	top->options.interval_ns = ns > INTERVAL_MIN ? ns : INTERVAL_MIN;
	if (!top->is_paused)
		agent_set_interval(top->agent, top->options.interval_ns);
}

static void show_processes(struct top *top)
{
	bool has = top->agent || !top->batch ? top->options.is_per_process :
					       overview_has_processes(top->batch);

	if (!has)
		request_agent(top, TOP_PROCESSES);
	if (has || top->wish)
		open_or_return(top, PAGE_OVERVIEW);
}

bool keys_type(struct top *top, int key)
{
	char *filter = top->page->filter;
	size_t n = strlen(filter);
	char bytes[MB_LEN_MAX];
	int size = key > 0 ? wctomb(bytes, key) : 0;

	bool is_end = key == '\r' || key == '\n' || key == -KEY_ENTER || key == ESCAPE;

	if (is_end)
		top->is_typing = false;
	if (key == ESCAPE)
		*filter = '\0';
	while (key == -KEY_BACKSPACE && n && ((unsigned char)filter[--n] & 0xc0) == 0x80)
		;
	if (key == -KEY_BACKSPACE)
		filter[n] = '\0';
	else if (key >= ' ' && key != 127 && size > 0 &&
		 n + (size_t)size < sizeof(top->page->filter))
		*(char *)mempcpy(filter + n, bytes, (size_t)size) = '\0';
	top->is_filled = false;
	return key > 0 || is_end || key == -KEY_BACKSPACE;
}

void keys_obey(struct top *top, int key)
{
	const struct line *line;
	ssize_t n = (ssize_t)top->n_shown;

	top->note[0] = '\0';
	top_fill(top); /* keys may come faster than pictures */
	line = top->content.n_lines ? &top->content.lines[top->page->cursor] : NULL;
	switch (key) {
	case -KEY_UP: case 'k': move_cursor(top, -1); break;
	case -KEY_DOWN: case 'j': move_cursor(top, 1); break;
	case -KEY_PPAGE: move_cursor(top, -n); break;
	case -KEY_NPAGE: move_cursor(top, n); break;
	case -KEY_HOME: case 'g': move_cursor(top, -LONG_MAX / 2); break;
	case -KEY_END: case 'G': move_cursor(top, LONG_MAX / 2); break;
	case -KEY_LEFT: case '<': case ',': move_sort(top, -1); break;
	case -KEY_RIGHT: case '>': case '.': move_sort(top, 1); break;
	case '\r': case '\n': case -KEY_ENTER: enter_row(top, line); break;
	case ESCAPE: case -KEY_BACKSPACE: go_back(top); break;
	case '\t': case 'm': open_or_return(top, PAGE_METRICS); break;
	case -KEY_F(1): case 'h': case '?': open_or_return(top, PAGE_HELP); break;
	case -KEY_F(4): case '/': case '\\': top->is_typing = true; break;
	case 'r': top->page->is_reversed = !top->page->is_reversed; top->is_filled = false; break;
	case 'p': show_processes(top); break;
	case 's': top->is_whole = !top->is_whole; top->is_filled = false; break;
	case 'H': switch_heat_map(top); break;
	case ' ': pause_or_go_on(top); break;
	case '+': change_interval(top, top->options.interval_ns * 2); break;
	case '-': change_interval(top, top->options.interval_ns / 2); break;
	case 'q': case -KEY_F(10): top_stop(top); break;
	}
}

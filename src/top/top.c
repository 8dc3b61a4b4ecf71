/* SPDX-License-Identifier: Apache-2.0 */
#define NCURSES_NOMACROS
#include "top/top.h"

#include <curses.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "top/draw.h"
#include "top/screen.h"
#include "util/duration.h"
#include "view/overview.h"

#define ESCAPE	     27
#define INTERVAL_MIN (100 * NS_PER_MS)
#define INTERVAL_MAX (60 * NS_PER_S)

static void fill(struct top *top)
{
	size_t *cursor = &top->page->cursor, n;

	if (!top->is_filled)
		page_fill(top->page, &top->content);
	top->is_filled = true;
	n = top->content.n_lines;
	*cursor = *cursor < n ? *cursor : n ? n - 1 : 0;
}

static void show(struct top *top)
{
	fill(top);
	draw(top);
}

static void append_heading(const struct top *top, uint64_t elapsed_ns, struct buf *out)
{
	_cleanup_(buf_done) struct buf heading = BUF_INIT;
	char length[32];

	snprintf(length, sizeof(length), "%.3f s", (double)elapsed_ns / 1e9);
	draw_heading(top, length, &heading);
	grid_cut(out, buf_text(&heading), top->options.width ?: UINT_MAX);
	buf_append_byte(out, '\n');
}

/* A plain table */
static void print(struct top *top)
{
	const struct top_options *options = &top->options;
	uint64_t elapsed_ns = top->batch->time_ns - top->batch->previous_ns;
	_cleanup_(buf_done) struct buf text = BUF_INIT;

	/* What is left at the end is of no use if it is short. */
	if (top->batch->is_last && !options->is_plain && top->n_printed && elapsed_ns < options->interval_ns / 2)
		return;
	fill(top);
	buf_append_text(&text, top->n_printed++ ? "\n" : "");
	append_heading(top, elapsed_ns, &text);
	for (size_t i = 0; i < top->content.n_grids; i++) {
		grid_limit(&top->content.grids[i], top->page->limit);
		grid_print(&top->content.grids[i], options->width, options->has_colour, &text);
	}
	grid_to_locale((char *)buf_text(&text));
	if (dprintf(options->fd, "%s", buf_text(&text)) >= 0)
		return;
	top->error = errno;
	if (top->agent)
		agent_stop(top->agent);
}

static uint64_t agent_ns(void)
{
	struct rusage use = { 0 };

	getrusage(RUSAGE_SELF, &use);
	return (uint64_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * NS_PER_S +
	       (uint64_t)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * NS_PER_US;
}

const struct batch *top_view(void *user, const struct batch *batch)
{
	struct top *top = user;
	uint64_t ns;

	if ((batch->is_last && top->is_screen) || (top->options.count && top->n_taken == top->options.count))
		return NULL;
	for (struct page *page = top->page; page; page = page->below)
		if (page->kind != PAGE_HELP && page_add(page, batch))
			return NULL;
	ns = agent_ns();
	top->agent_share = (double)(ns - top->agent_ns) / (double)(batch->time_ns - batch->previous_ns) * 100;
	top->agent_ns = ns;
	top->batch = batch;
	top->is_filled = false;
	/* Collectors that say nothing of what an overview shows. */
	if (top->page->kind == PAGE_OVERVIEW && !top->page->below && !view_batch(top->page->view)->n_metrics)
		top->page->kind = PAGE_DETAIL;
	if (top->page->kind == PAGE_DETAIL && !top->page->below && view_batch(top->page->view)->n_metrics == 1)
		top->page->kind = PAGE_METRIC;
	if (top->is_screen)
		show(top);
	else
		print(top);
	if (++top->n_taken == top->options.count)
		agent_stop(top->agent);
	return NULL;
}

/* Keys */

static void move_cursor(struct top *top, ssize_t by)
{
	ssize_t to = (ssize_t)top->page->cursor + by;

	top->page->cursor = to < 0 ? 0 : (size_t)to; /* fill() sees to its end */
}

/* To the next column, from the one that is sorted by. */
static void move_sort(struct top *top, int by)
{
	const struct grid *grid = top->content.n_lines ? top->content.lines[top->page->cursor].grid : NULL;
	int n = grid ? (int)grid->n_columns : 0, at = n ? (int)grid->sorted : 0;

	if (!n)
		return;
	do
		at = at >= n ? (by > 0 ? 0 : n - 1) : (at + by + n) % n;
	while (!grid->columns[at].width);
	snprintf(top->page->sort, sizeof(top->page->sort), "%s", grid->columns[at].heading);
	top->is_filled = false;
}

static void go(struct top *top, struct page *page)
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
		go(top, page_open(top->page, NULL, kind, kind == PAGE_OVERVIEW ? "process" : NULL));
	top->is_filled = false;
}

static void back(struct top *top)
{
	if (*top->page->filter)
		top->page->filter[0] = '\0';
	else if (top->page->below)
		top->page = page_free(top->page);
	top->is_filled = false;
}

static void pause_or_go_on(struct top *top)
{
	top->is_paused = !top->is_paused;
	top->paused_s = 0;
	agent_set_interval(top->agent, top->is_paused ? 0 : top->options.interval_ns);
}

static void change_interval(struct top *top, uint64_t ns)
{
	top->options.interval_ns = ns < INTERVAL_MIN ? INTERVAL_MIN : ns > INTERVAL_MAX ? INTERVAL_MAX : ns;
	if (!top->is_paused)
		agent_set_interval(top->agent, top->options.interval_ns);
}

static void show_processes(struct top *top)
{
	open_or_return(top, PAGE_OVERVIEW);
	if (top->options.is_per_process)
		return;
	top->wants_processes = true;
	agent_stop(top->agent);
}

static bool type(struct top *top, int key)
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
	else if (key >= ' ' && key != 127 && size > 0 && n + (size_t)size < sizeof(top->page->filter))
		*(char *)mempcpy(filter + n, bytes, (size_t)size) = '\0';
	top->is_filled = false;
	return key > 0 || is_end || key == -KEY_BACKSPACE;
}

static void obey(struct top *top, int key)
{
	const struct line *line;
	ssize_t n = (ssize_t)top->n_shown;

	fill(top); /* keys may come faster than pictures */
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
	case '\r': case '\n': case -KEY_ENTER: go(top, line ? page_enter(top->page, line) : NULL); break;
	case ESCAPE: case -KEY_BACKSPACE: back(top); break;
	case '\t': case 'm': open_or_return(top, PAGE_METRICS); break;
	case -KEY_F(1): case 'h': case '?': open_or_return(top, PAGE_HELP); break;
	case -KEY_F(4): case '/': case '\\': top->is_typing = true; break;
	case 'r': top->page->is_reversed = !top->page->is_reversed; top->is_filled = false; break;
	case 'p': show_processes(top); break;
	case 'H': top->options.is_heatmap = !top->options.is_heatmap; break;
	case ' ': pause_or_go_on(top); break;
	case '+': change_interval(top, top->options.interval_ns * 2); break;
	case '-': change_interval(top, top->options.interval_ns / 2); break;
	case 'q': case -KEY_F(10): agent_stop(top->agent); break;
	}
}

static int on_input(sd_event_source *source, int fd, uint32_t events, void *user)
{
	struct top *top = user;
	bool has_key = false;

	for (int key; (key = screen_key()); has_key = true)
		if (!top->is_typing || !type(top, key))
			obey(top, key);
	if (!has_key && events & (EPOLLHUP | EPOLLERR))
		agent_stop(top->agent); /* the terminal has gone */
	else if (!top->wants_processes)
		show(top);
	return 0;
}

static int on_resize(sd_event_source *source, const struct signalfd_siginfo *info, void *user)
{
	screen_resize();
	show(user);
	return 0;
}

static int on_second(sd_event_source *source, uint64_t usec, void *user)
{
	struct top *top = user;

	if (top->is_paused) {
		top->paused_s++;
		show(top);
	}
	sd_event_source_set_time(source, usec + NS_PER_S / NS_PER_US);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int on_end(sd_event_source *source, uint64_t usec, void *user)
{
	agent_stop(((struct top *)user)->agent);
	return 0;
}

struct top *top_new(const struct top_options *options)
{
	_cleanup_(top_freep) struct top *top = calloc(1, sizeof(*top));

	if (!top)
		return NULL;
	top->options = *options;
	top->is_screen = !options->is_plain && screen_is_possible();
	return TAKE_PTR(top);
}

/* The page that is seen first. */
int top_ask(struct top *top, const struct question *question, struct diag *diag)
{
	const struct top_options *options = &top->options;
	bool has_metrics = question->metrics.n_items;
	struct page *page = top->page;
	int err = 0;

	if (page) /* it is run again */
		return 0;
	page = page_new(has_metrics ? PAGE_DETAIL : PAGE_OVERVIEW, NULL, options->by, options->where);
	top->page = page;
	if (!page)
		return -ENOMEM;
	for (size_t i = 0; i < question->metrics.n_items && !err; i++)
		err = setting_list_add(&page->question.metrics, question->metrics.items[i]);
	snprintf(page->sort, sizeof(page->sort), "%s", options->sort ?: "");
	page->limit = options->limit;
	for (size_t i = 0; i < page->rows.by.n_items; i++)
		has_metrics |= !strcmp(grid_heading(page->rows.by.items[i]), page->sort);
	if (*page->sort && !has_metrics)
		(void)diag_find(diag, "--sort", 0, "column", page->sort, overview_columns, overview_n_columns);
	return err;
}

int top_error(const struct top *top)
{
	return top->error;
}

void top_free(struct top *top)
{
	if (!top)
		return;
	screen_end();
	content_done(&top->content);
	while (top->page)
		top->page = page_free(top->page);
	free(top);
}

static int add_sources(struct top *top)
{
	sd_event *event = agent_event(top->agent);
	int r = 0;
	sigset_t set;

	if (top->options.duration_ns)
		r = sd_event_add_time_relative(event, NULL, CLOCK_BOOTTIME, top->options.duration_ns / NS_PER_US, 1000,
					       on_end, top);
	if (!top->is_screen || r < 0)
		return r;
	sigemptyset(&set);
	sigaddset(&set, SIGWINCH);
	sigprocmask(SIG_BLOCK, &set, NULL);
	r = sd_event_add_io(event, NULL, STDIN_FILENO, EPOLLIN, on_input, top);
	if (r >= 0)
		r = sd_event_add_signal(event, NULL, SIGWINCH, on_resize, top);
	if (r >= 0)
		r = sd_event_add_time_relative(event, NULL, CLOCK_BOOTTIME, NS_PER_S / NS_PER_US, 1000, on_second, top);
	return r;
}

int top_run(struct top *top, struct agent *agent)
{
	int r;

	top->agent = agent;
	top->agent_ns = agent_ns();
	top->is_screen = top->is_screen && !screen_begin();
	if (top->is_screen)
		show(top);
	r = add_sources(top);
	r = r < 0 ? r : agent_run(agent);
	top->agent = NULL;
	top->batch = NULL;
	top->is_filled = false;
	page_restart(top->page);
	errno = top->error;
	if (top->error || r || !top->wants_processes)
		return top->error ? TOP_UNWRITABLE : r < 0 ? r : 0;
	top->wants_processes = false;
	top->options.is_per_process = true;
	show(top);
	return TOP_PROCESSES;
}

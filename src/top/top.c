/* SPDX-License-Identifier: Apache-2.0 */
#include "top/top.h"

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
#include "top/keys.h"
#include "top/screen.h"
#include "util/duration.h"
#include "view/overview.h"

/* A plain table */
static void print_table(struct top *top)
{
	const struct top_options *options = &top->options;
	uint64_t elapsed_ns = top->batch->time_ns - top->batch->previous_ns;
	_cleanup_(buf_done) struct buf heading = BUF_INIT, text = BUF_INIT;
	char length[32];

	/* What is left at the end is of no use if it is short. */
	if (top->batch->is_last && !options->is_plain && top->n_printed &&
	    elapsed_ns < options->interval_ns / 2)
		return;
	top_fill(top);
	buf_append_text(&text, top->n_printed++ ? "\n" : "");
	snprintf(length, sizeof(length), "%.3f s", (double)elapsed_ns / 1e9);
	draw_heading(top, length, &heading);
	grid_cut(&text, buf_text(&heading), options->width ?: UINT_MAX);
	buf_append_byte(&text, '\n');
	for (size_t i = 0; i < top->content.n_grids; i++) {
		grid_limit(&top->content.grids[i], top->page->limit);
		grid_print(&top->content.grids[i], options->width, options->has_colour, &text);
	}
	grid_to_locale((char *)buf_text(&text));
	if (dprintf(options->fd, "%s", buf_text(&text)) >= 0)
		return;
	top->error = errno;
	top_stop(top);
}

static uint64_t agent_ns(void)
{
	struct rusage use = { 0 };

	getrusage(RUSAGE_SELF, &use);
	return (uint64_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * NS_PER_S +
	       (uint64_t)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * NS_PER_US;
}

/* The series that have been counted for the longest time say it. */
static void find_begin(struct top *top, const struct batch *batch)
{
	uint64_t begin_ns = batch->previous_ns;
	struct metric *metric;
	struct series *series;

	batch_for_each_metric(metric, batch)
		metric_for_each_series(series, metric)
			begin_ns = series->start_ns && series->start_ns < begin_ns ?
				   series->start_ns : begin_ns;
	/* Series that have ended say it no more, but that of which the totals are says it still. */
	if (!top->begin_ns || top->begin_ns > begin_ns)
		top->begin_ns = begin_ns;
}

/* The one that lies below all others, as the options say. NULL: no memory. */
static struct page *new_first_page(const struct top *top, enum page_kind kind)
{
	const struct top_options *options = &top->options;
	struct page *page = page_new(kind, NULL, options->by, options->where);

	if (!page)
		return NULL;
	snprintf(page->sort, sizeof(page->sort), "%s", options->sort ?: "");
	page->limit = options->limit;
	return page;
}

/* Collectors that say nothing of what an overview shows: all that they say. */
static void show_all_instead(struct top *top, const struct batch *batch)
{
	struct page *page = new_first_page(top, PAGE_DETAIL);

	if (!page || page_add(page, batch)) {
		page_free(page);
		return;
	}
	page_free(top->page);
	top->page = page;
	top->is_instead = true;
}

void top_restart(struct top *top)
{
	struct page *page = top->is_instead ? new_first_page(top, PAGE_OVERVIEW) : NULL;

	/* What comes may have units again. */
	while (page && top->page)
		top->page = page_free(top->page);
	top->page = top->page ?: page;
	top->is_instead = top->is_instead && !page;
	page_restart(top->page);
	top->batch = NULL;
	top->is_filled = false;
	top->begin_ns = 0;
}

const struct batch *top_view(void *user, const struct batch *batch)
{
	struct top *top = user;
	uint64_t ns;

	if ((batch->is_last && top->is_screen) ||
	    (top->options.count && top->n_taken == top->options.count))
		return NULL;
	for (struct page *page = top->page; page; page = page->below)
		if (page->kind != PAGE_HELP && page_add(page, batch))
			return NULL;
	ns = agent_ns();
	top->agent_share = (double)(ns - top->agent_ns) /
			   (double)(batch->time_ns - batch->previous_ns) * 100;
	top->agent_ns = ns;
	top->batch = batch;
	top->is_filled = false;
	find_begin(top, batch);
	if (top->page->kind == PAGE_OVERVIEW && !top->page->below &&
	    !view_batch(top->page->view)->n_metrics)
		show_all_instead(top, batch);
	if (top->page->kind == PAGE_DETAIL && !top->page->below &&
	    view_batch(top->page->view)->n_metrics == 1)
		top->page->kind = PAGE_METRIC;
	if (top->is_screen)
		top_show(top);
	else
		print_table(top);
	if (++top->n_taken == top->options.count)
		top_stop(top);
	return NULL;
}

static int on_input(sd_event_source *source, int fd, uint32_t events, void *user)
{
	struct top *top = user;
	bool has_key = false;

	for (int key; (key = screen_key()); has_key = true)
		if (!top->is_typing || !keys_type(top, key))
			keys_obey(top, key);
	if (!has_key && events & (EPOLLHUP | EPOLLERR))
		top_stop(top); /* the terminal has gone */
	else if (!top->wish)
		top_show(top);
	return 0;
}

static int on_resize(sd_event_source *source, const struct signalfd_siginfo *info, void *user)
{
	screen_resize();
	top_show(user);
	return 0;
}

static int on_suspend(sd_event_source *source, const struct signalfd_siginfo *info, void *user)
{
	screen_suspend();
	top_show(user);
	return 0;
}

static int on_second(sd_event_source *source, uint64_t usec, void *user)
{
	struct top *top = user;

	if (top->is_paused) {
		top->paused_s++;
		top_show(top);
	}
	sd_event_source_set_time(source, usec + NS_PER_S / NS_PER_US);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int on_end(sd_event_source *source, uint64_t usec, void *user)
{
	top_stop(user);
	return 0;
}

struct top *top_new(const struct top_options *options)
{
	_cleanup_(top_freep) struct top *top = calloc(1, sizeof(*top));

	if (!top)
		return NULL;
	top->options = *options;
	top->is_screen = !options->is_plain && screen_is_possible();
	top->state = "";
	return TAKE_PTR(top);
}

/* The page that is seen first. */
int top_ask(struct top *top, const struct question *question, struct diag *diag)
{
	bool has_metrics = question->metrics.n_items;
	struct page *page = top->page;
	int err = 0;

	if (page) /* it is run again */
		return 0;
	page = new_first_page(top, has_metrics ? PAGE_DETAIL : PAGE_OVERVIEW);
	top->page = page;
	if (!page)
		return -ENOMEM;
	for (size_t i = 0; i < question->metrics.n_items && !err; i++)
		err = setting_list_add(&page->question.metrics, question->metrics.items[i]);
	for (size_t i = 0; i < page->rows.by.n_items; i++)
		has_metrics |= !strcmp(grid_heading(page->rows.by.items[i]), page->sort);
	if (*page->sort && !has_metrics)
		(void)diag_find(diag, "--sort", 0, "column", page->sort, overview_columns, overview_n_columns);
	return err;
}

const char *top_note(const struct top *top)
{
	return top->note;
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

static int add_sources(struct top *top, sd_event *event)
{
	int r = 0;

	if (top->options.duration_ns)
		r = sd_event_add_time_relative(event, NULL, CLOCK_BOOTTIME,
					       top->options.duration_ns / NS_PER_US, 1000,
					       on_end, top);
	if (!top->is_screen || r < 0)
		return r;
	r = sd_event_add_io(event, NULL, STDIN_FILENO, EPOLLIN, on_input, top);
	if (r >= 0)
		r = sd_event_add_signal(event, NULL, SIGWINCH, on_resize, top);
	if (r >= 0)
		r = sd_event_add_signal(event, NULL, SIGTSTP, on_suspend, top);
	if (r >= 0)
		r = sd_event_add_time_relative(event, NULL, CLOCK_BOOTTIME, NS_PER_S / NS_PER_US,
					       1000, on_second, top);
	return r;
}

int top_begin(struct top *top, sd_event *event)
{
	top->agent_ns = agent_ns();
	top->is_screen = top->is_screen && !screen_begin();
	top->state = "";
	top_show(top);
	return add_sources(top, event);
}

int top_end(struct top *top, int r)
{
	int wish = top->wish;

	top->agent = NULL;
	top->event = NULL;
	top->problems = NULL;
	top->is_paused = false;
	top_restart(top);
	errno = top->error;
	if (top->error || r || !wish)
		return top->error ? TOP_UNWRITABLE : r;
	top->wish = 0;
	top->options.is_per_process |= wish == TOP_PROCESSES;
	if (!*top->state)
		top->state = wish == TOP_PROCESSES ? "starting again to count each process by itself" : "starting to count";
	top_show(top);
	return wish;
}

int top_run(struct top *top, struct agent *agent)
{
	int r;

	top->agent = agent;
	r = top_begin(top, agent_event(agent));
	r = r < 0 ? r : agent_run(agent);
	return top_end(top, r < 0 ? r : 0);
}

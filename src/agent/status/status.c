/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After each turn of the loop in which something happened, it is asked whether exporters have
 * changed. A timer then sends the line, so that it is sent at most once a second, whatever happens.
 *
 * sd_notify() waits as long as the manager does not read. Here, what cannot be sent waits until it
 * can, and the line is made then.
 */
#include "agent/status/status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <systemd/sd-daemon.h>

#include "agent/internal.h"
#include "agent/status/page.h"
#include "agent/status/socket.h"
#include "util/kept.h"
#include "util/utf8.h"

#define LEAST_NS      NS_PER_S /* from one line to the next */
#define MESSAGE_BYTES 1024
#define LATE_NS	      (10 * NS_PER_S) /* beyond an interval, a collection may be as late as this */
#define RECHECK_US    1000000	      /* while it is later */

struct status {
	struct agent *agent;
	bool (*reload)(struct agent *agent);
	sd_event_source *timer;
	uint64_t next_ns;	/* the next line is not sent before; CLOCK_BOOTTIME */
	unsigned int n_changes; /* of all exporters, as seen last */
	/* The manager. */
	struct sockaddr_un manager;
	socklen_t manager_bytes; /* 0: there is none */
	int manager_fd;
	sd_event_source *writable; /* enabled while something waits */
	uint64_t watchdog_us;
	/* To be sent with the line. */
	char phase[64]; /* or "" */
	bool is_alive;
	struct listener readers;   /* of the page */
	struct listener reloaders; /* see SOCKET_RELOAD */
};

/* The line */

/* Those that fail come first, since the line may be cut. */
static void append_exporters(const struct agent *agent, bool is_failing, struct buf *out)
{
	for (size_t i = 0; i < agent->n_exporters; i++) {
		if (agent->exporters[i]->stats.is_failing != is_failing)
			continue;
		buf_printf(out, "; %s: ", agent->exporters[i]->name);
		page_append_health(agent->exporters[i], clock_ns(CLOCK_BOOTTIME), out);
	}
}

static void append_line(const struct agent *agent, struct buf *out)
{
	const struct collector_set *set = agent->options.set;

	buf_printf(out, "%zu collector%s", set->n_shown, plural(set->n_shown));
	if (!agent->n_collections) {
		buf_append_text(out, " attached");
		return;
	}
	buf_printf(out, ", %" PRIu64 " series, read in %.1f ms", set->budget->n_series, (double)agent->collection_ns / 1e6);
	page_append_problems(agent, "; ", "", out);
	append_exporters(agent, true, out);
	append_exporters(agent, false, out);
}

/*
 * Connected, the socket can be polled; connected each time, it finds a manager that was started
 * again.
 */
static void notify_manager(struct status *status)
{
	_cleanup_(buf_done) struct buf line = BUF_INIT;
	char text[MESSAGE_BYTES];
	bool is_waiting;
	int size;

	if (!status->manager_bytes)
		return;
	if (status->agent->batch.is_last)
		buf_append_text(&line, "sending the last collection");
	else
		append_line(status->agent, &line);
	size = snprintf(text, sizeof(text), "%s%sSTATUS=", status->phase, status->is_alive ? "WATCHDOG=1\n" : "");
	snprintf(text + size, sizeof(text) - (size_t)size, "%s", buf_text(&line));
	utf8_clean(text + size); /* a newline would begin another message */
	is_waiting = !connect(status->manager_fd, (struct sockaddr *)&status->manager,
			      status->manager_bytes) &&
		     send(status->manager_fd, text, strlen(text), MSG_NOSIGNAL) < 0 &&
		     errno == EAGAIN;
	sd_event_source_set_enabled(status->writable, is_waiting ? SD_EVENT_ON : SD_EVENT_OFF);
	if (is_waiting)
		return;
	status->phase[0] = '\0';
	status->is_alive = false;
}

void status_say(struct status *status, const char *phase)
{
	snprintf(status->phase, sizeof(status->phase), "%s\n", phase);
	notify_manager(status);
}

/* When it is sent */

void status_changed(struct status *status)
{
	int is_on;

	if (!status ||
	    (sd_event_source_get_enabled(status->timer, &is_on) >= 0 && is_on != SD_EVENT_OFF))
		return;
	sd_event_source_set_time(status->timer, status->next_ns / NS_PER_US);
	sd_event_source_set_enabled(status->timer, SD_EVENT_ONESHOT);
}

static int on_time(sd_event_source *source, uint64_t usec, void *user)
{
	struct status *status = user;

	status->next_ns = clock_ns(CLOCK_BOOTTIME) + LEAST_NS;
	notify_manager(status);
	return 0;
}

static int on_turn(sd_event_source *source, void *user)
{
	struct status *status = user;
	unsigned int n_changes = 0;

	for (size_t i = 0; i < status->agent->n_exporters; i++)
		n_changes += status->agent->exporters[i]->stats.n_changes;
	if (n_changes != status->n_changes)
		status_changed(status);
	status->n_changes = n_changes;
	return 0;
}

static int on_writable(sd_event_source *source, int fd, uint32_t events, void *user)
{
	notify_manager(user);
	return 0;
}

/*
 * The loop turns, or it could not ask; and collections come. What receivers do does not count.
 * Times are those of the watchdog's clock, which stands still in a suspend.
 */
static int on_watchdog(sd_event_source *source, uint64_t usec, void *user)
{
	struct status *status = user;
	const struct agent *agent = status->agent;
	uint64_t next_us = status->watchdog_us / 2,
		age_ns = clock_ns(CLOCK_MONOTONIC) - agent->collected_ns;

	status->is_alive = agent->batch.is_last ||
			   age_ns < 2 * agent->options.interval_ns + LATE_NS;
	if (!status->is_alive && next_us > RECHECK_US)
		next_us = RECHECK_US;
	notify_manager(status);
	sd_event_source_set_time_relative(source, next_us);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int find_manager(struct status *status, sd_event *event)
{
	int r;

	status->manager_bytes = kept_manager(&status->manager);
	if (!status->manager_bytes)
		return 0;
	status->manager_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (status->manager_fd < 0)
		return -errno;
	r = sd_event_add_io(event, &status->writable, status->manager_fd, EPOLLOUT,
			    on_writable, status);
	r = r < 0 ? r : sd_event_source_set_enabled(status->writable, SD_EVENT_OFF);
	if (r >= 0 && sd_watchdog_enabled(false, &status->watchdog_us) > 0)
		r = sd_event_add_time_relative(event, NULL, CLOCK_MONOTONIC, 0, 1,
					       on_watchdog, status);
	return r;
}

/* The page */

/* It fits into the socket's buffer, so a reader who does not read is not waited for. */
static int on_reader(sd_event_source *source, int fd, uint32_t events, void *user)
{
	struct status *status = user;
	_cleanup_(closep) int reader = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	_cleanup_(buf_done) struct buf page = BUF_INIT;

	page_append(status->agent, clock_ns(CLOCK_BOOTTIME), &page);
	if (reader >= 0 && !buf_error(&page))
		(void)!send(reader, page.data, page.size, MSG_NOSIGNAL);
	return 0;
}

static int on_reloader(sd_event_source *source, int fd, uint32_t events, void *user)
{
	struct status *status = user;
	struct agent *agent = status->agent;
	_cleanup_(closep) int reloader = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (reloader < 0 || (agent->batch.is_last && !agent->reload))
		return 0;
	(void)!send(reloader, agent->reload || status->reload(agent) ? "0" : "1", 1, MSG_NOSIGNAL);
	return 0;
}

int status_new(struct agent *agent, bool (*reload)(struct agent *agent), struct status **ret_status)
{
	_cleanup_(status_freep) struct status *status = calloc(1, sizeof(*status));
	int r;

	if (!status)
		return -ENOMEM;
	status->agent = agent;
	status->reload = reload;
	status->readers.fd = status->reloaders.fd = status->manager_fd = -1;
	r = sd_event_add_post(agent->event, NULL, on_turn, status);
	r = r < 0 ? r :
	    sd_event_add_time(agent->event, &status->timer, CLOCK_BOOTTIME, 0, 1000,
			      on_time, status);
	r = r < 0 ? r : sd_event_source_set_enabled(status->timer, SD_EVENT_OFF);
	r = r < 0 ? r : find_manager(status, agent->event);
	if (r < 0)
		return r;
	if (!agent->options.is_filter && !getenv("RUNTIME_DIRECTORY"))
		log_info("RUNTIME_DIRECTORY is not set, so \"bpfpush status\", \"top\" and \"reload\" "
			 "cannot reach this process");
	/*
	 * A filter is not the service. Where another agent has the first socket, the second would
	 * be its, too.
	 */
	if (!agent->options.is_filter &&
	    listener_open(&status->readers, SOCKET_STATUS, 0660, "\"bpfpush status\" cannot reach this process",
			  agent->event, on_reader, status) && agent->options.reload)
		listener_open(&status->reloaders, SOCKET_RELOAD, 0600, "\"bpfpush reload\" cannot reach this process",
			      agent->event, on_reloader, status);
	*ret_status = TAKE_PTR(status);
	return 0;
}

void status_free(struct status *status)
{
	if (!status)
		return;
	sd_event_source_unref(status->timer);
	sd_event_source_unref(status->writable);
	listener_close(&status->readers);
	listener_close(&status->reloaders);
	closep(&status->manager_fd);
	free(status);
}

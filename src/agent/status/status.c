/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After each turn of the loop in which something happened, the counts of the exporters are compared with those of
 * before. A timer then sends the line, so that it is sent at most once a second, whatever happens.
 */
#include "agent/status/status.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "agent/internal.h"
#include "agent/status/health.h"
#include "agent/status/notify.h"
#include "agent/status/page.h"
#include "util/plural.h"

#define LEAST_NS NS_PER_S /* from one line to the next */

struct status {
	struct agent *agent;
	sd_event_source *after, *timer, *socket;
	struct sockaddr_un address; /* of the socket */
	int fd;
	uint64_t said_ns;
	unsigned int n_changes; /* of all exporters, as seen last */
};

void status_changed(struct status *status)
{
	uint64_t now_ns = clock_ns(CLOCK_BOOTTIME), next_ns;
	int is_on;

	if (!status || (sd_event_source_get_enabled(status->timer, &is_on) >= 0 && is_on != SD_EVENT_OFF))
		return;
	next_ns = status->said_ns ? status->said_ns + LEAST_NS : 0;
	sd_event_source_set_time(status->timer, (next_ns > now_ns ? next_ns : now_ns) / NS_PER_US);
	sd_event_source_set_enabled(status->timer, SD_EVENT_ONESHOT);
}

/* Those that fail come first, since the line may be cut. */
static void append_exporters(const struct status *status, bool is_failing, uint64_t now_ns, struct buf *out)
{
	const struct agent *agent = status->agent;

	for (size_t i = 0; i < agent->n_exporters; i++) {
		if (agent->exporters[i]->stats.is_failing != is_failing)
			continue;
		buf_printf(out, "; %s: ", agent->exporters[i]->name);
		health_append(agent->exporters[i], now_ns, out);
	}
}

static int on_time(sd_event_source *source, uint64_t usec, void *user)
{
	struct status *status = user;
	struct agent *agent = status->agent;
	const struct collector_set *set = agent->options.set;
	_cleanup_(buf_done) struct buf line = BUF_INIT;

	if (agent->batch.is_last || !agent->n_collections)
		return 0;
	status->said_ns = clock_ns(CLOCK_BOOTTIME);
	buf_printf(&line, "%zu collector%s, %" PRIu64 " series, read in %.1f ms", set->n_shown, plural(set->n_shown),
		   set->budget->n_series, (double)agent->collection_ns / 1e6);
	health_append_problems(agent, "; ", "", &line);
	append_exporters(status, true, status->said_ns, &line);
	append_exporters(status, false, status->said_ns, &line);
	notify_say(agent->notify, NULL, "%s", buf_text(&line));
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

/* The page fits into the socket's buffer, so a reader who does not read is not waited for. */
static int on_connect(sd_event_source *source, int fd, uint32_t events, void *user)
{
	struct status *status = user;
	_cleanup_(closep) int reader = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	_cleanup_(buf_done) struct buf page = BUF_INIT;

	page_append(status->agent, clock_ns(CLOCK_BOOTTIME), &page);
	if (reader >= 0 && !buf_error(&page))
		(void)!send(reader, page.data, page.size, MSG_NOSIGNAL);
	return 0;
}

/* Only the service's user and its group may ask. */
static int add_socket(struct status *status)
{
	const char *directory = getenv("RUNTIME_DIRECTORY");
	struct sockaddr_un *address = &status->address;

	if (!directory || strchr(directory, ':') || strlen(directory) + sizeof("/status") > sizeof(address->sun_path))
		return 0;
	address->sun_family = AF_UNIX;
	snprintf(address->sun_path, sizeof(address->sun_path), "%s/status", directory);
	status->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (!connect(status->fd, (struct sockaddr *)address, sizeof(*address)) || errno == EAGAIN)
		return -EADDRINUSE; /* another agent's */
	(void)unlink(address->sun_path); /* of an agent that was killed */
	if (status->fd < 0 || bind(status->fd, (struct sockaddr *)address, sizeof(*address)) ||
	    chmod(address->sun_path, 0660) || listen(status->fd, 8))
		return -errno;
	return sd_event_add_io(status->agent->event, &status->socket, status->fd, EPOLLIN, on_connect, status);
}

int status_new(struct agent *agent, struct status **ret_status)
{
	_cleanup_(status_freep) struct status *status = calloc(1, sizeof(*status));
	int r;

	if (!status)
		return -ENOMEM;
	status->agent = agent;
	status->fd = -1;
	r = sd_event_add_post(agent->event, &status->after, on_turn, status);
	if (r >= 0)
		r = sd_event_add_time(agent->event, &status->timer, CLOCK_BOOTTIME, 0, 1000, on_time, status);
	if (r >= 0)
		r = sd_event_source_set_enabled(status->timer, SD_EVENT_OFF);
	if (r < 0)
		return r;
	r = add_socket(status);
	if (r < 0)
		log_warning("%s: %s; \"bpfpush status\" has no answer of this process", status->address.sun_path, strerror(-r));
	*ret_status = TAKE_PTR(status);
	return 0;
}

struct status *status_free(struct status *status)
{
	if (!status)
		return NULL;
	if (status->socket)
		(void)unlink(status->address.sun_path);
	sd_event_source_unref(status->after);
	sd_event_source_unref(status->timer);
	sd_event_source_unref(status->socket);
	closep(&status->fd);
	free(status);
	return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/status/notify.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include "util/kept.h"
#include "util/utf8.h"

#define STATUS_BYTES 1024
#define RECHECK_US   1000000

struct notify {
	int fd;
	struct sockaddr_un address;
	socklen_t address_bytes;
	sd_event_source *writable; /* enabled while something waits */
	sd_event_source *alive;
	uint64_t watchdog_us;
	bool (*ask)(void *user); /* is it alive? */
	void *user;
	/* to be sent */
	const char *phase; /* or NULL */
	bool is_alive;
	char status[STATUS_BYTES]; /* or "" */
};

/* Connected, the socket can be polled; connected each time, it finds a manager that was started again. */
static void send_all(struct notify *notify)
{
	char text[STATUS_BYTES + 64];
	int size = snprintf(text, sizeof(text), "%s%s%s%s%s", notify->phase ?: "", notify->phase ? "\n" : "",
			    notify->is_alive ? "WATCHDOG=1\n" : "", *notify->status ? "STATUS=" : "", notify->status);
	bool is_waiting = size && !connect(notify->fd, (struct sockaddr *)&notify->address, notify->address_bytes) &&
			  send(notify->fd, text, (size_t)size, MSG_NOSIGNAL) < 0 && errno == EAGAIN;

	sd_event_source_set_enabled(notify->writable, is_waiting ? SD_EVENT_ON : SD_EVENT_OFF);
	if (is_waiting)
		return;
	notify->phase = NULL;
	notify->is_alive = false;
	notify->status[0] = '\0';
}

static int on_writable(sd_event_source *source, int fd, uint32_t events, void *user)
{
	send_all(user);
	return 0;
}

static int on_alive(sd_event_source *source, uint64_t usec, void *user)
{
	struct notify *notify = user;
	uint64_t next_us = notify->watchdog_us / 2;

	notify->is_alive = notify->ask(notify->user);
	if (notify->is_alive)
		send_all(notify);
	else if (next_us > RECHECK_US)
		next_us = RECHECK_US;
	sd_event_source_set_time_relative(source, next_us);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

void notify_say(struct notify *notify, const char *phase, const char *format, ...)
{
	va_list arguments;

	if (!notify)
		return;
	va_start(arguments, format);
	vsnprintf(notify->status, sizeof(notify->status), format, arguments);
	va_end(arguments);
	utf8_clean(notify->status); /* a newline would begin another message */
	notify->phase = phase ?: notify->phase;
	send_all(notify);
}

static int listen_and_watch(struct notify *notify, sd_event *event)
{
	int r;

	notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (notify->fd < 0)
		return -errno;
	r = sd_event_add_io(event, &notify->writable, notify->fd, EPOLLOUT, on_writable, notify);
	if (r >= 0)
		r = sd_event_source_set_enabled(notify->writable, SD_EVENT_OFF);
	if (r >= 0 && sd_watchdog_enabled(false, &notify->watchdog_us) > 0)
		r = sd_event_add_time_relative(event, &notify->alive, CLOCK_MONOTONIC, 0, 1, on_alive, notify);
	return r < 0 ? r : 0;
}

int notify_new(sd_event *event, bool (*is_alive)(void *user), void *user, struct notify **ret_notify)
{
	_cleanup_(notify_freep) struct notify *notify = NULL;
	struct sockaddr_un address;
	socklen_t address_bytes = kept_manager(&address);
	int err;

	*ret_notify = NULL;
	if (!address_bytes)
		return 0;
	notify = calloc(1, sizeof(*notify));
	if (!notify)
		return -ENOMEM;
	notify->ask = is_alive;
	notify->user = user;
	notify->address = address;
	notify->address_bytes = address_bytes;
	err = listen_and_watch(notify, event);
	if (!err)
		*ret_notify = TAKE_PTR(notify);
	return err;
}

struct notify *notify_free(struct notify *notify)
{
	if (!notify)
		return NULL;
	sd_event_source_unref(notify->writable);
	sd_event_source_unref(notify->alive);
	closep(&notify->fd);
	free(notify);
	return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collections of the service, as agent/status/viewers.h sends them. The service may have been
 * taken over: the bytes are checked, and the memory that they take is bounded.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

#include "agent/status/socket.h"
#include "agent/status/viewers.h"
#include "metric/copy.h"
#include "top/draw.h"
#include "top/top.h"
#include "util/duration.h"
#include "util/utf8.h"
#include "view/overview.h"

#define TURN_US 500000 /* between looks at whether the service is there, and speaks */
#define LATE_US 2000000 /* beyond two intervals, a collection may be as late as this */

struct service {
	struct top *top;
	sd_event *event;
	sd_event_source *readable;
	int fd; /* -1: it has gone */
	struct buf message; /* what has come of it, the header first */
	struct batch_copy *copy;
	uint64_t number; /* of the last collection */
	uint64_t heard_us; /* CLOCK_BOOTTIME: when it came */
	bool has_come;	 /* over this connection */
	int error;	 /* why it ends */
	char problems[512], silence[64];
};

static void discard_copy(struct service *service)
{
	top_restart(service->top);
	service->copy = batch_copy_free(service->copy);
}

static int read_batch(struct service *service, const struct stored *all, struct stored in)
{
	service->copy = service->copy ?: batch_copy_new();
	return service->copy ? batch_copy_read(service->copy, all, &in) : -ENOMEM;
}

static bool is_known(const struct batch *batch, const char *word)
{
	struct metric *metric;
	struct series *series;

	batch_for_each_metric(metric, batch)
		metric_for_each_series(series, metric)
			if (question_find(word, series))
				return true;
	return false;
}

/* An attribute that no series has may be a mistake, or come later. */
static void check_attributes(struct top *top, const struct batch *batch)
{
	const struct question *question = &top->page->question;
	size_t n_by = top->options.by ? top->options.by->n_items : 0;

	for (size_t i = 0; i < question->n_conditions + n_by; i++) {
		size_t j = i - question->n_conditions;
		const char *word = i < question->n_conditions ? question->conditions[i].attribute :
								top->options.by->items[j];

		if (strcmp(word, "none") && !is_known(batch, word) && !overview_needs(word))
			snprintf(top->note, sizeof(top->note), "no series has an attribute \"%s\"", word);
	}
}

/*
 * A whole message. Views follow from collection to collection: they begin again if one is missing,
 * or if its metrics are not those of the one before.
 */
static int take_message(struct service *service)
{
	struct top *top = service->top;
	const struct buf *message = &service->message;
	struct stored all = { message->data, message->data + message->size, false }, in = all;
	uint64_t interval_ns, number;
	int err;

	(void)stored_bytes(&in, sizeof(struct viewers_header));
	interval_ns = stored_number(&in);
	number = stored_number(&in);
	snprintf(service->problems, sizeof(service->problems), "%s", stored_text(&in));
	utf8_clean(service->problems);
	grid_clean(service->problems);
	if (in.is_bad)
		return -EINVAL;
	service->has_come = true;
	top->state = "";
	(void)sd_event_now(service->event, CLOCK_BOOTTIME, &service->heard_us);
	if (top->is_paused)
		return 0;
	if (number != service->number + 1)
		discard_copy(service);
	err = read_batch(service, &all, in);
	if (err == -ESTALE) {
		discard_copy(service);
		err = read_batch(service, &all, in);
	}
	if (err)
		return err;
	if (!top->n_taken)
		check_attributes(top, batch_copy_batch(service->copy));
	service->number = number;
	top->options.interval_ns = interval_ns;
	(void)top_view(top, batch_copy_batch(service->copy));
	return 0;
}

/* How large the message is, as far as that is known. 0: this is not a message of the service. */
static size_t message_bytes(const struct buf *message)
{
	struct viewers_header header;

	if (message->size < sizeof(header))
		return sizeof(header);
	memcpy(&header, message->data, sizeof(header));
	return header.magic == VIEWERS_MAGIC && header.size > sizeof(header) &&
	       header.size <= VIEWERS_BYTES_MAX ?
		       header.size : 0;
}

/* Up to the end of a message: keys and signals have their turn before the next. */
static int read_message(struct service *service)
{
	struct buf *message = &service->message;
	size_t size;
	int err;

	while ((size = message_bytes(message)) > message->size) {
		uint8_t *end = buf_reserve(message, size - message->size);
		ssize_t n = end ? recv(service->fd, end, size - message->size, MSG_DONTWAIT) : 0;

		if (!end)
			return -ENOMEM;
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		if (!n)
			return -ECONNRESET;
		message->size += (size_t)n;
	}
	err = size ? take_message(service) : -EPROTO;
	buf_reset(message);
	return err;
}

/* Nothing of it can be shown. */
static void give_up(struct service *service, int err)
{
	struct top *top = service->top;

	if (top->options.can_count)
		top->wish = TOP_ALONE;
	else
		service->error = err;
	top->state = err == -EBUSY ? "too many others watch the service: starting to count" :
				     "what the service sends cannot be read: starting to count";
	top_stop(top);
}

static void end_connection(struct service *service)
{
	if (!service->top->is_screen)
		service->error = -ECONNRESET;
	if (!service->top->is_screen)
		top_stop(service->top);
	service->readable = sd_event_source_unref(service->readable);
	closep(&service->fd);
	service->fd = -1;
	buf_reset(&service->message);
	service->number = UINT64_MAX; /* that of the next is not its successor */
	service->top->state = service->has_come ? "the service has ended: waiting" : "the service shows nothing: waiting";
	top_show(service->top);
}

static int on_readable(sd_event_source *source, int fd, uint32_t events, void *user)
{
	struct service *service = user;
	int err = read_message(service);

	if (err == -ENOMEM)
		return err;
	if (err == -EPROTO || err == -EINVAL)
		give_up(service, -EPROTO);
	else if (err && !service->copy && !service->has_come)
		/* it closes at once if it has no place */
		give_up(service, -EBUSY);
	else if (err)
		end_connection(service);
	return 0;
}

static int listen_to(struct service *service, int fd)
{
	service->fd = fd;
	service->has_come = false;
	(void)sd_event_now(service->event, CLOCK_BOOTTIME, &service->heard_us);
	service->top->state = "waiting for the service's first collection";
	return sd_event_add_io(service->event, &service->readable, fd, EPOLLIN,
			       on_readable, service);
}

/* It may hang. */
static void check_silence(struct service *service, uint64_t now_us)
{
	uint64_t late_us = 2 * service->top->options.interval_ns / NS_PER_US + LATE_US;

	if (!service->has_come || now_us < service->heard_us + late_us)
		return;
	snprintf(service->silence, sizeof(service->silence), "nothing from the service for %" PRIu64 " s",
		 (now_us - service->heard_us) / 1000000);
	service->top->state = service->silence;
	top_show(service->top);
}

static int on_time(sd_event_source *source, uint64_t usec, void *user)
{
	struct service *service = user;
	struct sockaddr_un address;
	int r = 0, fd;

	if (service->fd >= 0) {
		check_silence(service, usec);
	} else if ((fd = socket_connect(SOCKET_COLLECTIONS, &address)) >= 0) {
		r = listen_to(service, fd);
		top_show(service->top);
	}
	sd_event_source_set_time(source, usec + TURN_US);
	return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int watch_service(struct service *service, int fd)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
	int r = sd_event_new(&service->event);

	service->top->event = service->event;
	for (size_t i = 0; i < ARRAY_SIZE(signals) && r >= 0; i++)
		r = sd_event_add_signal(service->event, NULL, signals[i], NULL, NULL);
	if (r >= 0)
		r = sd_event_add_time_relative(service->event, NULL, CLOCK_BOOTTIME, TURN_US, 1000,
					       on_time, service);
	if (r >= 0)
		r = top_begin(service->top, service->event);
	if (r < 0) {
		closep(&fd);
		return r;
	}
	r = listen_to(service, fd);
	top_show(service->top);
	r = r < 0 ? r : sd_event_loop(service->event);
	return r < 0 ? r : service->error;
}

int top_watch(struct top *top, int fd)
{
	struct service service = { .top = top, .fd = -1 };
	uint64_t interval_ns = top->options.interval_ns;
	int r;

	top->problems = service.problems;
	r = watch_service(&service, fd);
	top->options.interval_ns = interval_ns;
	r = top_end(top, r);
	sd_event_source_unref(service.readable);
	closep(&service.fd);
	sd_event_unref(service.event);
	batch_copy_free(service.copy);
	buf_done(&service.message);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * closed ──link_open()──▶ looking up ──▶ connecting ──▶ open
 *    ▲                        ▲                │          │
 *    └──link_close()          └────waiting◀────┴──────────┘ link_fail()
 *
 * What is numeric or a path is never looked up, and datagram sockets never are connecting.
 */
#include "export/transport/link.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

#include "export/exporter.h"
#include "export/transport/backoff.h"
#include "export/transport/resolve.h"
#include "util/log.h"

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)

#define ACCURACY_US 500u

/* A name that was looked up so short a time ago is not for the next orderly opening. */
#define FRESH_NS UINT64_C(1000000000)

enum link_state { STATE_CLOSED,
		  STATE_LOOKING_UP,
		  STATE_CONNECTING,
		  STATE_OPEN,
		  STATE_WAITING };

struct link {
	sd_event *event;
	struct link_options options;
	const struct link_events *events;
	void *user;
	struct exporter *exporter;

	struct resolver *resolver; /* NULL: nothing to look up */
	struct addresses addresses;
	unsigned int current; /* of them, in use or to be tried */
	unsigned int n_tried; /* since the link was open or waiting */
	bool must_look_up;
	uint64_t looked_up_ns;

	enum link_state state;
	int fd;
	unsigned int n_opened;
	uint32_t watched;
	sd_event_source *io;
	sd_event_source *timer;	  /* of connecting and of waiting */
	sd_event_source *resolve; /* the next lookup while open */
	struct backoff backoff;
	int trouble; /* as last logged; 0: none */
};

static void begin(struct link *link);

uint64_t link_now(const struct link *link)
{
	uint64_t now_us = 0;

	(void)sd_event_now(link->event, CLOCK_MONOTONIC, &now_us);
	return now_us * NS_PER_US;
}

int link_arm(struct link *link, sd_event_source **source, uint64_t delay_ns, link_timer_fn *handler, void *user)
{
	uint64_t delay_us = delay_ns / NS_PER_US;
	int r;

	if (!*source)
		return sd_event_add_time_relative(link->event, source, CLOCK_MONOTONIC, delay_us, ACCURACY_US, handler,
						  user);
	r = sd_event_source_set_time_relative(*source, delay_us);
	return r < 0 ? r : sd_event_source_set_enabled(*source, SD_EVENT_ONESHOT);
}

/* Complaints */

void link_complain(struct link *link, int trouble, const char *problem)
{
	const char *name = link->exporter->name;
	const struct log_field fields[] = { { "BPFPUSH_EXPORTER", name }, { NULL, NULL } };
	char where[ADDRESS_TEXT_BYTES];

	link->exporter->stats.is_failing = true;
	if (link->trouble == trouble)
		return;
	link->trouble = trouble;
	if (link->addresses.n)
		address_print(&link->addresses.items[link->current], where);
	else
		snprintf(where, sizeof(where), "%.100s", link->options.endpoint.host);
	log_event(LOG_LEVEL_WARNING, LOG_ID_EXPORT_FAILING, fields, "exporter %s: %s: %s", name, where, problem);
}

void link_prove(struct link *link)
{
	struct exporter_stats *stats = &link->exporter->stats;
	const struct log_field fields[] = { { "BPFPUSH_EXPORTER", link->exporter->name }, { NULL, NULL } };

	backoff_reset(&link->backoff);
	if (!stats->is_failing)
		return;
	stats->is_failing = false;
	link->trouble = 0;
	log_event(LOG_LEVEL_INFO, LOG_ID_EXPORT_RECOVERED, fields, "exporter %s: delivers again", link->exporter->name);
}

/* The socket */

static void close_socket(struct link *link)
{
	link->io = sd_event_source_disable_unref(link->io);
	if (link->timer)
		(void)sd_event_source_set_enabled(link->timer, SD_EVENT_OFF);
	if (link->fd >= 0)
		close(link->fd);
	link->fd = -1;
	link->state = STATE_CLOSED;
}

void link_close(struct link *link)
{
	close_socket(link);
}

static int on_time(sd_event_source *source, uint64_t usec, void *user);

void link_fail(struct link *link, int trouble, const char *problem)
{
	uint32_t random = UINT32_MAX;

	link_complain(link, trouble, problem);
	/* What was open and broke may be better elsewhere. */
	if (link->state == STATE_OPEN && link->addresses.n)
		link->current = (link->current + 1) % link->addresses.n;
	close_socket(link);
	link->must_look_up = true;
	link->n_tried = 0;
	(void)!getrandom(&random, sizeof(random), GRND_NONBLOCK);
	/* Without memory for the timer, the next link_open() tries again. */
	if (link_arm(link, &link->timer, backoff_next(&link->backoff, random, 0), on_time, link) >= 0)
		link->state = STATE_WAITING;
}

static void set_stream_options(const struct link *link, int fd)
{
	const uint64_t timeout_ms = link->options.timeout_ns / NS_PER_MS;
	const unsigned int timeout = timeout_ms > INT32_MAX ? INT32_MAX : (unsigned int)timeout_ms;
	const int on = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof(timeout));
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *user);

/* 0: connected; 1: that is on its way; or -errno. */
static int open_socket(const struct link *link, const struct address *address, int *ret_fd)
{
	const int type = link->options.type | SOCK_CLOEXEC | SOCK_NONBLOCK;
	_cleanup_(closep) int fd = socket(address->socket.ss_family, type, 0);
	int r = 0;

	if (fd < 0)
		return -errno;
	if (link->options.type == SOCK_STREAM)
		set_stream_options(link, fd);
	if (connect(fd, (const struct sockaddr *)&address->socket, address->size) < 0) {
		if (errno != EINPROGRESS)
			return -errno;
		r = 1;
	}
	*ret_fd = TAKE_FD(fd);
	return r;
}

/* Takes the socket over; the one before is closed. is_pending: it is not connected yet. */
static int use_socket(struct link *link, int fd, bool is_pending)
{
	int r;

	close_socket(link);
	link->fd = fd;
	link->watched = is_pending ? EPOLLOUT : 0;
	r = sd_event_add_io(link->event, &link->io, fd, link->watched, on_io, link);
	if (r < 0) {
		close_socket(link);
		return r;
	}
	(void)sd_event_source_set_description(link->io, "link");
	link->state = is_pending ? STATE_CONNECTING : STATE_OPEN;
	link->n_opened += !is_pending;
	return 0;
}

/* Opens the next address that can be; complains and waits when none can. */
static void try_addresses(struct link *link)
{
	int err = ENOENT, fd = -1, r;

	for (; link->n_tried < link->addresses.n; link->n_tried++) {
		if (link->n_tried)
			link->current = (link->current + 1) % link->addresses.n;
		r = open_socket(link, &link->addresses.items[link->current], &fd);
		if (r >= 0) {
			bool is_pending = r > 0;

			r = use_socket(link, fd, is_pending);
			if (r >= 0 && is_pending)
				r = link_arm(link, &link->timer, link->options.timeout_ns, on_time, link);
			if (r >= 0) {
				link->n_tried++;
				return;
			}
		}
		err = -r;
	}
	link_fail(link, err, strerror(err));
}

static void connect_failed(struct link *link, int err)
{
	close_socket(link);
	if (link->n_tried >= link->addresses.n)
		link_fail(link, err, strerror(err));
	else
		try_addresses(link);
	if (link->state == STATE_OPEN)
		link->events->opened(link->user);
}

static int on_time(sd_event_source *source, uint64_t usec, void *user)
{
	struct link *link = user;

	if (link->state == STATE_CONNECTING) {
		connect_failed(link, ETIMEDOUT);
	} else if (link->state == STATE_WAITING) {
		link->state = STATE_CLOSED;
		begin(link);
		if (link->state == STATE_OPEN)
			link->events->opened(link->user);
	}
	return 0;
}

static void on_connected(struct link *link)
{
	int err = 0;
	socklen_t size = sizeof(err);

	(void)getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &err, &size);
	if (err) {
		connect_failed(link, err);
		return;
	}
	(void)sd_event_source_set_enabled(link->timer, SD_EVENT_OFF);
	link->state = STATE_OPEN;
	link->n_opened++;
	link_watch(link, 0);
	link->events->opened(link->user);
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *user)
{
	struct link *link = user;

	if (link->state == STATE_CONNECTING)
		on_connected(link);
	else
		link->events->ready(link->user, revents);
	return 0;
}

/* Names */

static int on_resolve_time(sd_event_source *source, uint64_t usec, void *user)
{
	struct link *link = user;

	/* Without a thread now, the next error asks again. */
	(void)resolver_start(link->resolver);
	return 0;
}

/* The name's addresses are others now: the socket stays if its own is among them. */
static void move(struct link *link, const struct addresses *addresses)
{
	const struct address old = link->addresses.items[link->current];
	bool is_open = link->state == STATE_OPEN;

	link->addresses = *addresses;
	link->current = 0;
	for (unsigned int i = 0; i < addresses->n; i++) {
		if (address_is_equal(&addresses->items[i], &old)) {
			link->current = i;
			return;
		}
	}
	if (!is_open)
		return;
	link->n_tried = 0;
	close_socket(link);
	try_addresses(link);
	if (link->state == STATE_OPEN)
		link->events->opened(link->user);
}

static void on_answer(void *user, const struct addresses *addresses, int error, const char *problem)
{
	struct link *link = user;

	link->looked_up_ns = link_now(link);
	if (link->options.resolve_every_ns)
		(void)link_arm(link, &link->resolve, link->options.resolve_every_ns, on_resolve_time, link);
	if (link->state != STATE_LOOKING_UP) {
		if (!error)
			move(link, addresses);
		return;
	}
	if (!error) {
		link->addresses = *addresses;
		link->current %= addresses->n;
		link->must_look_up = false;
	}
	/* The addresses of before are better than none. */
	link->state = STATE_CLOSED;
	link->n_tried = 0;
	if (link->addresses.n)
		try_addresses(link);
	else
		link_fail(link, error < 0 ? error : -error, problem);
	if (link->state == STATE_OPEN)
		link->events->opened(link->user);
}

void link_doubt(struct link *link)
{
	uint64_t now_ns = link_now(link);

	if (!link->resolver || now_ns - link->looked_up_ns < link->options.retry_max_ns)
		return;
	link->looked_up_ns = now_ns;
	(void)resolver_start(link->resolver);
}

/* Opening */

static void begin(struct link *link)
{
	int err;

	link->n_tried = 0;
	if (!link->resolver ||
	    (!link->must_look_up && link->addresses.n && link_now(link) - link->looked_up_ns < FRESH_NS)) {
		try_addresses(link);
		return;
	}
	err = resolver_start(link->resolver);
	if (err)
		link_fail(link, -err, strerror(-err));
	else
		link->state = STATE_LOOKING_UP;
}

bool link_open(struct link *link)
{
	if (link->state == STATE_CLOSED)
		begin(link);
	return link->state == STATE_OPEN;
}

void link_next(struct link *link)
{
	unsigned int old = link->current;
	int fd, r;

	for (unsigned int i = 1; i < link->addresses.n; i++) {
		link->current = (old + i) % link->addresses.n;
		r = open_socket(link, &link->addresses.items[link->current], &fd);
		if (r < 0)
			continue;
		if (use_socket(link, fd, r > 0) < 0)
			link_fail(link, ENOMEM, strerror(ENOMEM));
		return;
	}
	link->current = old;
}

int link_fd(const struct link *link)
{
	return link->state == STATE_OPEN ? link->fd : -1;
}

unsigned int link_opened(const struct link *link)
{
	return link->n_opened;
}

bool link_is_unix(const struct link *link)
{
	return link->options.endpoint.path[0];
}

void link_watch(struct link *link, uint32_t events)
{
	if (!link->io)
		return;
	(void)sd_event_source_set_enabled(link->io, SD_EVENT_ON);
	if (link->watched != events && sd_event_source_set_io_events(link->io, events) >= 0)
		link->watched = events;
}

void link_ignore(struct link *link)
{
	if (link->io)
		(void)sd_event_source_set_enabled(link->io, SD_EVENT_OFF);
}

int link_new(struct sd_event *event, const struct link_options *options, const struct link_events *events, void *user,
	     struct exporter *exporter, struct link **ret_link)
{
	_cleanup_(link_freep) struct link *link = calloc(1, sizeof(*link));
	int err;

	if (!link)
		return -ENOMEM;
	*link = (struct link){ .event = sd_event_ref(event),
			       .options = *options,
			       .events = events,
			       .user = user,
			       .exporter = exporter,
			       .fd = -1 };
	link->backoff = (struct backoff){ .initial_ns = options->retry_initial_ns, .max_ns = options->retry_max_ns };
	if (addresses_of(&options->endpoint, options->type, &link->addresses)) {
		err = resolver_new(event, &options->endpoint, options->type, on_answer, link, &link->resolver);
		if (err)
			return err;
	}
	*ret_link = TAKE_PTR(link);
	return 0;
}

struct link *link_free(struct link *link)
{
	if (!link)
		return NULL;
	close_socket(link);
	resolver_free(link->resolver);
	sd_event_source_disable_unref(link->timer);
	sd_event_source_disable_unref(link->resolve);
	sd_event_unref(link->event);
	free(link);
	return NULL;
}

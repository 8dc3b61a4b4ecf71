/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UDP tells of a datagram that nobody takes by an error at a later call, or by an error of the socket: until
 * then, or until the next datagram or flush went without one, the last datagram is in doubt. A unix socket tells
 * at once, so what it refuses has not left.
 */
#include "export/transport/datagram.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

#include "export/exporter.h"
#include "export/queue.h"
#include "export/transport/link.h"
#include "util/log.h"

#define NS_PER_US UINT64_C(1000)
#define TICK_NS	  UINT64_C(5000000)

struct datagram_client {
	sd_event *event;
	uint64_t burst;
	struct exporter *exporter;
	struct link *link;
	struct queue queue;

	size_t doubtful_points; /* of the last datagram; 0 also where there is none */
	bool was_refused;	/* since the last flush */
	bool has_sent;		/* likewise */
	bool is_too_large;	/* said so already */
	unsigned int n_losses;

	uint64_t window_ns, deadline_ns; /* of what waits */
	uint64_t step;			 /* datagrams a tick, as planned */
	bool is_full;			 /* EPOLLOUT is awaited */
	sd_event_source *tick;
};

/* Nothing more was heard of the last datagram. */
static void settle_doubt(struct datagram_client *client)
{
	exporter_account(client->exporter, POINTS_DELIVERED, client->doubtful_points);
	client->doubtful_points = 0;
}

static void on_refused(struct datagram_client *client)
{
	exporter_account(client->exporter, POINTS_CONNECTION_REFUSED, client->doubtful_points);
	client->doubtful_points = 0;
	client->was_refused = true;
	client->n_losses++;
	link_complain(client->link, LINK_REFUSED, "nobody takes datagrams there");
	link_doubt(client->link);
	link_next(client->link);
}

static void on_too_large(struct datagram_client *client, const struct queue_item *item)
{
	exporter_account(client->exporter, POINTS_TOO_LARGE, item->n_points);
	client->n_losses++;
	if (client->is_too_large)
		return;
	client->is_too_large = true;
	log_event(LOG_LEVEL_WARNING, LOG_ID_DATA_DROPPED, NULL,
		  "exporter %s: a datagram of %zu bytes is too large to be sent; lower max_datagram_size",
		  client->exporter->name, item->size);
}

static void on_sent(struct datagram_client *client, const struct queue_item *item)
{
	struct exporter_stats *stats = &client->exporter->stats;

	stats->requests++;
	stats->retries += item->n_sent != 0;
	stats->bytes_sent += item->size;
	client->has_sent = true;
	settle_doubt(client);
	if (link_is_unix(client->link)) {
		exporter_account(client->exporter, POINTS_DELIVERED, item->n_points);
		link_prove(client->link);
	} else {
		client->doubtful_points = item->n_points;
	}
}

enum send_outcome { SEND_DONE,	 /* sent or given up: the next one */
		    SEND_AGAIN,	 /* this one, at once */
		    SEND_LATER,	 /* when there is room */
		    SEND_PAUSE,	 /* at the next tick */
		    SEND_BROKEN, /* the link is closed */
};

static enum send_outcome classify(struct datagram_client *client, struct queue_item *item, int err)
{
	switch (err) {
	case EAGAIN:
	case EINTR:
		return SEND_LATER;
	case ENOBUFS:
	case ENOMEM:
		return SEND_PAUSE;
	case EMSGSIZE:
		on_too_large(client, item);
		return SEND_DONE;
	}
	/* Of the datagram before, as far as one can know: what hinders this one is said again. */
	if (!link_is_unix(client->link) && (err == ECONNREFUSED || client->doubtful_points)) {
		on_refused(client);
		if (link_fd(client->link) < 0)
			return SEND_BROKEN;
		return item->n_sent++ % 2 ? SEND_PAUSE : SEND_AGAIN;
	}
	item->n_sent++;
	link_fail(client->link, err, strerror(err));
	return SEND_BROKEN;
}

static enum send_outcome send_one(struct datagram_client *client, struct queue_item *item)
{
	ssize_t n = send(link_fd(client->link), item->data, item->size, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0)
		return classify(client, item, errno);
	on_sent(client, item);
	return SEND_DONE;
}

/* Sends up to n datagrams; SEND_DONE: that went well, though some may be left. */
static enum send_outcome send_some(struct datagram_client *client, uint64_t n)
{
	enum send_outcome outcome = SEND_DONE;

	while (n && outcome <= SEND_AGAIN) {
		struct queue_item *item = queue_begin(&client->queue);

		if (!item)
			break;
		outcome = send_one(client, item);
		queue_end(&client->queue, outcome == SEND_DONE);
		n -= outcome == SEND_DONE;
	}
	return outcome;
}

static int on_tick(sd_event_source *source, uint64_t usec, void *user);

/* Plans to be through with what waits in window_ns. */
static void plan(struct datagram_client *client)
{
	uint64_t n_ticks = client->window_ns / TICK_NS;

	client->deadline_ns = link_now(client->link) + client->window_ns;
	client->step = UINT64_MAX / 2;
	if (!client->burst || !n_ticks)
		return;
	client->step = (client->queue.n_items + n_ticks - 1) / n_ticks;
	if (client->step < client->burst)
		client->step = client->burst;
}

/*
 * How many may leave now for all to be through at the deadline. Ticks that come late are made up for, but not so that
 * a loop that was held up overruns the receiver.
 */
static uint64_t allowance(const struct datagram_client *client)
{
	uint64_t now_ns = link_now(client->link), n_ticks = 0, n = client->queue.n_items;

	if (!client->burst)
		return UINT64_MAX;
	if (now_ns < client->deadline_ns)
		n_ticks = (client->deadline_ns - now_ns) / TICK_NS;
	if (n_ticks)
		n = (n + n_ticks - 1) / n_ticks;
	if (n < client->burst)
		n = client->burst;
	return n < 2 * client->step ? n : 2 * client->step;
}

static void pump(struct datagram_client *client, uint64_t n)
{
	enum send_outcome outcome = SEND_BROKEN;

	if (client->tick)
		(void)sd_event_source_set_enabled(client->tick, SD_EVENT_OFF);
	if (client->queue.n_items && link_open(client->link))
		outcome = send_some(client, n);
	client->is_full = outcome == SEND_LATER;
	link_watch(client->link, client->is_full ? EPOLLOUT : 0);
	/* Without memory for a timer, the next flush goes on. */
	if (client->queue.n_items && (outcome == SEND_PAUSE || outcome == SEND_DONE))
		(void)link_arm(client->link, &client->tick, TICK_NS, on_tick, client);
}

static int on_tick(sd_event_source *source, uint64_t usec, void *user)
{
	struct datagram_client *client = user;

	pump(client, allowance(client));
	return 0;
}

/* An error of the socket that no call of ours has met yet. */
static void on_error(struct datagram_client *client)
{
	int err = 0;
	socklen_t size = sizeof(err);

	(void)getsockopt(link_fd(client->link), SOL_SOCKET, SO_ERROR, &err, &size);
	if (link_is_unix(client->link))
		link_fail(client->link, err ? err : ECONNRESET, strerror(err ? err : ECONNRESET));
	else if (err) /* if not, a call of ours has met it since */
		on_refused(client);
}

static void on_ready(void *user, uint32_t events)
{
	struct datagram_client *client = user;

	if (events & (EPOLLERR | EPOLLHUP)) {
		on_error(client);
		/* What waited for room in the old socket does not in the new one. */
		if (client->is_full && link_fd(client->link) >= 0)
			link_watch(client->link, EPOLLOUT);
	} else if (events & EPOLLOUT) {
		pump(client, allowance(client));
	}
}

static void on_opened(void *user)
{
	struct datagram_client *client = user;

	plan(client);
	pump(client, allowance(client));
}

static const struct link_events link_events = { .opened = on_opened, .ready = on_ready };

int datagram_client_new(struct sd_event *event, const struct datagram_options *options, struct exporter *exporter,
			struct datagram_client **ret_client)
{
	const struct link_options link = { .endpoint = options->endpoint,
					   .type = SOCK_DGRAM,
					   .resolve_every_ns = options->resolve_every_ns,
					   .retry_initial_ns = options->retry_initial_ns,
					   .retry_max_ns = options->retry_max_ns };
	_cleanup_(datagram_client_freep) struct datagram_client *client = calloc(1, sizeof(*client));
	int err;

	if (!client)
		return -ENOMEM;
	client->event = sd_event_ref(event);
	client->burst = options->burst;
	client->exporter = exporter;
	queue_init(&client->queue, SIZE_MAX, options->queue_bytes);
	err = link_new(event, &link, &link_events, client, exporter, &client->link);
	if (err)
		return err;
	/* So that the first datagrams need not wait for the name. */
	(void)link_open(client->link);
	*ret_client = TAKE_PTR(client);
	return 0;
}

int datagram_client_put(struct datagram_client *client, uint8_t *data, size_t size, size_t n_points)
{
	int r = exporter_enqueue(client->exporter, &client->queue, data, size, n_points);

	client->n_losses += r != 0;
	return r < 0 ? r : 0;
}

/* What the kernel knows by now of the last datagram. */
static void look_for_refusal(struct datagram_client *client)
{
	int fd = link_fd(client->link), err = 0;
	socklen_t size = sizeof(err);

	if (fd < 0 || link_is_unix(client->link))
		return;
	(void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size);
	if (err)
		on_refused(client);
}

void datagram_client_flush(struct datagram_client *client, uint64_t window_ns)
{
	look_for_refusal(client);
	settle_doubt(client);
	if (client->has_sent && !client->was_refused && link_fd(client->link) >= 0)
		link_prove(client->link);
	client->has_sent = client->was_refused = false;

	client->window_ns = window_ns;
	plan(client);
	if (!client->is_full || link_fd(client->link) < 0)
		pump(client, client->burst && window_ns >= TICK_NS ? client->burst : UINT64_MAX);
}

unsigned int datagram_client_losses(const struct datagram_client *client)
{
	unsigned int n_opened = link_opened(client->link);

	return client->n_losses + (n_opened ? n_opened - 1 : 0);
}

struct exporter_waiting datagram_client_waiting(const struct datagram_client *client)
{
	const struct queue *queue = &client->queue;

	return (struct exporter_waiting){ queue->n_points + client->doubtful_points, queue->size_bytes,
					  queue->n_items != 0 };
}

struct datagram_client *datagram_client_free(struct datagram_client *client)
{
	if (!client)
		return NULL;
	sd_event_source_disable_unref(client->tick);
	link_free(client->link);
	queue_done(&client->queue);
	sd_event_unref(client->event);
	free(client);
	return NULL;
}

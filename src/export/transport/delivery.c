/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue is cut in two: what was sent on this connection and is unconfirmed, and what waits, the first of
 * which may be sent in part. A connection ends in one of three ways: in an orderly way with all acknowledged, which
 * confirms what was sent; with nothing on it, which says nothing; or else, and then all is sent again.
 *
 * sending ──nothing waits, or enough is on this connection──▶ confirming: our side is shut down
 *    └────────────end from the receiver───────────┐              │ end from the receiver
 *                                                 ▼              ▼
 *                                              ended: a moment, and until all is acknowledged, or an error says
 *                                                       that it never will be or was not read
 */
#include "export/transport/delivery.h"

#include <errno.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

#include "export/exporter.h"
#include "export/queue.h"
#include "export/transport/link.h"

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)

#define CONFIRM_BYTES	 ((size_t)256 << 10) /* on a connection: it is renewed when nothing waits */
#define CONFIRM_PART	 4		     /* of the queue's room, where that is less: what comes next needs some */
#define CONNECTION_BYTES ((size_t)1 << 20)   /* it is renewed though something waits: so little is sent twice */
#define SENDS		 64		     /* in one turn of the loop */
#define READS		 16

#define END_POLL_NS   (5 * NS_PER_MS)
#define CHECK_MAX_NS  (250 * NS_PER_MS) /* between looks at the progress */
#define CHECK_FAST_NS (20 * NS_PER_MS)	/* where the acknowledgement is what confirms */

enum delivery_state { STATE_SENDING,
		      STATE_CONFIRMING,
		      STATE_ENDED };

struct delivery_client {
	sd_event *event;
	struct exporter *exporter;
	uint64_t confirm_every_ns, timeout_ns;
	struct link *link;
	struct queue queue;
	bool is_finishing;

	/* The connection. */
	enum delivery_state state;
	bool is_useful;	   /* something was confirmed on it */
	size_t offset;	   /* sent of queue.waiting */
	size_t sent_bytes; /* on it */
	size_t acked_bytes;
	uint64_t opened_ns;
	uint64_t progress_ns; /* the last time that sent_bytes or acked_bytes grew */

	sd_event_source *check;	  /* progress */
	sd_event_source *confirm; /* confirm_every_ns */
};

static void pump(struct delivery_client *client);

static bool has_unconfirmed(const struct delivery_client *client)
{
	return client->queue.head != client->queue.waiting;
}

/* Bytes that the receiver's kernel has not acknowledged, our end of the stream being one. */
static size_t unacknowledged(const struct delivery_client *client)
{
	int n = 0;

	return ioctl(link_fd(client->link), SIOCOUTQ, &n) < 0 || n < 0 ? SIZE_MAX : (size_t)n;
}

/* What was sent is confirmed. */
static void confirm(struct delivery_client *client)
{
	if (!has_unconfirmed(client))
		return;
	exporter_account(client->exporter, POINTS_DELIVERED, queue_confirm(&client->queue));
	client->is_useful = true;
	link_prove(client->link);
}

/* Timers */

static int on_check(sd_event_source *source, uint64_t usec, void *user);

static void disarm(sd_event_source *source)
{
	if (source)
		(void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
}

static uint64_t check_delay(const struct delivery_client *client)
{
	uint64_t delay_ns = client->timeout_ns / 4;

	if (client->state == STATE_ENDED)
		return END_POLL_NS;
	if (!client->confirm_every_ns && delay_ns > CHECK_FAST_NS)
		return CHECK_FAST_NS;
	return delay_ns > CHECK_MAX_NS ? CHECK_MAX_NS : delay_ns;
}

/* The end of a connection */

/*
 * A line that was sent in part must not look like a whole one: what has left of it ends by a reset, which is no end
 * of a stream that a reader takes for one.
 */
static void cut(struct delivery_client *client)
{
	const struct linger at_once = { .l_onoff = 1 };

	if (client->queue.is_begun && link_fd(client->link) >= 0)
		(void)setsockopt(link_fd(client->link), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	client->queue.is_begun = false;
}

static void forget_connection(struct delivery_client *client)
{
	disarm(client->check);
	disarm(client->confirm);
	client->state = STATE_SENDING;
	client->is_useful = false;
	client->offset = client->sent_bytes = client->acked_bytes = 0;
}

/* What was sent may not have arrived: all of it again. */
static void lose(struct delivery_client *client, int trouble, const char *problem)
{
	cut(client);
	forget_connection(client);
	queue_rewind(&client->queue);
	if (client->queue.n_items)
		link_fail(client->link, trouble, problem);
	else
		link_close(client->link);
}

static void lose_by_errno(struct delivery_client *client, int err)
{
	lose(client, err, strerror(err));
}

/* The receiver has read what was sent, and closed. The waiting one, if a part of it is among that, goes again. */
static void end(struct delivery_client *client)
{
	bool is_useful;

	confirm(client);
	is_useful = client->is_useful;
	cut(client);
	forget_connection(client);
	if (!is_useful && client->queue.n_items) {
		link_fail(client->link, LINK_CLOSED, "the receiver closes the connection before it has read a thing");
		return;
	}
	link_close(client->link);
	pump(client);
}

/* The receiver has ended its side: 0: all is acknowledged; -EAGAIN: not yet; or the connection's error. */
static int ended(const struct delivery_client *client)
{
	int err = 0;
	socklen_t size = sizeof(err);

	(void)getsockopt(link_fd(client->link), SOL_SOCKET, SO_ERROR, &err, &size);
	if (err)
		return -err;
	return unacknowledged(client) ? -EAGAIN : 0;
}

static void on_ended(struct delivery_client *client)
{
	int err = ended(client);

	if (err && err != -EAGAIN) {
		lose_by_errno(client, -err);
	} else if (client->state != STATE_ENDED) {
		/*
		 * The end stays readable: look from time to time instead. Not at once, since who shuts down before he
		 * closes, as Twisted does, says by a reset behind the end that something was not read.
		 */
		client->state = STATE_ENDED;
		link_ignore(client->link);
		(void)link_arm(client->link, &client->check, END_POLL_NS, on_check, client);
	} else if (!err) {
		end(client);
	}
}

/* Progress */

static void note_progress(struct delivery_client *client)
{
	size_t n = unacknowledged(client);
	size_t acked_bytes = n > client->sent_bytes ? 0 : client->sent_bytes - n;

	if (acked_bytes <= client->acked_bytes)
		return;
	client->acked_bytes = acked_bytes;
	client->progress_ns = link_now(client->link);
}

static void on_stalled(struct delivery_client *client)
{
	if (client->state == STATE_SENDING || client->acked_bytes < client->sent_bytes)
		lose(client, LINK_STALLED, "the receiver does not take what is sent");
	else
		lose(client, LINK_NOT_CLOSED,
		     "the receiver took everything but did not close the connection, so that nobody knows whether it "
		     "has read it: does it read at all? If it keeps connections open on purpose, set confirm_every = 0");
}

/* Is there something whose fate is looked for? */
static bool is_checked(const struct delivery_client *client)
{
	if (client->state != STATE_SENDING || client->queue.waiting)
		return true;
	return client->acked_bytes < client->sent_bytes || (!client->confirm_every_ns && has_unconfirmed(client));
}

static void check(struct delivery_client *client)
{
	note_progress(client);
	if (!client->confirm_every_ns && client->acked_bytes >= client->sent_bytes && !client->offset)
		confirm(client);
	if (!is_checked(client))
		return;
	if (link_now(client->link) - client->progress_ns >= client->timeout_ns)
		on_stalled(client);
	else
		(void)link_arm(client->link, &client->check, check_delay(client), on_check, client);
}

static int on_check(sd_event_source *source, uint64_t usec, void *user)
{
	struct delivery_client *client = user;

	if (link_fd(client->link) < 0)
		return 0;
	if (client->state == STATE_ENDED)
		on_ended(client);
	if (link_fd(client->link) >= 0)
		check(client);
	return 0;
}

/* Confirming */

static int on_confirm_time(sd_event_source *source, uint64_t usec, void *user)
{
	pump(user);
	return 0;
}

static void begin_to_confirm(struct delivery_client *client)
{
	client->state = STATE_CONFIRMING;
	client->progress_ns = link_now(client->link);
	link_watch(client->link, EPOLLIN);
	if (shutdown(link_fd(client->link), SHUT_WR) < 0)
		lose_by_errno(client, errno);
	else
		check(client);
}

/* Nothing waits: is it time to know? If not, a timer is set. */
static bool is_time_to_confirm(struct delivery_client *client)
{
	uint64_t age_ns = link_now(client->link) - client->opened_ns;

	if (!client->confirm_every_ns || !has_unconfirmed(client))
		return false;
	/* After a failure somebody waits for the news. */
	if (client->is_finishing || client->exporter->stats.is_failing || age_ns >= client->confirm_every_ns ||
	    client->sent_bytes >= CONFIRM_BYTES || client->sent_bytes >= client->queue.limit_bytes / CONFIRM_PART)
		return true;
	(void)link_arm(client->link, &client->confirm, client->confirm_every_ns - age_ns, on_confirm_time, client);
	return false;
}

/* Sending */

static int send_part(struct delivery_client *client)
{
	struct exporter_stats *stats = &client->exporter->stats;
	struct queue_item *item = client->queue.waiting;
	ssize_t n = send(link_fd(client->link), item->data + client->offset, item->size - client->offset,
			 MSG_DONTWAIT | MSG_NOSIGNAL | (item->next ? MSG_MORE : 0));

	if (n < 0)
		return -errno;
	client->queue.is_begun = true;
	client->offset += (size_t)n;
	client->sent_bytes += (size_t)n;
	client->progress_ns = link_now(client->link);
	stats->bytes_sent += (size_t)n;
	if (client->offset < item->size)
		return 0;
	client->offset = 0;
	stats->requests++;
	stats->retries += item->n_sent++ != 0;
	queue_step(&client->queue);
	return 0;
}

/* 0: nothing waits; 1: the connection has had enough; -EAGAIN: it takes no more now; or another error. */
static int send_waiting(struct delivery_client *client)
{
	for (int i = 0; i < SENDS; i++) {
		int err;

		if (!client->queue.waiting)
			return 0;
		if (client->confirm_every_ns && !client->offset && client->sent_bytes >= CONNECTION_BYTES)
			return 1;
		err = send_part(client);
		if (err)
			return err;
	}
	return -EAGAIN;
}

static void pump(struct delivery_client *client)
{
	int r;

	if (!client->queue.waiting && !has_unconfirmed(client))
		return;
	if (!link_open(client->link) || client->state != STATE_SENDING)
		return;
	r = send_waiting(client);
	if (r < 0 && r != -EAGAIN) {
		lose_by_errno(client, -r);
	} else if (r == 1 || (!r && is_time_to_confirm(client))) {
		begin_to_confirm(client);
	} else {
		link_watch(client->link, r ? EPOLLIN | EPOLLOUT : EPOLLIN);
		check(client);
	}
}

/* What a receiver says is of no meaning, but its end is. */
static void read_and_forget(struct delivery_client *client)
{
	char room[4096];

	for (int i = 0; i < READS; i++) {
		ssize_t n = recv(link_fd(client->link), room, sizeof(room), MSG_DONTWAIT);

		if (n > 0)
			continue;
		if (!n)
			on_ended(client);
		else if (errno != EAGAIN && errno != EINTR)
			lose_by_errno(client, errno);
		return;
	}
}

static void on_ready(void *user, uint32_t events)
{
	struct delivery_client *client = user;

	if (events & (EPOLLIN | EPOLLERR | EPOLLHUP))
		read_and_forget(client);
	if (link_fd(client->link) >= 0 && client->state == STATE_SENDING && events & EPOLLOUT)
		pump(client);
}

static void on_opened(void *user)
{
	struct delivery_client *client = user;

	forget_connection(client);
	client->opened_ns = client->progress_ns = link_now(client->link);
	link_watch(client->link, EPOLLIN);
	pump(client);
}

static const struct link_events link_events = { .opened = on_opened, .ready = on_ready };

int delivery_client_new(struct sd_event *event, const struct delivery_options *options, struct exporter *exporter,
			struct delivery_client **ret_client)
{
	const struct link_options link = { .endpoint = options->endpoint,
					   .type = SOCK_STREAM,
					   .timeout_ns = options->timeout_ns,
					   .retry_initial_ns = options->retry_initial_ns,
					   .retry_max_ns = options->retry_max_ns };
	_cleanup_(delivery_client_freep) struct delivery_client *client = calloc(1, sizeof(*client));
	int err;

	if (!client)
		return -ENOMEM;
	client->event = sd_event_ref(event);
	client->exporter = exporter;
	client->confirm_every_ns = options->confirm_every_ns;
	client->timeout_ns = options->timeout_ns;
	queue_init(&client->queue, SIZE_MAX, options->queue_bytes);
	err = link_new(event, &link, &link_events, client, exporter, &client->link);
	if (err)
		return err;
	*ret_client = TAKE_PTR(client);
	return 0;
}

int delivery_client_put(struct delivery_client *client, uint8_t *data, size_t size, size_t n_points)
{
	int r = exporter_enqueue(client->exporter, &client->queue, data, size, n_points);

	return r < 0 ? r : 0;
}

void delivery_client_flush(struct delivery_client *client)
{
	pump(client);
}

void delivery_client_finish(struct delivery_client *client)
{
	client->is_finishing = true;
	pump(client);
}

struct exporter_waiting delivery_client_waiting(const struct delivery_client *client)
{
	const struct queue *queue = &client->queue;

	return (struct exporter_waiting){ queue->n_points, queue->size_bytes, queue->n_items != 0 };
}

struct delivery_client *delivery_client_free(struct delivery_client *client)
{
	if (!client)
		return NULL;
	if (client->link)
		cut(client);
	sd_event_source_disable_unref(client->check);
	sd_event_source_disable_unref(client->confirm);
	link_free(client->link);
	queue_done(&client->queue);
	sd_event_unref(client->event);
	free(client);
	return NULL;
}

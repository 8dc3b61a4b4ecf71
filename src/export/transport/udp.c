/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UDP reports a datagram that nobody takes by an error of a later call, or by an error of the socket. So the last
 * datagram is in doubt until the next datagram or flush met no error. A unix socket reports at once, so a
 * datagram that it refuses has not left.
 */
#include "export/transport/udp.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "export/transport/timer.h"
#include "util/duration.h"

#define TICK_NS	   (5 * NS_PER_MS)
#define PROBE_NS   (500 * NS_PER_MS)
#define PROBES_MAX 4

struct udp_sender {
	uint64_t burst;
	struct exporter *exporter;
	struct socket *sock;
	struct queue *queue; /* the exporter's */

	bool was_refused;	 /* since the last flush */
	bool has_sent;		 /* likewise */
	bool has_told_too_large;

	uint64_t window_ns, deadline_ns; /* for what waits */
	uint64_t step;			 /* datagrams a tick, as planned */
	bool is_full;			 /* EPOLLOUT is awaited */
	struct timer tick;
	unsigned int n_probes;
};

static void count_doubtful(struct udp_sender *sender, enum points fate)
{
	exporter_account(sender->exporter, fate, sender->exporter->n_doubtful);
	sender->exporter->n_doubtful = 0;
}

static void on_refused(struct udp_sender *sender)
{
	count_doubtful(sender, POINTS_CONNECTION_REFUSED);
	sender->was_refused = true;
	socket_report(sender->sock, "nothing receives datagrams there");
	socket_look_up_again(sender->sock);
	sender->exporter->n_losses += 1 + socket_try_next_address(sender->sock);
}

static void on_too_large(struct udp_sender *sender, const struct queue_item *item)
{
	exporter_account(sender->exporter, POINTS_TOO_LARGE, item->n_points);
	sender->exporter->n_losses++;
	if (!sender->has_told_too_large)
		exporter_log(sender->exporter, LOG_LEVEL_WARNING, LOG_ID_DATA_DROPPED,
			     "a datagram of %zu bytes is too large to be sent; lower max_datagram_size", item->size);
	sender->has_told_too_large = true;
}

static void on_sent(struct udp_sender *sender, const struct queue_item *item)
{
	struct exporter_stats *stats = &sender->exporter->stats;

	stats->requests++;
	stats->retries += item->n_sent != 0;
	stats->bytes_sent += item->size;
	sender->has_sent = true;
	count_doubtful(sender, POINTS_DELIVERED);
	sender->exporter->n_doubtful = item->n_points;
	if (socket_is_unix(sender->sock)) {
		count_doubtful(sender, POINTS_DELIVERED);
		socket_report_working(sender->sock);
	}
}

enum send_outcome { SEND_DONE,	 /* sent or given up: the next one */
		    SEND_AGAIN,	 /* this one, at once */
		    SEND_LATER,	 /* when there is room */
		    SEND_PAUSE,	 /* at the next tick */
		    SEND_BROKEN, /* the socket is closed */
};

static enum send_outcome on_send_error(struct udp_sender *sender, struct queue_item *item, int err)
{
	switch (err) {
	case EAGAIN:
	case EINTR:
		return SEND_LATER;
	case ENOBUFS:
	case ENOMEM:
		return SEND_PAUSE;
	case EMSGSIZE:
		on_too_large(sender, item);
		return SEND_DONE;
	}
	/* It is about the datagram before, as far as one can know: an error of this one will come again. */
	if (!socket_is_unix(sender->sock) && (err == ECONNREFUSED || sender->exporter->n_doubtful)) {
		on_refused(sender);
		return item->n_sent++ % 2 ? SEND_PAUSE : SEND_AGAIN;
	}
	item->n_sent++;
	socket_fail(sender->sock, strerror(err));
	return SEND_BROKEN;
}

/* Sends up to n datagrams. SEND_DONE: that went well, though some may be left. */
static enum send_outcome send_some(struct udp_sender *sender, uint64_t n)
{
	enum send_outcome outcome = SEND_DONE;
	struct queue_item *item;

	while (n && outcome <= SEND_AGAIN && (item = queue_begin(sender->queue))) {
		outcome = SEND_DONE;
		if (send(socket_fd(sender->sock), item->data, item->size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			outcome = on_send_error(sender, item, errno);
		else
			on_sent(sender, item);
		queue_end(sender->queue, outcome == SEND_DONE);
		n -= outcome == SEND_DONE;
	}
	return outcome;
}

/* Datagrams a tick for all that wait to be sent in window_ns. */
static uint64_t step_for(const struct udp_sender *sender, uint64_t window_ns)
{
	uint64_t n_ticks = window_ns / TICK_NS, n = sender->queue->n_items;

	if (n_ticks)
		n = (n + n_ticks - 1) / n_ticks;
	return n < sender->burst ? sender->burst : n;
}

static void plan(struct udp_sender *sender)
{
	sender->deadline_ns = timer_now_ns(sender->tick.event) + sender->window_ns;
	sender->step = sender->window_ns < TICK_NS ? UINT64_MAX / 2 : step_for(sender, sender->window_ns);
}

/*
 * How many may leave now. Ticks that come late are made up for, but not so that a loop that was held up overruns
 * the receiver.
 */
static uint64_t allowance(const struct udp_sender *sender)
{
	uint64_t now_ns = timer_now_ns(sender->tick.event), n;

	if (!sender->burst)
		return UINT64_MAX;
	n = step_for(sender, now_ns < sender->deadline_ns ? sender->deadline_ns - now_ns : 0);
	return n < 2 * sender->step ? n : 2 * sender->step;
}

static void send_up_to(struct udp_sender *sender, uint64_t n)
{
	enum send_outcome outcome = SEND_BROKEN;

	timer_disarm(&sender->tick);
	if (sender->queue->n_items && socket_open(sender->sock))
		outcome = send_some(sender, n);
	sender->is_full = outcome == SEND_LATER;
	socket_watch(sender->sock, sender->is_full ? EPOLLOUT : 0);
	/* Without memory for a timer, the next flush goes on. */
	if (sender->queue->n_items && (outcome == SEND_PAUSE || outcome == SEND_DONE))
		(void)timer_arm(&sender->tick, TICK_NS);
}

static void on_tick(void *user)
{
	struct udp_sender *sender = user;

	send_up_to(sender, allowance(sender));
}

/* An error of the socket that no call has met yet. */
static void on_error(struct udp_sender *sender)
{
	int err = socket_error(sender->sock);

	if (socket_is_unix(sender->sock))
		socket_fail(sender->sock, strerror(err ?: ECONNRESET));
	else if (err) /* if not, a call has met it since */
		on_refused(sender);
	/* What waited for room in the old socket does not in the new one. */
	if (sender->is_full && socket_fd(sender->sock) >= 0)
		socket_watch(sender->sock, EPOLLOUT);
}

static void on_ready(void *user, uint32_t events)
{
	struct udp_sender *sender = user;

	if (events & (EPOLLERR | EPOLLHUP))
		on_error(sender);
	else if (events & EPOLLOUT)
		send_up_to(sender, allowance(sender));
}

static void on_opened(void *user)
{
	struct udp_sender *sender = user;

	sender->exporter->n_losses += sender->exporter->stats.requests != 0;
	plan(sender);
	send_up_to(sender, allowance(sender));
}

static const struct socket_events socket_events = { .opened = on_opened, .ready = on_ready };

int udp_sender_new(struct exporter *exporter, const struct sender_options *options, struct udp_sender **ret_sender)
{
	_cleanup_(udp_sender_freep) struct udp_sender *sender = calloc(1, sizeof(*sender));
	int err;

	if (!sender)
		return -ENOMEM;
	sender->burst = options->burst;
	sender->exporter = exporter;
	timer_init(&sender->tick, exporter->context->event, on_tick, sender);
	sender->queue = &exporter->queue;
	queue_init(sender->queue, SIZE_MAX, options->queue_bytes);
	err = socket_new(exporter, SOCK_DGRAM, options, &socket_events, sender, &sender->sock);
	if (err)
		return err;
	/* So that the first datagrams need not wait for the name. */
	(void)socket_open(sender->sock);
	*ret_sender = TAKE_PTR(sender);
	return 0;
}

void udp_sender_flush(struct udp_sender *sender, uint64_t window_ns)
{
	bool is_open = socket_fd(sender->sock) >= 0;

	/* What the kernel knows by now about the last datagram. */
	if (is_open && !socket_is_unix(sender->sock) && socket_error(sender->sock))
		on_refused(sender);
	count_doubtful(sender, POINTS_DELIVERED);
	if (sender->is_full && !sender->has_sent && is_open)
		socket_report(sender->sock, "nobody reads what was sent: the socket has no room");
	if (sender->has_sent && !sender->was_refused && is_open)
		socket_report_working(sender->sock);
	sender->has_sent = sender->was_refused = false;

	sender->window_ns = window_ns;
	plan(sender);
	if (!sender->is_full || !is_open)
		send_up_to(sender, sender->burst && window_ns >= TICK_NS ? sender->burst : UINT64_MAX);
}

int udp_sender_probe(struct udp_sender *sender)
{
	struct exporter_stats *stats = &sender->exporter->stats;
	uint64_t now_ns = timer_now_ns(sender->tick.event);
	bool is_unix = socket_is_unix(sender->sock);

	if (!socket_open(sender->sock))
		return stats->is_failing ? -ENOTCONN : 0;
	/* After a refusal the next address has its turn. */
	if (!is_unix && (!sender->n_probes || (sender->was_refused && sender->n_probes < PROBES_MAX))) {
		sender->was_refused = false;
		sender->n_probes++;
		sender->deadline_ns = now_ns + PROBE_NS;
		(void)!send(socket_fd(sender->sock), "", 0, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	if (sender->was_refused || now_ns < sender->deadline_ns)
		return sender->was_refused ? -ECONNREFUSED : 0;
	snprintf(stats->problem, sizeof(stats->problem), "%s",
		 is_unix ? "connected" : "nobody refused an empty datagram, UDP does not tell more");
	return 1;
}

struct udp_sender *udp_sender_free(struct udp_sender *sender)
{
	if (!sender)
		return NULL;
	timer_done(&sender->tick);
	socket_free(sender->sock);
	free(sender);
	return NULL;
}

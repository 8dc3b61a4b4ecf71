/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datagrams to one receiver, over UDP or a unix datagram socket. There is one long-lived connected
 * socket, so a receiver that tells senders apart by their port sees one sender. Nothing here
 * blocks: names are looked up outside the loop, and datagrams that cannot leave at once wait in a
 * bounded queue.
 *
 * They are paced: burst datagrams leave at once, the others in steps over a part of the interval,
 * so that a receiver with the kernel's default buffer keeps up. If the socket is full, the loop
 * waits for room.
 *
 * A point counts as delivered when the kernel took the datagram and did not report by the next one
 * that it was refused. Nothing more can be known with UDP.
 *
 * UDP reports a datagram that is not taken by an error of a later call, or by an error of the
 * socket. So the last datagram is in doubt until the next datagram or flush met no error. A unix
 * socket reports at once, so a datagram that it refuses has not left. One that it takes is in the
 * receiver's buffer, and is in doubt until that is empty and takes another one: the buffer of a
 * receiver that has ended is empty as well.
 */
#include "export/transport/socket.h"

#include <errno.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "export/exporter.h"
#include "util/duration.h"

#define TICK_NS	   (5 * NS_PER_MS)
#define PROBE_NS   (500 * NS_PER_MS)
#define PROBES_MAX 4

struct udp_sender {
	struct socket sock;	 /* whose timer ticks while something waits to be sent in turn */
	bool was_refused;	 /* since the last flush */
	bool has_sent;		 /* likewise */

	uint64_t window_ns, deadline_ns; /* for what waits */
	uint64_t step;			 /* datagrams a tick, as planned */
	bool is_full;			 /* EPOLLOUT is awaited */
	unsigned int n_probes;
};

static void count_doubtful(struct udp_sender *sender, enum points fate)
{
	exporter_account(sender->sock.exporter, fate, sender->sock.exporter->n_doubtful);
	sender->sock.exporter->n_doubtful = 0;
}

/* Of a unix socket: what was sent is not in the receiver's buffer any more. */
static bool is_empty(const struct udp_sender *sender)
{
	int n_bytes = 0;

	return !ioctl(sender->sock.fd, SIOCOUTQ, &n_bytes) && !n_bytes;
}

/* A unix socket breaks, or is left: nobody knows whether the last datagrams were read. */
static void give_up_unread(struct udp_sender *sender)
{
	exporter_drop(sender->sock.exporter, POINTS_IN_DOUBT, sender->sock.exporter->n_doubtful,
		      "points may be lost: the receiver ended, or another one took its place, and it is not known what it had read");
	sender->sock.exporter->n_doubtful = 0;
}

static void on_refused(struct udp_sender *sender)
{
	count_doubtful(sender, POINTS_CONNECTION_REFUSED);
	sender->was_refused = true;
	socket_report(&sender->sock, "nothing receives datagrams there");
	socket_look_up_again(&sender->sock);
	sender->sock.exporter->n_losses += 1 + socket_try_next_address(&sender->sock);
}

/* was_empty: before that, the receiver's buffer. */
static void on_sent(struct udp_sender *sender, const struct queue_item *item, bool was_empty)
{
	struct exporter_stats *stats = &sender->sock.exporter->stats;

	stats->requests++;
	stats->retries += item->n_sent != 0;
	stats->bytes_sent += item->size;
	sender->has_sent = true;
	if (!sender->sock.is_unix || was_empty)
		count_doubtful(sender, POINTS_DELIVERED);
	sender->sock.exporter->n_doubtful += item->n_points;
	if (sender->sock.is_unix)
		socket_report_working(&sender->sock);
}

enum send_outcome { SEND_DONE,	 /* sent or given up: the next one */
		    SEND_AGAIN,	 /* this one, at once */
		    SEND_LATER,	 /* when there is room */
		    SEND_PAUSE,	 /* at the next tick */
		    SEND_BROKEN, /* the socket is closed */
};

static enum send_outcome on_send_error(struct udp_sender *sender, struct queue_item *item, int err)
{
	if (err == EAGAIN || err == EINTR)
		return SEND_LATER;
	if (err == ENOBUFS || err == ENOMEM)
		return SEND_PAUSE;
	if (err == EMSGSIZE) {
		exporter_drop(sender->sock.exporter, POINTS_TOO_LARGE, item->n_points,
			      "the network refuses datagrams of this size, they are dropped; lower max_datagram_size");
		sender->sock.exporter->n_losses++;
		return SEND_DONE;
	}
	/*
	 * It is about the datagram before, as far as one can know: an error of this one will come
	 * again.
	 */
	if (!sender->sock.is_unix && (err == ECONNREFUSED || sender->sock.exporter->n_doubtful)) {
		on_refused(sender);
		return item->n_sent++ % 2 ? SEND_PAUSE : SEND_AGAIN;
	}
	item->n_sent++;
	give_up_unread(sender);
	socket_fail(&sender->sock, strerror(err));
	return SEND_BROKEN;
}

/* Sends up to n datagrams. SEND_DONE: that went well, though some may be left. */
static enum send_outcome send_some(struct udp_sender *sender, uint64_t n)
{
	enum send_outcome outcome = SEND_DONE;
	struct queue_item *item;

	while (n && outcome <= SEND_AGAIN && (item = queue_begin(sender->sock.queue))) {
		enum points fate = POINTS_DELIVERED;
		bool was_empty = sender->sock.is_unix && is_empty(sender);

		outcome = SEND_DONE;
		if (send(sender->sock.fd, item->data, item->size,
			 MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
			fate = POINTS_TOO_LARGE;
			outcome = on_send_error(sender, item, errno);
		} else {
			on_sent(sender, item, was_empty);
		}
		queue_end(sender->sock.queue, outcome == SEND_DONE ? fate : POINTS_PUSHED);
		n -= outcome == SEND_DONE;
	}
	return outcome;
}

/* Datagrams a tick for all that wait to be sent in window_ns. */
static uint64_t step_for(const struct udp_sender *sender, uint64_t window_ns)
{
	uint64_t n_ticks = window_ns / TICK_NS, n = sender->sock.queue->n_items;

	if (n_ticks)
		n = (n + n_ticks - 1) / n_ticks;
	return n < sender->sock.options.burst ? sender->sock.options.burst : n;
}

static void plan_window(struct udp_sender *sender)
{
	sender->deadline_ns = timer_now_ns(sender->sock.event) + sender->window_ns;
	sender->step = sender->window_ns < TICK_NS ? UINT64_MAX / 2 :
		       step_for(sender, sender->window_ns);
}

/*
 * How many may leave now. Ticks that come late are made up for, but not so that a loop that was
 * held up overruns the receiver.
 */
static uint64_t count_allowed(const struct udp_sender *sender)
{
	uint64_t now_ns = timer_now_ns(sender->sock.event), n;

	if (!sender->sock.options.burst)
		return UINT64_MAX;
	n = step_for(sender, now_ns < sender->deadline_ns ? sender->deadline_ns - now_ns : 0);
	return n < 2 * sender->step ? n : 2 * sender->step;
}

static void send_up_to(struct udp_sender *sender, uint64_t n)
{
	enum send_outcome outcome = SEND_BROKEN;

	timer_disarm(&sender->sock.work);
	if (sender->sock.queue->n_items && socket_open(&sender->sock))
		outcome = send_some(sender, n);
	sender->is_full = outcome == SEND_LATER;
	socket_watch(&sender->sock, sender->is_full ? EPOLLOUT : 0);
	/* Without memory for a timer, the next flush goes on. */
	if (sender->sock.queue->n_items && (outcome == SEND_PAUSE || outcome == SEND_DONE))
		(void)timer_arm(&sender->sock.work, TICK_NS);
}

static void on_tick(void *sock)
{
	send_up_to(sock, count_allowed(sock));
}

/* An error of the socket that no call has met yet. */
static void on_error(struct udp_sender *sender)
{
	int err = socket_error(&sender->sock);

	if (sender->sock.is_unix) {
		give_up_unread(sender);
		socket_fail(&sender->sock, strerror(err ?: ECONNRESET));
	} else if (err) { /* if not, a call has met it since */
		on_refused(sender);
	}
	/* What waited for room in the old socket does not in the new one. */
	if (sender->is_full && sender->sock.state == SOCKET_OPEN)
		socket_watch(&sender->sock, EPOLLOUT);
}

static void on_ready(void *sock, uint32_t events)
{
	if (events & (EPOLLERR | EPOLLHUP))
		on_error(sock);
	else if (events & EPOLLOUT)
		send_up_to(sock, count_allowed(sock));
}

static void on_opened(void *sock)
{
	struct udp_sender *sender = sock;

	sender->sock.exporter->n_losses += sender->sock.exporter->stats.requests != 0;
	plan_window(sender);
	send_up_to(sender, count_allowed(sender));
}

static void on_flush(void *sock, bool is_last, uint64_t window_ns)
{
	struct udp_sender *sender = sock;
	uint64_t burst = sender->sock.options.burst;
	bool is_open;

	if (socket_is_replaced(&sender->sock)) {
		give_up_unread(sender);
		sender->sock.exporter->n_losses++;
		socket_close(&sender->sock);
	}
	is_open = sender->sock.state == SOCKET_OPEN;
	/* What the kernel knows by now about the last datagram. */
	if (is_open && !sender->sock.is_unix && socket_error(&sender->sock))
		on_refused(sender);
	if (sender->is_full && !sender->has_sent && is_open)
		socket_report(&sender->sock, "nobody reads what was sent: the socket has no room");
	if (sender->has_sent && !sender->was_refused && is_open)
		socket_report_working(&sender->sock);
	if (!sender->sock.is_unix)
		count_doubtful(sender, POINTS_DELIVERED);
	sender->has_sent = sender->was_refused = false;

	sender->window_ns = window_ns;
	plan_window(sender);
	if (!sender->is_full || !is_open)
		send_up_to(sender, burst && window_ns >= TICK_NS ? burst : UINT64_MAX);
}

/* An empty datagram may be refused; if it is not, nothing more can be known. */
static int probe_receiver(void *sock, const char **ret_words)
{
	struct udp_sender *sender = sock;
	uint64_t now_ns = timer_now_ns(sender->sock.event);

	if (sender->sock.is_unix)
		return 1;
	/* After a refusal the next address has its turn. */
	if (!sender->n_probes || (sender->was_refused && sender->n_probes < PROBES_MAX)) {
		sender->was_refused = false;
		sender->n_probes++;
		sender->deadline_ns = now_ns + PROBE_NS;
		(void)!send(sender->sock.fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	if (sender->was_refused || now_ns < sender->deadline_ns)
		return sender->was_refused ? -ECONNREFUSED : 0;
	*ret_words = "nobody refused an empty datagram, UDP does not tell more";
	return 1;
}

const struct socket_ops udp_ops = {
	.type = SOCK_DGRAM,
	.size_bytes = sizeof(struct udp_sender),
	.opened = on_opened,
	.ready = on_ready,
	.expired = on_tick,
	.flush = on_flush,
	.probe = probe_receiver,
};

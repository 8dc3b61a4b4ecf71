/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines over TCP to a receiver that never answers (Graphite's plaintext protocol), without losing
 * any. Sent lines are kept until it is certain that the receiver has read them, and are sent again
 * if the connection breaks before that. A line carries its own time, so a line that arrives twice
 * does no harm.
 *
 * TCP's acknowledgement says that the receiver's kernel has the bytes, not that the receiver read
 * them. The end of a connection says so: we shut down our side, the receiver reads to the end and
 * closes its own; if it closes with anything unread, the kernel answers with a reset. So the
 * connection is renewed when much was sent, when confirm_every_ns have passed, and at the end.
 *
 * An end that the receiver begins says nothing: a proxy takes everything, and ends in an orderly
 * way when its receiver is away. If it is not there at the outset, some seconds pass before the
 * proxy ends. So our side is shut down only when the connection is proof_ns old, unless much was
 * sent, or it is the end, and nothing has failed since the last confirmation.
 *
 * The queue has two parts: what was sent on this connection and is unconfirmed, and what waits. The
 * first item that waits may be sent in part. After an end that confirms nothing all is sent again.
 *
 * SENDING ──nothing waits, or enough was sent──▶ CONFIRMING: our side is shut down
 *                                                       │ end from the receiver
 *                                                       ▼
 *                                                ENDED: until everything is acknowledged, or there
 *                                                is an error
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

/* on a connection; it is then renewed when nothing waits */
#define CONFIRM_BYTES	 ((size_t)256 << 10)
/* of the queue's room, where that is less: later lines need some */
#define CONFIRM_PART	 4
/* it is renewed although something waits: little is sent twice */
#define CONNECTION_BYTES ((size_t)1 << 20)
#define SENDS		 64		     /* in one turn of the loop */
#define READS		 16

#define ENDED "the receiver ended the connection by itself; its lines are sent again"

#define END_POLL_NS   (5 * NS_PER_MS)
#define CHECK_MAX_NS  (250 * NS_PER_MS) /* between looks at the progress */
#define CHECK_FAST_NS (20 * NS_PER_MS)	/* where TCP's acknowledgement confirms */

enum tcp_state { STATE_SENDING,
		 STATE_CONFIRMING,
		 STATE_ENDED };

struct tcp_sender {
	/* whose timer looks at the progress, and whether it is time to confirm */
	struct socket sock;
	bool is_last;

	/* The connection. */
	enum tcp_state state;
	size_t offset;	   /* sent of queue.waiting */
	size_t sent_bytes; /* on it */
	size_t n_unacknowledged; /* when last looked at */
	uint64_t opened_ns;
	uint64_t progress_ns; /* when more was sent or acknowledged */
};

static void send_more(struct tcp_sender *sender);
static void read_until_end(struct tcp_sender *sender);

static bool has_unconfirmed(const struct tcp_sender *sender)
{
	return TAILQ_FIRST(&sender->sock.queue->items) != sender->sock.queue->waiting;
}

/* Bytes that the receiver's kernel has not acknowledged; the end of our stream counts as one. */
static size_t count_unacknowledged(const struct tcp_sender *sender)
{
	int n = 0;

	return ioctl(sender->sock.fd, SIOCOUTQ, &n) < 0 || n < 0 ? SIZE_MAX : (size_t)n;
}

static void confirm_sent(struct tcp_sender *sender)
{
	if (!has_unconfirmed(sender))
		return;
	socket_report_working(&sender->sock);
	exporter_account(sender->sock.exporter, POINTS_DELIVERED,
			 queue_confirm(sender->sock.queue));
}

/* The end of a connection */

static void forget_connection(struct tcp_sender *sender)
{
	timer_disarm(&sender->sock.work);
	sender->state = STATE_SENDING;
	sender->offset = sender->sent_bytes = sender->n_unacknowledged = 0;
}

/* What was sent may not have arrived, so it is sent again. */
static void break_off(struct tcp_sender *sender, const char *problem)
{
	if (sender->sock.queue->n_items)
		socket_fail(&sender->sock, problem);
	else
		socket_close(&sender->sock);
	forget_connection(sender);
	queue_rewind(sender->sock.queue);
}

/* The receiver has read what was sent, and closed. */
static void end_orderly(struct tcp_sender *sender)
{
	confirm_sent(sender);
	forget_connection(sender);
	socket_close(&sender->sock);
	send_more(sender);
}

/* The receiver has ended its side. */
static void on_end(struct tcp_sender *sender)
{
	int err = socket_error(&sender->sock);

	if (err) {
		break_off(sender, strerror(err));
	} else if (sender->state == STATE_SENDING) {
		break_off(sender, sender->sent_bytes > sender->offset ? ENDED :
			  "the receiver closes the connection before it has read anything");
	} else if (sender->state == STATE_CONFIRMING) {
		/*
		 * The end stays readable, so a timer looks instead. It does not look at once: a
		 * receiver that shuts down before it closes, as Twisted does, sends a reset after
		 * the end if it left something unread.
		 */
		sender->state = STATE_ENDED;
		socket_watch(&sender->sock, SOCKET_IGNORE);
		(void)timer_arm(&sender->sock.work, END_POLL_NS);
	} else if (!count_unacknowledged(sender)) {
		end_orderly(sender);
	}
}

/* Progress */

/*
 * How old a connection becomes. The first one is shorter: it is not known yet whether the receiver
 * reads. After a failure, the user waits to hear that it works again.
 */
static uint64_t confirm_after_ns(const struct tcp_sender *sender)
{
	const struct sender_options *options = &sender->sock.options;
	bool is_first = !sender->sock.exporter->stats.points[POINTS_DELIVERED];
	uint64_t after_ns = options->confirm_every_ns;

	if (sender->sock.exporter->stats.is_failing)
		after_ns = 0;
	else if (is_first && options->timeout_ns < after_ns)
		after_ns = options->timeout_ns;
	return after_ns < options->proof_ns ? options->proof_ns : after_ns;
}

/* When the queue is nearly full, one piece is enough to prove that the receiver is there again. */
static bool is_proof_enough(const struct tcp_sender *sender)
{
	const struct queue *queue = sender->sock.queue;

	/* What is not sent can be merged with later lines (lines.c). */
	return sender->sock.exporter->stats.is_failing && sender->sent_bytes && !sender->is_last &&
	       queue->budget && queue_is_near(queue, queue->budget->limit_bytes / 4);
}

/* Something waits, and may be sent on this connection. */
static bool has_more(const struct tcp_sender *sender)
{
	const struct queue_item *waiting = sender->sock.queue->waiting;

	if (!waiting || !sender->sock.options.confirm_every_ns || sender->offset)
		return waiting;
	return sender->sent_bytes < CONNECTION_BYTES && !is_proof_enough(sender);
}

/* Does something still have to happen on the connection? */
static bool is_busy(const struct tcp_sender *sender)
{
	if (sender->state != STATE_SENDING || has_more(sender) || sender->n_unacknowledged)
		return true;
	return !sender->sock.options.confirm_every_ns && has_unconfirmed(sender);
}

/* 0: nothing is awaited. */
static uint64_t check_delay_ns(const struct tcp_sender *sender)
{
	uint64_t most_ns = sender->sock.options.confirm_every_ns ? CHECK_MAX_NS : CHECK_FAST_NS;

	if (sender->state == STATE_ENDED)
		return END_POLL_NS;
	if (is_busy(sender))
		return sender->sock.options.timeout_ns / 4 < most_ns ?
		       sender->sock.options.timeout_ns / 4 : most_ns;
	/* It is not yet time, or the sender would be confirming. */
	return has_unconfirmed(sender) ?
		       sender->opened_ns + confirm_after_ns(sender) -
		       timer_now_ns(sender->sock.event) : 0;
}

static void check_progress(struct tcp_sender *sender)
{
	uint64_t now_ns = timer_now_ns(sender->sock.event), delay_ns;
	size_t n = count_unacknowledged(sender);

	if (n < sender->n_unacknowledged)
		sender->progress_ns = now_ns;
	sender->n_unacknowledged = n;
	if (!sender->sock.options.confirm_every_ns && !n && !sender->offset)
		confirm_sent(sender);
	delay_ns = check_delay_ns(sender);
	if (is_busy(sender) && now_ns - sender->progress_ns >= sender->sock.options.timeout_ns)
		break_off(sender, sender->state == STATE_SENDING || n ?
			  "the receiver does not accept what is sent" :
			  "the receiver took everything but did not close the connection, so it may not have read it. "
			  "Does it read at all? If it keeps connections open on purpose, set confirm_every = 0");
	else if (delay_ns)
		(void)timer_arm(&sender->sock.work, delay_ns);
}

static void on_check_time(void *sock)
{
	struct tcp_sender *sender = sock;

	if (sender->sock.state != SOCKET_OPEN)
		return;
	if (sender->state == STATE_ENDED)
		on_end(sender);
	else
		send_more(sender);
	if (sender->sock.state == SOCKET_OPEN)
		check_progress(sender);
}

/* Confirming */

static void begin_to_confirm(struct tcp_sender *sender)
{
	read_until_end(sender); /* an end that has come already does not answer ours */
	if (sender->sock.state != SOCKET_OPEN)
		return;
	sender->state = STATE_CONFIRMING;
	exporter_asks(sender->sock.exporter, true);
	sender->progress_ns = timer_now_ns(sender->sock.event);
	socket_watch(&sender->sock, EPOLLIN);
	if (shutdown(sender->sock.fd, SHUT_WR) < 0)
		break_off(sender, strerror(errno));
	else
		check_progress(sender);
}

/* No more is to be sent on this connection now. */
static bool is_time_to_confirm(const struct tcp_sender *sender)
{
	uint64_t age_ns = timer_now_ns(sender->sock.event) - sender->opened_ns;
	const struct queue_budget *budget = sender->sock.queue->budget;
	uint64_t most_bytes = budget ? budget->limit_bytes / CONFIRM_PART : CONFIRM_BYTES;
	bool is_much;

	if (most_bytes > CONFIRM_BYTES)
		most_bytes = CONFIRM_BYTES;
	is_much = sender->sent_bytes >= most_bytes;
	if (!sender->sock.options.confirm_every_ns || !has_unconfirmed(sender))
		return false;
	return age_ns >= confirm_after_ns(sender) ||
	       ((sender->is_last || is_much) && !sender->sock.exporter->stats.is_failing);
}

/* Sending */

static int send_part(struct tcp_sender *sender)
{
	struct exporter_stats *stats = &sender->sock.exporter->stats;
	struct queue_item *item = sender->sock.queue->waiting;
	ssize_t n = send(sender->sock.fd, item->data + sender->offset, item->size - sender->offset,
			 MSG_DONTWAIT | MSG_NOSIGNAL | (TAILQ_NEXT(item, link) ? MSG_MORE : 0));

	if (n < 0)
		return -errno;
	sender->sock.queue->is_begun = true;
	item->is_doubtful = true; /* the receiver may have a part: it is not taken back */
	sender->offset += (size_t)n;
	sender->sent_bytes += (size_t)n;
	sender->progress_ns = timer_now_ns(sender->sock.event);
	stats->bytes_sent += (size_t)n;
	if (sender->offset < item->size)
		return 0;
	sender->offset = 0;
	stats->requests++;
	stats->retries += item->n_sent++ != 0;
	queue_step(sender->sock.queue);
	return 0;
}

/*
 * 0: nothing waits, or enough was sent on this connection; -EAGAIN: it takes no more now; or
 * another error.
 */
static int send_waiting(struct tcp_sender *sender)
{
	int err = 0;

	for (int i = 0; i < SENDS && !err; i++) {
		if (!has_more(sender))
			return 0;
		err = send_part(sender);
	}
	return err ? err : -EAGAIN;
}

static void send_more(struct tcp_sender *sender)
{
	int r;

	if (!sender->sock.queue->n_items || !socket_open(&sender->sock) ||
	    sender->state != STATE_SENDING)
		return;
	r = send_waiting(sender);
	if (r < 0 && r != -EAGAIN) {
		break_off(sender, r == -EPIPE ? ENDED : strerror(-r));
	} else if (!r && is_time_to_confirm(sender)) {
		begin_to_confirm(sender);
	} else {
		socket_watch(&sender->sock, r ? EPOLLIN | EPOLLOUT : EPOLLIN);
		check_progress(sender);
	}
}

/* What a receiver says is ignored, but not that it ends. */
static void read_until_end(struct tcp_sender *sender)
{
	char room[4096];

	for (int i = 0; i < READS; i++) {
		ssize_t n = recv(sender->sock.fd, room, sizeof(room), MSG_DONTWAIT);

		if (n > 0)
			continue;
		if (!n)
			on_end(sender);
		else if (errno != EAGAIN && errno != EINTR)
			break_off(sender, strerror(errno));
		return;
	}
}

static void on_ready(void *sock, uint32_t events)
{
	struct tcp_sender *sender = sock;

	if (events & (EPOLLIN | EPOLLERR | EPOLLHUP))
		read_until_end(sender);
	if (sender->sock.state == SOCKET_OPEN && events & EPOLLOUT)
		send_more(sender);
}

static void on_opened(void *sock)
{
	struct tcp_sender *sender = sock;

	forget_connection(sender);
	sender->opened_ns = sender->progress_ns = timer_now_ns(sender->sock.event);
	socket_watch(&sender->sock, EPOLLIN);
	send_more(sender);
}

static void on_flush(void *sock, bool is_last, uint64_t window_ns)
{
	struct tcp_sender *sender = sock;

	sender->is_last = is_last;
	send_more(sender);
}

const struct socket_ops tcp_ops = {
	.type = SOCK_STREAM,
	.size_bytes = sizeof(struct tcp_sender),
	.opened = on_opened,
	.ready = on_ready,
	.expired = on_check_time,
	.flush = on_flush,
};

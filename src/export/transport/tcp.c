/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue has two parts: what was sent on this connection and is unconfirmed, and what waits. The first item that
 * waits may be sent in part. A connection that ends in an orderly way, with everything acknowledged, confirms
 * what was sent; after any other end all of it is sent again.
 *
 * SENDING ──nothing waits, or enough was sent──▶ CONFIRMING: our side is shut down
 *    └───────────end from the receiver────────────┐     │ end from the receiver
 *                                                 ▼     ▼
 *                                                ENDED: until everything is acknowledged, or there is an error
 */
#include "export/transport/tcp.h"

#include <errno.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "export/transport/timer.h"
#include "util/duration.h"

#define CONFIRM_BYTES	 ((size_t)256 << 10) /* on a connection; it is then renewed when nothing waits */
#define CONFIRM_PART	 4		     /* of the queue's room, where that is less: later lines need some */
#define CONNECTION_BYTES ((size_t)1 << 20)   /* it is renewed although something waits: little is sent twice */
#define SENDS		 64		     /* in one turn of the loop */
#define READS		 16

#define END_POLL_NS   (5 * NS_PER_MS)
#define CHECK_MAX_NS  (250 * NS_PER_MS) /* between looks at the progress */
#define CHECK_FAST_NS (20 * NS_PER_MS)	/* where TCP's acknowledgement confirms */

enum tcp_state { STATE_SENDING,
		 STATE_CONFIRMING,
		 STATE_ENDED };

struct tcp_sender {
	struct exporter *exporter;
	uint64_t confirm_every_ns, timeout_ns;
	struct socket *sock;
	struct queue *queue; /* the exporter's */
	bool is_last;

	/* The connection. */
	enum tcp_state state;
	size_t offset;	   /* sent of queue.waiting */
	size_t sent_bytes; /* on it */
	size_t acked_bytes;
	uint64_t opened_ns;
	uint64_t progress_ns; /* when sent_bytes or acked_bytes last grew */

	struct timer check; /* the progress, and whether it is time to confirm */
};

static void send_more(struct tcp_sender *sender);

static bool has_unconfirmed(const struct tcp_sender *sender)
{
	return sender->queue->head != sender->queue->waiting;
}

/* Bytes that the receiver's kernel has not acknowledged; the end of our stream counts as one. */
static size_t unacknowledged(const struct tcp_sender *sender)
{
	int n = 0;

	return ioctl(socket_fd(sender->sock), SIOCOUTQ, &n) < 0 || n < 0 ? SIZE_MAX : (size_t)n;
}

static void confirm_sent(struct tcp_sender *sender)
{
	if (!has_unconfirmed(sender))
		return;
	exporter_account(sender->exporter, POINTS_DELIVERED, queue_confirm(sender->queue));
	socket_report_working(sender->sock);
}

/* The end of a connection */

/* A part of a line must not look like a whole one. So a reset follows it, which no reader takes for an end. */
static void reset_if_partial(struct tcp_sender *sender)
{
	const struct linger at_once = { .l_onoff = 1 };

	if (sender->queue->is_begun && socket_fd(sender->sock) >= 0)
		(void)setsockopt(socket_fd(sender->sock), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	sender->queue->is_begun = false;
}

static void forget_connection(struct tcp_sender *sender)
{
	timer_disarm(&sender->check);
	sender->state = STATE_SENDING;
	sender->offset = sender->sent_bytes = sender->acked_bytes = 0;
}

/* What was sent may not have arrived, so it is sent again. */
static void break_off(struct tcp_sender *sender, const char *problem)
{
	reset_if_partial(sender);
	forget_connection(sender);
	queue_rewind(sender->queue);
	if (sender->queue->n_items)
		socket_fail(sender->sock, problem);
	else
		socket_close(sender->sock);
}

/* The receiver has read what was sent, and closed. An item that was sent in part is sent again. */
static void end_orderly(struct tcp_sender *sender)
{
	bool is_useful = sender->sent_bytes > sender->offset; /* it has read something whole */

	confirm_sent(sender);
	reset_if_partial(sender);
	forget_connection(sender);
	if (!is_useful && sender->queue->n_items) {
		socket_fail(sender->sock, "the receiver closes the connection before it has read anything");
		return;
	}
	socket_close(sender->sock);
	send_more(sender);
}

/* The receiver has ended its side. */
static void on_end(struct tcp_sender *sender)
{
	int err = socket_error(sender->sock);

	if (err) {
		break_off(sender, strerror(err));
	} else if (sender->state != STATE_ENDED) {
		/*
		 * The end stays readable, so a timer looks instead. It does not look at once: a receiver that shuts
		 * down before it closes, as Twisted does, sends a reset after the end if it left something unread.
		 */
		sender->state = STATE_ENDED;
		socket_ignore(sender->sock);
		(void)timer_arm(&sender->check, END_POLL_NS);
	} else if (!unacknowledged(sender)) {
		end_orderly(sender);
	}
}

/* Progress */

static void note_progress(struct tcp_sender *sender)
{
	size_t n = unacknowledged(sender);
	size_t acked_bytes = n > sender->sent_bytes ? 0 : sender->sent_bytes - n;

	if (acked_bytes <= sender->acked_bytes)
		return;
	sender->acked_bytes = acked_bytes;
	sender->progress_ns = timer_now_ns(sender->check.event);
}

static void on_stalled(struct tcp_sender *sender)
{
	if (sender->state == STATE_SENDING || sender->acked_bytes < sender->sent_bytes)
		break_off(sender, "the receiver does not accept what is sent");
	else
		break_off(sender,
			  "the receiver took everything but did not close the connection, so it may not have read it. "
			  "Does it read at all? If it keeps connections open on purpose, set confirm_every = 0");
}

/* How old a connection becomes. The first one is shorter: nobody knows yet whether the receiver reads. */
static uint64_t confirm_after_ns(const struct tcp_sender *sender)
{
	uint64_t every_ns = sender->confirm_every_ns;
	bool is_first = !sender->exporter->stats.points[POINTS_DELIVERED];

	return is_first && sender->timeout_ns < every_ns ? sender->timeout_ns : every_ns;
}

/* Does something still have to happen on the connection? */
static bool is_busy(const struct tcp_sender *sender)
{
	if (sender->state != STATE_SENDING || sender->queue->waiting || sender->acked_bytes < sender->sent_bytes)
		return true;
	return !sender->confirm_every_ns && has_unconfirmed(sender);
}

/* 0: nothing is awaited. */
static uint64_t check_delay_ns(const struct tcp_sender *sender)
{
	uint64_t most_ns = sender->confirm_every_ns ? CHECK_MAX_NS : CHECK_FAST_NS;

	if (sender->state == STATE_ENDED)
		return END_POLL_NS;
	if (is_busy(sender))
		return sender->timeout_ns / 4 < most_ns ? sender->timeout_ns / 4 : most_ns;
	/* It is not yet time, or the sender would be confirming. */
	return has_unconfirmed(sender) ?
		       sender->opened_ns + confirm_after_ns(sender) - timer_now_ns(sender->check.event) :
		       0;
}

static void check_progress(struct tcp_sender *sender)
{
	uint64_t delay_ns;

	note_progress(sender);
	if (!sender->confirm_every_ns && sender->acked_bytes >= sender->sent_bytes && !sender->offset)
		confirm_sent(sender);
	delay_ns = check_delay_ns(sender);
	if (is_busy(sender) && timer_now_ns(sender->check.event) - sender->progress_ns >= sender->timeout_ns)
		on_stalled(sender);
	else if (delay_ns)
		(void)timer_arm(&sender->check, delay_ns);
}

static void on_check_time(void *user)
{
	struct tcp_sender *sender = user;

	if (socket_fd(sender->sock) < 0)
		return;
	if (sender->state == STATE_ENDED)
		on_end(sender);
	else
		send_more(sender);
	if (socket_fd(sender->sock) >= 0)
		check_progress(sender);
}

/* Confirming */

static void begin_to_confirm(struct tcp_sender *sender)
{
	sender->state = STATE_CONFIRMING;
	exporter_asks(sender->exporter, true);
	sender->progress_ns = timer_now_ns(sender->check.event);
	socket_watch(sender->sock, EPOLLIN);
	if (shutdown(socket_fd(sender->sock), SHUT_WR) < 0)
		break_off(sender, strerror(errno));
	else
		check_progress(sender);
}

/* Nothing waits. */
static bool is_time_to_confirm(const struct tcp_sender *sender)
{
	uint64_t age_ns = timer_now_ns(sender->check.event) - sender->opened_ns;
	size_t most_bytes = sender->queue->limit_bytes / CONFIRM_PART;

	if (!sender->confirm_every_ns || !has_unconfirmed(sender))
		return false;
	/* After a failure, somebody waits to hear that it works again. */
	return sender->is_last || sender->exporter->stats.is_failing || age_ns >= confirm_after_ns(sender) ||
	       sender->sent_bytes >= (most_bytes < CONFIRM_BYTES ? most_bytes : CONFIRM_BYTES);
}

/* Sending */

static int send_part(struct tcp_sender *sender)
{
	struct exporter_stats *stats = &sender->exporter->stats;
	struct queue_item *item = sender->queue->waiting;
	ssize_t n = send(socket_fd(sender->sock), item->data + sender->offset, item->size - sender->offset,
			 MSG_DONTWAIT | MSG_NOSIGNAL | (item->next ? MSG_MORE : 0));

	if (n < 0)
		return -errno;
	sender->queue->is_begun = true;
	sender->offset += (size_t)n;
	sender->sent_bytes += (size_t)n;
	sender->progress_ns = timer_now_ns(sender->check.event);
	stats->bytes_sent += (size_t)n;
	if (sender->offset < item->size)
		return 0;
	sender->offset = 0;
	stats->requests++;
	stats->retries += item->n_sent++ != 0;
	queue_step(sender->queue);
	return 0;
}

/* 0: nothing waits; 1: enough was sent on this connection; -EAGAIN: it takes no more now; or another error. */
static int send_waiting(struct tcp_sender *sender)
{
	int err = 0;

	for (int i = 0; i < SENDS && !err; i++) {
		if (!sender->queue->waiting)
			return 0;
		if (sender->confirm_every_ns && !sender->offset && sender->sent_bytes >= CONNECTION_BYTES)
			return 1;
		err = send_part(sender);
	}
	return err ? err : -EAGAIN;
}

static void send_more(struct tcp_sender *sender)
{
	int r;

	if (!sender->queue->n_items || !socket_open(sender->sock) || sender->state != STATE_SENDING)
		return;
	r = send_waiting(sender);
	if (r < 0 && r != -EAGAIN) {
		break_off(sender, strerror(-r));
	} else if (r == 1 || (!r && is_time_to_confirm(sender))) {
		begin_to_confirm(sender);
	} else {
		socket_watch(sender->sock, r ? EPOLLIN | EPOLLOUT : EPOLLIN);
		check_progress(sender);
	}
}

/* What a receiver says is ignored, but not that it ends. */
static void read_until_end(struct tcp_sender *sender)
{
	char room[4096];

	for (int i = 0; i < READS; i++) {
		ssize_t n = recv(socket_fd(sender->sock), room, sizeof(room), MSG_DONTWAIT);

		if (n > 0)
			continue;
		if (!n)
			on_end(sender);
		else if (errno != EAGAIN && errno != EINTR)
			break_off(sender, strerror(errno));
		return;
	}
}

static void on_ready(void *user, uint32_t events)
{
	struct tcp_sender *sender = user;

	if (events & (EPOLLIN | EPOLLERR | EPOLLHUP))
		read_until_end(sender);
	if (socket_fd(sender->sock) >= 0 && events & EPOLLOUT)
		send_more(sender);
}

static void on_opened(void *user)
{
	struct tcp_sender *sender = user;

	forget_connection(sender);
	sender->opened_ns = sender->progress_ns = timer_now_ns(sender->check.event);
	socket_watch(sender->sock, EPOLLIN);
	send_more(sender);
}

static const struct socket_events socket_events = { .opened = on_opened, .ready = on_ready };

/* The sender */

int tcp_sender_new(struct exporter *exporter, const struct sender_options *options, struct tcp_sender **ret_sender)
{
	_cleanup_(tcp_sender_freep) struct tcp_sender *sender = calloc(1, sizeof(*sender));
	int err;

	if (!sender)
		return -ENOMEM;
	sender->exporter = exporter;
	sender->confirm_every_ns = options->confirm_every_ns;
	sender->timeout_ns = options->timeout_ns;
	timer_init(&sender->check, exporter->context->event, on_check_time, sender);
	sender->queue = &exporter->queue;
	queue_init(sender->queue, SIZE_MAX, options->queue_bytes);
	err = socket_new(exporter, SOCK_STREAM, options, &socket_events, sender, &sender->sock);
	if (err)
		return err;
	*ret_sender = TAKE_PTR(sender);
	return 0;
}

void tcp_sender_flush(struct tcp_sender *sender, bool is_last)
{
	sender->is_last = is_last;
	send_more(sender);
}

int tcp_sender_probe(struct tcp_sender *sender)
{
	struct exporter_stats *stats = &sender->exporter->stats;

	if (!socket_open(sender->sock))
		return stats->is_failing ? -ENOTCONN : 0;
	snprintf(stats->problem, sizeof(stats->problem), "connected");
	return 1;
}

struct tcp_sender *tcp_sender_free(struct tcp_sender *sender)
{
	if (!sender)
		return NULL;
	if (sender->sock)
		reset_if_partial(sender);
	timer_done(&sender->check);
	socket_free(sender->sock);
	free(sender);
	return NULL;
}

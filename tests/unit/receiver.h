/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A receiver of lines over TCP, and a delivery client to it. */

#include "loopback.h"

#include "export/transport/tcp.h"
#include "util/buf.h"

#define NEVER (UINT64_C(3600000) * MS)

/* Takes one connection after the other, reads each to its end and then closes it, as carbon does. */
struct receiver {
	int listener, fd;
	unsigned int n_accepted, n_ended;
	bool stays_open; /* after the end */
	struct buf text, last; /* of all connections, of the last */
};

static inline void receiver_init(struct receiver *receiver, const char *host, unsigned int port)
{
	*receiver = (struct receiver){ .listener = listener(host, port), .fd = -1 };
}

static inline void receiver_hang_up(struct receiver *receiver)
{
	if (receiver->fd >= 0)
		close(receiver->fd);
	receiver->fd = -1;
}

static inline void receiver_done(struct receiver *receiver)
{
	receiver_hang_up(receiver);
	if (receiver->listener >= 0)
		close(receiver->listener);
	buf_done(&receiver->text);
	buf_done(&receiver->last);
}

static inline bool receiver_accept(struct receiver *receiver)
{
	if (receiver->fd >= 0)
		return true;
	receiver->fd = accept4(receiver->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (receiver->fd < 0)
		return false;
	receiver->n_accepted++;
	buf_reset(&receiver->last);
	return true;
}

/* Reads what is there; the bytes of all connections so far. */
static inline size_t receiver_read(struct receiver *receiver)
{
	static char room[65536];
	ssize_t n;

	while (receiver_accept(receiver)) {
		n = recv(receiver->fd, room, sizeof(room), 0);
		if (n < 0 && errno == EAGAIN)
			break;
		if (n > 0) {
			buf_append(&receiver->text, room, (size_t)n);
			buf_append(&receiver->last, room, (size_t)n);
			continue;
		}
		receiver->n_ended += !n;
		if (receiver->stays_open)
			break;
		receiver_hang_up(receiver);
	}
	return receiver->text.size;
}

static inline bool is_text(const struct buf *buf, const char *expected)
{
	return buf->size == strlen(expected) && !memcmp(buf->data, expected, buf->size);
}

static inline struct tcp_options options_for(const char *host, unsigned int port)
{
	return (struct tcp_options){ .endpoint = endpoint_at(host, port),
					  .queue_bytes = 16 << 20,
					  .confirm_every_ns = NEVER,
					  .timeout_ns = 5000 * MS,
					  .retry_initial_ns = 10 * MS,
					  .retry_max_ns = 50 * MS };
}

static inline struct exporter_waiting client_waiting(const struct exporter *exporter)
{
	return tcp_sender_waiting(exporter->state);
}

static struct exporter *sender; /* of the last client */

static inline struct tcp_sender *client_new(struct world *world, const struct tcp_options *options)
{
	static const struct exporter_ops ops = { .type = "test", .waiting = client_waiting };
	struct tcp_sender *client = NULL;

	world_init(world);
	assert_ok(tcp_sender_new(world->event, options, &world->exporter, &client));
	world->exporter.ops = &ops;
	world->exporter.state = client;
	sender = &world->exporter;
	return client;
}

static inline struct tcp_sender *client_to(struct world *world, const struct receiver *receiver)
{
	const struct tcp_options options = options_for("127.0.0.1", port_of(receiver->listener));

	return client_new(world, &options);
}

static inline void put_data(struct tcp_sender *client, uint8_t *data, size_t size, size_t n_points)
{
	exporter_account(sender, POINTS_PUSHED, n_points);
	assert_ok(tcp_sender_put(client, data, size, n_points));
	assert_accounted(sender);
}

static inline void put(struct tcp_sender *client, const char *text, size_t n_points)
{
	put_data(client, copy(text), strlen(text), n_points);
}

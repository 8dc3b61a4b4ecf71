/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A datagram client, and what its receiver gets. */

#include "loopback.h"

#include "export/transport/udp.h"

static inline struct udp_options options_for(struct endpoint endpoint)
{
	return (struct udp_options){ .endpoint = endpoint,
					  .burst = 8,
					  .queue_bytes = 1 << 20,
					  .retry_initial_ns = 10 * MS,
					  .retry_max_ns = 50 * MS };
}

static inline struct exporter_waiting client_waiting(const struct exporter *exporter)
{
	return udp_sender_waiting(exporter->state);
}

static struct exporter *sender; /* of the last client */

static inline struct udp_sender *client_new(struct world *world, const struct udp_options *options)
{
	static const struct exporter_ops ops = { .type = "test", .waiting = client_waiting };
	struct udp_sender *client = NULL;

	assert_ok(udp_sender_new(world->event, options, &world->exporter, &client));
	world->exporter.ops = &ops;
	world->exporter.state = client;
	sender = &world->exporter;
	return client;
}

static inline struct udp_sender *client_to(struct world *world, struct endpoint endpoint)
{
	const struct udp_options options = options_for(endpoint);

	return client_new(world, &options);
}

static inline void put_data(struct udp_sender *client, uint8_t *data, size_t size, size_t n_points)
{
	exporter_account(sender, POINTS_PUSHED, n_points);
	assert_ok(udp_sender_put(client, data, size, n_points));
	assert_accounted(sender);
}

static inline void put(struct udp_sender *client, const char *text, size_t n_points)
{
	put_data(client, copy(text), strlen(text), n_points);
}

/* Datagrams that are there; the text of the last one. */
static inline unsigned int drain(int fd, char last[64])
{
	unsigned int n = 0;
	ssize_t size;

	while ((size = recv(fd, last, 63, MSG_DONTWAIT)) >= 0) {
		last[size] = '\0';
		n++;
	}
	return n;
}

static inline void receives(struct world *world, int fd, const char *expected)
{
	char last[64] = "";

	RUN_UNTIL(world, drain(fd, last));
	assert_string_equal(last, expected);
}

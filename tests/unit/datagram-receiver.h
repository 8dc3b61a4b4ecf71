/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A datagram client, and what its receiver gets. */

#include "loopback.h"

#include "export/transport/datagram.h"

static inline struct datagram_options options_for(struct endpoint endpoint)
{
	return (struct datagram_options){ .endpoint = endpoint,
					  .burst = 8,
					  .queue_bytes = 1 << 20,
					  .retry_initial_ns = 10 * MS,
					  .retry_max_ns = 50 * MS };
}

static inline struct datagram_client *client_new(struct world *world, const struct datagram_options *options)
{
	struct datagram_client *client = NULL;

	assert_ok(datagram_client_new(world->event, options, &world->exporter, &client));
	return client;
}

static inline struct datagram_client *client_to(struct world *world, struct endpoint endpoint)
{
	const struct datagram_options options = options_for(endpoint);

	return client_new(world, &options);
}

static inline void put(struct datagram_client *client, const char *text, size_t n_points)
{
	assert_ok(datagram_client_put(client, copy(text), strlen(text), n_points));
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

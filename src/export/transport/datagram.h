/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Datagrams to one receiver over UDP or a unix datagram socket, from one long-lived connected socket: a
 * receiver that tells senders apart by their port sees one sender. Nothing here blocks: names are looked up
 * beside the loop, what cannot leave at once waits in a bounded queue.
 *
 * Paced: burst datagrams leave at once, further ones in steps spread over a part of the interval, so that a
 * receiver with the kernel's default buffer keeps up. Where the socket is full the loop waits for room.
 *
 * What becomes of points is counted in stats: delivered when the kernel took the datagram and the next
 * one met no report that it was refused; the others by reason. For UDP that is all that can be known.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/exporter.h"
#include "export/transport/endpoint.h"
#include "util/cleanup.h"

struct sd_event;
struct exporter;
struct datagram_client;

struct datagram_options {
	struct endpoint endpoint;
	uint64_t burst;		   /* datagrams that leave at once; 0: all of them */
	uint64_t resolve_every_ns; /* a name is looked up again this often; 0: only after errors */
	uint64_t queue_bytes;
	uint64_t retry_initial_ns, retry_max_ns; /* before the socket is opened again */
};

/*
 * exporter gives the name for the log and the stats, and outlives the client; options are copied. -ENOMEM. A
 * receiver that is not there is no error here.
 */
int datagram_client_new(struct sd_event *event, const struct datagram_options *options, struct exporter *exporter,
			struct datagram_client **ret_client);
/* One datagram, in which n_points points end: as exporter_enqueue(), but 0 where older ones had to go. */
int datagram_client_put(struct datagram_client *client, uint8_t *data, size_t size, size_t n_points);
/* Sends what was put: burst at once, the rest within window_ns, which may be 0. */
void datagram_client_flush(struct datagram_client *client, uint64_t window_ns);
/* Grows when something sent before may not have arrived: what is not repeated by itself should be. */
unsigned int datagram_client_losses(const struct datagram_client *client);
struct exporter_waiting datagram_client_waiting(const struct datagram_client *client);
struct datagram_client *datagram_client_free(struct datagram_client *client);

DEFINE_CLEANUP(struct datagram_client *, datagram_client_free);

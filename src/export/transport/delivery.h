/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Lines over TCP to a receiver that never answers (Graphite's plaintext protocol), without losing any: what was
 * sent is kept until the receiver is known to have read it, and sent again when the connection breaks
 * before. The lines carry their own time, so a line that arrives twice says the same twice.
 *
 * TCP's acknowledgement says that the receiver's kernel has the bytes, not that the receiver read them. What
 * says so is the end of a connection: we shut down our side, the receiver reads to the end and closes its own;
 * with anything unread the kernel would answer by a reset. So the connection is renewed now and then, when
 * much was sent or confirm_every_ns have passed, and at the end. An orderly close by the receiver
 * when all is acknowledged says the same. (Who ends only his side and then does not read on, as a proxy may whose
 * own receiver has gone, cannot be told from that.)
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/exporter.h"
#include "export/transport/endpoint.h"
#include "util/cleanup.h"

struct sd_event;
struct exporter;
struct delivery_client;

struct delivery_options {
	struct endpoint endpoint;  /* no unix socket */
	uint64_t queue_bytes;	   /* of lines that wait or are unconfirmed; over it the oldest go */
	uint64_t confirm_every_ns; /* 0: TCP's acknowledgement is enough, the connection stays */
	uint64_t timeout_ns;	   /* without progress, before the connection is given up */
	uint64_t retry_initial_ns, retry_max_ns;
};

/*
 * exporter gives the name for the log and the stats, and outlives the client; options are copied. -ENOMEM. A
 * receiver that is not there is no error here.
 */
int delivery_client_new(struct sd_event *event, const struct delivery_options *options, struct exporter *exporter,
			struct delivery_client **ret_client);
/* Whole lines, of n_points points: as exporter_enqueue(), but 0 where older ones had to go. */
int delivery_client_put(struct delivery_client *client, uint8_t *data, size_t size, size_t n_points);
/* Sends what was put. */
void delivery_client_flush(struct delivery_client *client);
/* Nothing will be put any more: all is to be confirmed now. */
void delivery_client_finish(struct delivery_client *client);
struct exporter_waiting delivery_client_waiting(const struct delivery_client *client); /* unconfirmed */
struct delivery_client *delivery_client_free(struct delivery_client *client);

DEFINE_CLEANUP(struct delivery_client *, delivery_client_free);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Datagrams to one receiver, over UDP or a unix datagram socket. There is one long-lived connected
 * socket, so a receiver that tells senders apart by their port sees one sender. Nothing here
 * blocks: names are looked up outside the loop, and datagrams that cannot leave at once wait in a
 * bounded queue.
 *
 * They are paced: burst datagrams leave at once, the others in steps over a part of the interval, so that a
 * receiver with the kernel's default buffer keeps up. If the socket is full, the loop waits for room.
 *
 * A point counts as delivered when the kernel took the datagram and did not report by the next one that it was
 * refused. Nothing more can be known with UDP.
 */

#include "export/exporter.h"
#include "export/transport/socket.h"

struct udp_sender;

/*
 * exporter gives the name for the log, counts the points and outlives the sender; options are copied. -ENOMEM. It is
 * not an error if the receiver is not there.
 */
int udp_sender_new(struct exporter *exporter, const struct sender_options *options, struct udp_sender **ret_sender);
/* Sends the datagrams in the exporter's queue: burst at once, the rest within window_ns, which may be 0. */
void udp_sender_flush(struct udp_sender *sender, uint64_t window_ns);
/* As exporter_ops.probe(). An empty datagram may be refused; if it is not, nothing more can be known. */
int udp_sender_probe(struct udp_sender *sender);
struct udp_sender *udp_sender_free(struct udp_sender *sender);

DEFINE_CLEANUP(struct udp_sender *, udp_sender_free);

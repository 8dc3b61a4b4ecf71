/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Lines over TCP to a receiver that never answers (Graphite's plaintext protocol), without losing
 * any. Sent lines are kept until it is certain that the receiver has read them, and are sent again
 * if the connection breaks before that. A line carries its own time, so a line that arrives twice
 * does no harm.
 *
 * TCP's acknowledgement says that the receiver's kernel has the bytes, not that the receiver read
 * them. The end of a connection says so: we shut down our side, the receiver reads to the end and
 * closes its own; if it closes with anything unread, the kernel answers with a reset. So the
 * connection is renewed when much was sent, when confirm_every_ns have passed, and at the end. If
 * the receiver closes by itself when everything is acknowledged, that confirms the same. (A proxy
 * may end its own side and then not read on, because its receiver is gone. That looks the same.)
 */

#include "export/exporter.h"
#include "export/transport/socket.h"

struct tcp_sender;

/*
 * exporter gives the name for the log, counts the points and outlives the sender; options are copied, and their
 * endpoint is not a unix socket. -ENOMEM. It is not an error if the receiver is not there.
 */
int tcp_sender_new(struct exporter *exporter, const struct sender_options *options, struct tcp_sender **ret_sender);
/*
 * Sends the exporter's queue, in which each request is whole lines. is_last: nothing more will be put there, so
 * everything is to be confirmed now. Everything waits until it is confirmed.
 */
void tcp_sender_flush(struct tcp_sender *sender, bool is_last);
/* As exporter_ops.probe(): connects. */
int tcp_sender_probe(struct tcp_sender *sender);
struct tcp_sender *tcp_sender_free(struct tcp_sender *sender);

DEFINE_CLEANUP(struct tcp_sender *, tcp_sender_free);

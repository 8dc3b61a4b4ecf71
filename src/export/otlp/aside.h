/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One request that the receiver does not take must not stop the others; for deltas. */

#include "export/otlp/internal.h"

/*
 * The receiver wants this request later; it is still being sent. True: otlp_aside_ask() is to be
 * next. It may be put aside: then it is said, and queue_aim() finds the next one.
 */
bool otlp_aside_put(struct otlp *otlp, struct queue_item *item);
/* It was put aside before, so it is known that the receiver works. */
bool otlp_aside_was_put(const struct queue_item *item);
/* Sends an empty request. -errno: it could not be sent. */
int otlp_aside_ask(struct otlp *otlp);
/* What was put aside a minute ago is tried again; at the end, all of it when nothing else waits. */
void otlp_aside_release(struct otlp *otlp);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Requests that a receiver refuses because of their size, or because of some of their points. */

#include "export/otlp/internal.h"

/*
 * The request that is being sent was refused. True: it is cut into parts, which are next, or it was
 * one point alone, which is tried again or dropped. False: that is not to be done.
 */
bool otlp_cut_refused(struct otlp *otlp, const struct http_answer *http,
		      const struct otlp_answer *answer);
/*
 * Cuts what has more points than the receiver takes. Before what waits is saved; of totals at any
 * time.
 */
void otlp_cut_waiting(struct otlp *otlp);
/* The request that is being sent was accepted, as a whole or in part. */
void otlp_cut_accepted(struct otlp *otlp, const struct queue_item *accepted);
/* The most points that a request may have, as set or as learned; 0: any number. */
uint64_t otlp_limit_points(struct otlp *otlp);

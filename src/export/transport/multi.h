/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * libcurl's multi interface on the event loop, with one transfer at a time, over a connection that
 * is kept. For http.c.
 */

#include "export/transport/timer.h"

/* A transfer has ended, with a CURLcode. Called from the loop; may begin another, or end all. */
typedef void multi_fn(void *user, int code);

struct multi {
	void *handle, *easy; /* a CURLM; the CURL of the transfer, NULL: none */
	struct timer timeout; /* for libcurl */
	multi_fn *ended;
	void *user;
};

/* event is borrowed, and outlives it. -ENOMEM. In either case, multi_done() ends it. */
int multi_init(struct multi *multi, struct sd_event *event, multi_fn *ended, void *user);
/* easy: a CURL, borrowed until the transfer has ended, or multi_stop(). -ENOMEM. */
int multi_begin(struct multi *multi, void *easy);
/* Gives the transfer up, if there is one, without a call. */
void multi_stop(struct multi *multi);
void multi_done(struct multi *multi);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How long to wait before another attempt: exponential with full jitter, so that many agents whose
 * receiver came back do not return at one moment; longer where the receiver says so. Pure: the random
 * number and the time are arguments.
 */

#include <stdint.h>

struct backoff {
	uint64_t initial_ns; /* the first delay is somewhere in [0, initial_ns] */
	uint64_t max_ns;     /* no delay of our own is longer */
	unsigned int n;	     /* attempts that failed in a row */
};

/* random: evenly spread over its type. retry_after_ns: at least this, 0 where nothing was asked for. */
uint64_t backoff_next(struct backoff *backoff, uint32_t random, uint64_t retry_after_ns);
void backoff_reset(struct backoff *backoff);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How long to wait before another attempt: exponential with full jitter, so that many agents do not
 * come back at the same moment; longer if the receiver asks for it. Pure: the random number is an
 * argument.
 */

#include <stdint.h>

struct backoff {
	uint64_t initial_ns; /* the first delay is somewhere in [0, initial_ns] */
	uint64_t max_ns;     /* a delay is longer only if the receiver asks for it */
	uint64_t limit_ns;   /* of the next delay; 0: initial_ns, as after a success */
};

/* random: evenly spread over its type. retry_after_ns: what the receiver asked for, or 0. */
uint64_t backoff_next(struct backoff *backoff, uint32_t random, uint64_t retry_after_ns);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How long to wait before another attempt: exponential with full jitter, so that many agents whose
 * receiver came back do not return at one moment; longer where the receiver says so. Pure: the random
 * number and the time are arguments.
 */

#include <stdbool.h>
#include <stdint.h>

#define RETRY_AFTER_MAX_NS (300 * UINT64_C(1000000000))

struct backoff {
	uint64_t initial_ns; /* the first delay is somewhere in [0, initial_ns] */
	uint64_t max_ns;     /* no delay of our own is longer */
	unsigned int n;	     /* attempts that failed in a row */
};

/* random: evenly spread over its type. retry_after_ns: at least this, 0 where nothing was asked for. */
uint64_t backoff_next(struct backoff *backoff, uint32_t random, uint64_t retry_after_ns);
void backoff_reset(struct backoff *backoff);
/*
 * The value of a Retry-After header (RFC 9110, 10.2.3), seconds or a date in any of HTTP's three forms,
 * as a delay from now_ns (Unix time), clamped to [0, RETRY_AFTER_MAX_NS]; of a past date, 0. -EINVAL.
 */
int retry_after_parse(const char *text, uint64_t now_ns, uint64_t *ret_delay_ns);

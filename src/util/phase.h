/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "util/hash.h"

/*
 * How long from now_ns, Unix time, until the next moment that id has in each interval. It is a
 * moment by the clock that all machines share, so those that start together push evenly over the
 * interval.
 */
static inline uint64_t phase_delay_ns(const char *id, uint64_t interval_ns, uint64_t now_ns)
{
	uint64_t phase_ns = hash_text(HASH_STABLE_START, id) % interval_ns;

	return (phase_ns + interval_ns - now_ns % interval_ns) % interval_ns ?: interval_ns;
}

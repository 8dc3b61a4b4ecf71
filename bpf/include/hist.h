/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * Exact histograms: the bucket of a value is that of OpenTelemetry's base-2 exponential histogram
 * at scale 0, computed in integers. So nothing is moved between buckets later (data model,
 * "Exponential Buckets": upper bounds inclusive).
 *
 * The agent knows a histogram by the name of its structure; its count is the sum of the buckets.
 * bucket[0] counts zeros. bucket[i], i >= 1, counts
 *     hist_value   values in (2^(i-2), 2^(i-1)]              1 -> [1], 2 -> [2], 3 and 4 -> [3]
 *     hist_time    times in (2^(i-31), 2^(i-30)] seconds     exactly 1 s -> [30], 1 s + 1 ns -> [31]
 * The last bucket also counts all larger values (above 2^46, or 36 hours).
 */

#include "label.h"

#define HIST_BUCKETS 48

struct hist_value {
	u64 sum;
	u32 bucket[HIST_BUCKETS];
};

struct hist_time {
	val_ns sum;
	u32 bucket[HIST_BUCKETS];
};

/* floor(log2(v)) for v > 0; clang's builtin for it does not work on BPF before LLVM 15. */
static __always_inline u32 hist_log2(u64 v)
{
	u32 shift, log = (v > 0xffffffffull) << 5;

	v >>= log;
	shift = (v > 0xffff) << 4, v >>= shift, log |= shift;
	shift = (v > 0xff) << 3, v >>= shift, log |= shift;
	shift = (v > 0xf) << 2, v >>= shift, log |= shift;
	shift = (v > 0x3) << 1, v >>= shift, log |= shift;
	return log | (u32)(v >> 1);
}

static __always_inline u32 hist_value_index(u64 v)
{
	u32 index = v < 2 ? (u32)v : 2 + hist_log2(v - 1);

	return index < HIST_BUCKETS ? index : HIST_BUCKETS - 1;
}

/* A power of two of nanoseconds is not one of seconds; a comparison with 2^(e-29) s decides the bucket. */
static __always_inline u32 hist_time_index(u64 ns)
{
	u32 log, index;
	u64 bound;

	if (!ns)
		return 0;
	log = hist_log2(ns);
	bound = log <= 29 ? NSEC_PER_SEC >> (29 - log) : NSEC_PER_SEC << (log - 29);
	index = log + 1 + (ns > bound);
	return index < HIST_BUCKETS ? index : HIST_BUCKETS - 1;
}

/* If one program writes. */
#define hist_value_add(hist, v)                                                                    \
	({                                                                                         \
		u64 value_ = (v);                                                                  \
		hist_add_(hist, value_, hist_value_index(value_));                                 \
	})
#define hist_time_add(hist, ns)                                                                    \
	({                                                                                         \
		u64 value_ = (ns);                                                                 \
		hist_add_(hist, value_, hist_time_index(value_));                                  \
	})
#define hist_add_(hist, v, index)                                                                  \
	({                                                                                         \
		u32 index_ = (index);                                                              \
		(hist)->sum += (v);                                                                \
		if (index_ < HIST_BUCKETS)                                                         \
			(hist)->bucket[index_]++;                                                  \
	})

/* If several programs write. */
#define hist_value_add_atomic(hist, v)                                                             \
	({                                                                                         \
		u64 value_ = (v);                                                                  \
		hist_add_atomic_(hist, value_, hist_value_index(value_));                          \
	})
#define hist_time_add_atomic(hist, ns)                                                             \
	({                                                                                         \
		u64 value_ = (ns);                                                                 \
		hist_add_atomic_(hist, value_, hist_time_index(value_));                           \
	})
#define hist_add_atomic_(hist, v, index)                                                           \
	({                                                                                         \
		u32 index_ = (index);                                                              \
		__sync_fetch_and_add(&(hist)->sum, (v));                                           \
		if (index_ < HIST_BUCKETS)                                                         \
			__sync_fetch_and_add(&(hist)->bucket[index_], 1);                          \
	})

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
 *     hist_time    times in (2^(i-31), 2^(i-30)] seconds     exactly 1 s -> [30], 1 s + 1 ns ->
 *                                                            [31]
 * The last bucket also counts all larger values (above 2^46, or 36 hours).
 *
 * A structure of your own, { u64 sum; u32 bucket[N]; }, has N - 1 bounds, which the descriptor
 * repeats. bucket[i] counts values above the bound before and not above bound i, the last bucket
 * all above:
 *     hist_linear_add(&h, v, 100, 50)      buckets = linear 100..500 step 50      N = 10
 *     hist_exp2_add(&h, v, 10)             buckets = exp2 10..20                  N = 12
 *     hist_fixed_add(&h, v, bounds, 3)     buckets = fixed 1 5 20                 N = 4
 * and the same with _atomic after "add", if several programs write. bounds: an array of u64, static
 * const.
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

/*
 * 1 if a < b, else 0, for numbers below 2^63; without a branch, which the verifier would follow
 * both ways.
 */
static __always_inline u64 hist_is_less(u64 a, u64 b)
{
	asm volatile("" : "+r"(a));
	return (a - b) >> 63;
}

/* floor(log2(v)) for v > 0; clang's builtin for it does not work on BPF before LLVM 15. */
static __always_inline u32 hist_log2(u64 v)
{
	u32 shift, log;

	log = hist_is_less(0xffffffff, v) << 5, v >>= log;
	shift = hist_is_less(0xffff, v) << 4, v >>= shift, log |= shift;
	shift = hist_is_less(0xff, v) << 3, v >>= shift, log |= shift;
	shift = hist_is_less(0xf, v) << 2, v >>= shift, log |= shift;
	shift = hist_is_less(0x3, v) << 1, v >>= shift, log |= shift;
	return log | (u32)(v >> 1);
}

/* 0 and 1 are their own buckets. */
static __always_inline u32 hist_value_index(u64 v)
{
	const u64 last = 1ull << (HIST_BUCKETS - 2);

	if (v < 2)
		return v;
	return 2 + hist_log2((v < last ? v : last) - 1);
}

/*
 * A power of two of nanoseconds is not one of seconds; a comparison with 2^(e-29) s decides the
 * bucket.
 */
static __always_inline u32 hist_time_index(u64 ns)
{
	const u64 last = NSEC_PER_SEC << 17; /* (HIST_BUCKETS - 1) is for more than half of it */
	u32 log;

	ns = ns < last ? ns : last;
	log = hist_log2(ns);
	return log + 1 + hist_is_less((NSEC_PER_SEC << 18) >> (47 - log), ns) - hist_is_less(ns, 1);
}

/* How many buckets a structure has. */
#define HIST_SIZE(hist) (sizeof((hist)->bucket) / sizeof((hist)->bucket[0]))

static __always_inline u32 hist_linear_index(u64 v, u64 first, u64 step, u32 last)
{
	u64 i = v > first ? (v - first - 1) / step + 1 : 0;

	return i < last ? i : last;
}

/* Bounds from 2^first on. */
static __always_inline u32 hist_exp2_index(u64 v, u32 first, u32 last)
{
	const u64 most = 1ull << 62;
	u32 i = v > 1ull << first ? hist_log2((v < most ? v : most) - 1) + 1 - first : 0;

	return i < last ? i : last;
}

static __always_inline u32 hist_fixed_index(u64 v, const u64 *bounds, u32 n)
{
	u32 i = 0;

	while (i < n && v > bounds[i])
		i++;
	return i;
}

#define hist_put_(add, hist, v, index)                                                             \
	({                                                                                         \
		u64 value_ = (v);                                                                  \
		add(hist, value_, index);                                                          \
	})
#define hist_linear_add(hist, v, first, step)                                                      \
	hist_put_(hist_add_, hist, v, hist_linear_index(value_, first, step, HIST_SIZE(hist) - 1))
#define hist_exp2_add(hist, v, first)                                                              \
	hist_put_(hist_add_, hist, v, hist_exp2_index(value_, first, HIST_SIZE(hist) - 1))
#define hist_fixed_add(hist, v, bounds, n)                                                         \
	hist_put_(hist_add_, hist, v, hist_fixed_index(value_, bounds, n))
#define hist_linear_add_atomic(hist, v, first, step)                                               \
	hist_put_(hist_add_atomic_, hist, v,                                                       \
		  hist_linear_index(value_, first, step, HIST_SIZE(hist) - 1))
#define hist_exp2_add_atomic(hist, v, first)                                                       \
	hist_put_(hist_add_atomic_, hist, v, hist_exp2_index(value_, first, HIST_SIZE(hist) - 1))
#define hist_fixed_add_atomic(hist, v, bounds, n)                                                  \
	hist_put_(hist_add_atomic_, hist, v, hist_fixed_index(value_, bounds, n))

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
#define hist_add_(hist, v, index)			\
	({						\
		u32 index_ = (index);			\
		asm volatile("" : "+r"(index_));		\
		(hist)->sum += (v);			\
		if (index_ < HIST_SIZE(hist))		\
			(hist)->bucket[index_]++;	\
	})

/* In a value of TABLE_PERCPU (table.h). */
#define hist_time_count(hist, ns, is_own)                                                          \
	({                                                                                         \
		u64 value_ = (ns);                                                                 \
		u32 index__ = hist_time_index(value_);                                             \
		if (is_own)                                                                        \
			hist_add_(hist, value_, index__);                                          \
		else                                                                               \
			hist_add_atomic_(hist, value_, index__);                                   \
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
/* In a TABLE of struct hist_time (table.h). */
#define hist_time_add_to(NAME, key, ns)                                                            \
	do {                                                                                       \
		struct hist_time *found_ = NAME##_at(key);                                         \
                                                                                                   \
		if (found_)                                                                        \
			hist_time_add_atomic(found_, ns);                                          \
	} while (0)
#define hist_add_atomic_(hist, v, index)					\
	({									\
		u32 index_ = (index);						\
		asm volatile("" : "+r"(index_));					\
		__sync_fetch_and_add(&(hist)->sum, (v));			\
		if (index_ < HIST_SIZE(hist))					\
			__sync_fetch_and_add(&(hist)->bucket[index_], 1);	\
	})

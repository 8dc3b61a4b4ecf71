/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tables that count what BPF_PROG_TEST_RUN asks for: keys first, first + 1 … of n, each once. Between finding a
 * key's place and counting there, a program may take its time.
 */
#include "hist.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define KEYS_MAX 64
#define DELAY	 4096 /* some 100 us */

struct count_key {
	u64 number;
	u64 unused;
};

struct hot_value {
	u64 count;
	struct hist_value size;
	val_level level;
};

struct rare_value {
	u64 count;
};

TABLE_PERCPU(hot, struct count_key, struct hot_value, 1);
TABLE(rare, struct count_key, struct rare_value, 1);

static __always_inline void delay(void)
{
	for (u32 i = 0; i < DELAY; i++)
		bpf_ktime_get_ns();
}

static __always_inline void count_hot(u64 number, bool is_slow)
{
	struct count_key key = { .number = number };
	struct hot_value *value;
	bool is_own;

	value = hot_at(&key, &is_own);
	if (!value)
		return;
	if (is_slow)
		delay();
	table_count(&value->count, 1, is_own);
	if (is_own)
		hist_value_add(&value->size, number);
	else
		hist_value_add_atomic(&value->size, number);
	value->level = number;
}

static __always_inline void count_rare(u64 number, bool is_slow)
{
	struct count_key key = { .number = number };
	struct rare_value *value = rare_at(&key);

	if (value && is_slow)
		delay();
	if (value)
		table_add(&value->count, 1);
}

static __always_inline int count_each(struct bpf_raw_tracepoint_args *ctx, void (*count)(u64 number, bool is_slow))
{
	u64 first = ctx->args[0], n = ctx->args[1];

	for (u32 i = 0; i < KEYS_MAX && i < n; i++)
		count(first + i, false);
	return 0;
}

SEC("raw_tp/sys_enter")
int add_hot(struct bpf_raw_tracepoint_args *ctx)
{
	return count_each(ctx, count_hot);
}

SEC("raw_tp/sys_enter")
int add_hot_slowly(struct bpf_raw_tracepoint_args *ctx)
{
	count_hot(ctx->args[0], true);
	return 0;
}

SEC("raw_tp/sys_exit")
int add_rare(struct bpf_raw_tracepoint_args *ctx)
{
	return count_each(ctx, count_rare);
}

SEC("raw_tp/sys_exit")
int add_rare_slowly(struct bpf_raw_tracepoint_args *ctx)
{
	count_rare(ctx->args[0], true);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Hooks of which the verifier refuses some programs, for test-load.c. */
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Refused with a log of tens of kilobytes, which the next refusal must not drown in. */
static __always_inline int wrong(u64 *ctx)
{
	u64 sum = ctx[0];

#pragma unroll
	for (u32 i = 0; i < 512; i++)
		sum = sum * 3 + (sum >> 7 ^ i);
	return *(volatile int *)sum;
}

/* The best alternative is refused: the next takes its place. */
SEC("tp_btf/sys_enter")
int enter__first(u64 *ctx)
{
	return wrong(ctx);
}

SEC("raw_tp/sys_enter")
int enter__second(u64 *ctx)
{
	return wrong(ctx);
}

SEC("tp_btf/sys_enter")
int enter__third(u64 *ctx)
{
	return wrong(ctx);
}

SEC("raw_tp/sys_enter")
int enter__fourth(u64 *ctx)
{
	return 0;
}

/* A hook with nothing that fits. */
SEC("tp_btf/sys_exit")
int leave(u64 *ctx)
{
	return wrong(ctx);
}

/* A tracepoint that no kernel has. */
SEC("raw_tp/no_such_tracepoint")
int nowhere(u64 *ctx)
{
	return 0;
}

/* The first alternative loses a part, so the second takes its place. */
SEC("tp_btf/sched_switch")
int pair__raw__on(u64 *ctx)
{
	return 0;
}

SEC("raw_tp/no_such_tracepoint")
int pair__raw(u64 *ctx)
{
	return 0;
}

SEC("raw_tracepoint/sched_switch")
int pair__other(u64 *ctx)
{
	return 0;
}

SEC("raw_tp/sched_switch")
int sound(u64 *ctx)
{
	return 0;
}

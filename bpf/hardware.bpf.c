/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the processor counts, by owner. A counter of each CPU runs on, whatever the CPU does. Each
 * time it has counted as many events as the period of hardware.conf, the program runs, and all of
 * them count for the task that is running then.
 */
#include "owner.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The beginning is the registers, whose size depends on the machine. */
struct bpf_perf_event_data {
	u64 sample_period;
} __attribute__((preserve_access_index));

struct hardware_value {
	u64 cycles;
	u64 instructions;
	u64 cache_references;
	u64 cache_misses;
	u64 branch_misses;
};

TABLE(hardware, struct owner, struct hardware_value, 1);

#define EVENT(name)                                                                                \
	SEC("perf_event")                                                                          \
	int name(struct bpf_perf_event_data *ctx)                                                  \
	{                                                                                          \
		struct owner owner;                                                                \
                                                                                                   \
		owner_of_task_seldom(&owner, bpf_get_current_task_btf());                          \
		table_add_to(hardware, &owner, name, ctx->sample_period);                          \
		return 0;                                                                          \
	}

EVENT(cycles)
EVENT(instructions)
EVENT(cache_references)
EVENT(cache_misses)
EVENT(branch_misses)

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Handlers of interrupts, and the work that they leave for just after them. On one CPU neither
 * interrupts its own kind, so a CPU needs to keep only the start of one of each. Nothing preempts
 * either.
 */
#include "hist.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile bool softirq_on = false;
const volatile bool hardirq_on = false;

struct irq_start {
	u64 softirq_ns; /* 0: none was seen to start */
	u64 hardirq_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct irq_start);
} irq_starts SEC(".maps");

static __always_inline struct irq_start *irq_start(void)
{
	u32 only = 0;

	return bpf_map_lookup_elem(&irq_starts, &only);
}

/* ------ softirqs ------ */

/* The names of /proc/softirqs. */
enum softirq_vector {
	SOFTIRQ_HI,
	SOFTIRQ_TIMER,
	SOFTIRQ_NET_TX,
	SOFTIRQ_NET_RX,
	SOFTIRQ_BLOCK,
	SOFTIRQ_IRQ_POLL,
	SOFTIRQ_TASKLET,
	SOFTIRQ_SCHED,
	SOFTIRQ_HRTIMER,
	SOFTIRQ_RCU
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SOFTIRQ_RCU + 1);
	__type(key, enum softirq_vector);
	__type(value, struct hist_time);
} softirqs SEC(".maps");

SEC("tp_btf/softirq_entry")
int softirq_entry(void *ctx)
{
	struct irq_start *start = irq_start();

	if (start)
		start->softirq_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(softirq_exit, enum softirq_vector vector)
{
	struct hist_time *times = bpf_map_lookup_elem(&softirqs, &vector);
	struct irq_start *start = irq_start();

	if (!times || !start || !start->softirq_ns)
		return 0;
	hist_time_add(times, bpf_ktime_get_ns() - start->softirq_ns);
	start->softirq_ns = 0;
	return 0;
}

/* ------ interrupts of devices ------ */

#define IRQ_NAME_BYTES 40

struct irqaction {
	const char *name;
} __attribute__((preserve_access_index));

struct irq_key {
	u32 number;
	u32 unused;
	char name[IRQ_NAME_BYTES];
};

/* An interrupt runs on one CPU at a time, so CPUs rarely write to the same place. */
TABLE(hardirqs, struct irq_key, struct hist_time, 1);

SEC("tp_btf/irq_handler_entry")
int irq_handler_entry(void *ctx)
{
	struct irq_start *start = irq_start();

	if (start)
		start->hardirq_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(irq_handler_exit, int number, struct irqaction *action)
{
	u64 end_ns = bpf_ktime_get_ns();
	struct irq_key key = { .number = number };
	struct irq_start *start = irq_start();

	if (!start || !start->hardirq_ns)
		return 0;
	bpf_probe_read_kernel_str(key.name, sizeof(key.name), action->name);
	hist_time_add_to(hardirqs, &key, end_ns - start->hardirq_ns);
	start->hardirq_ns = 0;
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program that the kernel skips on purpose: it runs at a page fault in the kernel, and every fourth time it causes
 * one itself. The kernel does not run a program inside itself, so it misses that event.
 */
#include "label.h"

/*
 * The compiler is told, so that two tests do not count each other's: CALL, a number that no system call has;
 * NOWHERE and NOWHERE_ELSE, addresses where no process has memory.
 */

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct no_key {
	u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, struct no_key);
	__type(value, u64);
} faults SEC(".maps");

u64 nothing;

static __always_inline void fault(unsigned long address)
{
	bpf_probe_read_user(&nothing, sizeof(nothing), (void *)address);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(call, void *registers, long number)
{
	if (number == CALL)
		fault(NOWHERE);
	return 0;
}

SEC("tp_btf/page_fault_kernel")
int BPF_PROG(page_fault, unsigned long address)
{
	struct no_key key = {};
	u64 *count = bpf_map_lookup_elem(&faults, &key);

	if (count && address == NOWHERE && ++*count % 4 == 0)
		fault(NOWHERE_ELSE);
	return 0;
}

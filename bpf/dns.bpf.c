/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long programs wait for the C library to look up a name.
 */
#include "owner.h"
#include "hist.h"
#include "table.h"
#include "dns/calls.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct lookup_key {
	struct owner owner;
	enum dns_error error;
	u32 unused;
};

TABLE(lookups, struct lookup_key, struct hist_time, 3);

STORAGE(lookups_begun, TASK, 0, u64);

static __always_inline int lookup_begin(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 *began_ns = bpf_task_storage_get(&lookups_begun, task, NULL,
					     BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (began_ns)
		*began_ns = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int lookup_end(enum dns_error error)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 *began_ns = bpf_task_storage_get(&lookups_begun, task, NULL, 0), ns;
	struct lookup_key key = {};

	if (!began_ns || !*began_ns)
		return 0;
	ns = bpf_ktime_get_ns() - *began_ns;
	*began_ns = 0;
	owner_of_task_seldom(&key.owner, task);
	key.error = error;
	hist_time_add_to(lookups, &key, ns);
	return 0;
}

LOOKUPS

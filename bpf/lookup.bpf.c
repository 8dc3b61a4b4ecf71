/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names that programs look up with the C library, one event for each lookup that has ended. */
#include "event.h"
#include "dns/calls.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define THREAD_NAME_BYTES 16
#define NAME_BYTES	  256 /* one that DNS knows has at most 253 */

struct lookup_event {
	val_boot_ns time;
	lbl_cgroup cgroup;
	val_ns duration;
	u32 pid;
	enum dns_error error;
	char thread_name[THREAD_NAME_BYTES];
	char name[NAME_BYTES];
};

EVENTS(lookups);
const struct lookup_event *lookup_event__unused; /* so that the compiler keeps the type */

const volatile prm_ns min_duration = 0;

struct lookup_start {
	u64 ns; /* 0: none has begun */
	u64 name;
};

STORAGE(lookups_begun, TASK, 0, struct lookup_start);

static __always_inline int lookup_begin(struct pt_regs *ctx)
{
	struct lookup_start *start = bpf_task_storage_get(&lookups_begun,
							  bpf_get_current_task_btf(), NULL,
							  BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (start) {
		start->name = function_argument_1(ctx);
		start->ns = bpf_ktime_get_ns();
	}
	return 0;
}

static __always_inline int lookup_end(enum dns_error error)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct lookup_start *start = bpf_task_storage_get(&lookups_begun, task, NULL, 0);
	struct lookup_event event = { .error = error };
	long bytes;

	if (!start || !start->ns)
		return 0;
	event.duration = bpf_ktime_get_ns() - start->ns;
	start->ns = 0;
	if (event.duration < min_duration ||
	    !event_is_admitted_of(lookups, bpf_get_current_cgroup_id()))
		return 0;
	event.time = bpf_ktime_get_boot_ns();
	event.cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
	event.pid = (u32)task->tgid;
	bpf_get_current_comm(event.thread_name, sizeof(event.thread_name));
	bytes = bpf_probe_read_user_str(event.name, sizeof(event.name), (void *)start->name);
	if (bytes < 0)
		bytes = 0;
	event_send(lookups, &event, __builtin_offsetof(struct lookup_event, name) + bytes);
	return 0;
}

LOOKUPS

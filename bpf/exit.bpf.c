/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Processes that end, one event for each. */
#include "event.h"
#include "function.h"

#include "process/end.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define NAME_BYTES  16
#define SIGNAL_CODE 128 /* as a shell shows the end by a signal */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct task_struct___exit {
	struct task_struct___exit *real_parent;
	int tgid;
};
#pragma clang attribute pop

struct exit_event {
	val_boot_ns time;
	lbl_cgroup cgroup;
	u32 pid;
	u32 parent;
	char name[NAME_BYTES];
	u32 code;
	lbl_signal signal;
	val_ns lifetime;
};

EVENTS(exits);
const struct exit_event *exit_event__unused; /* so that the compiler keeps the type */

static __always_inline int thread_end(struct task_struct *task)
{
	struct task_struct *leader = task->group_leader;
	struct exit_event event = { .pid = (u32)task->tgid };
	int status;

	if (!process_has_ended(task) ||
	    !event_is_admitted_of(exits, bpf_get_current_cgroup_id()))
		return 0;
	status = process_status(task);
	event.time = bpf_ktime_get_boot_ns();
	event.cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
	event.parent = (u32)BPF_CORE_READ((struct task_struct___exit *)leader, real_parent, tgid);
	bpf_probe_read_kernel_str(event.name, sizeof(event.name), leader->comm);
	event.signal = status & SIGNAL_MASK;
	event.code = event.signal ? SIGNAL_CODE + event.signal : status >> 8 & 0xff;
	event.lifetime = event.time - BPF_CORE_READ(leader, start_boottime);
	event_send(exits, &event, sizeof(event));
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(sched_process_exit__btf, struct task_struct *task)
{
	return thread_end(task);
}

AT_TRACEPOINT(sched_process_exit, sched_process_exit)
{
	return thread_end(bpf_get_current_task_btf());
}

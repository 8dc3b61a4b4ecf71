/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/* The collector slow: an event for each operation that takes at least slow_min_duration. */

#include "event.h"

#define FILE_NAME_BYTES	  256
#define THREAD_NAME_BYTES 16

const volatile prm_ns slow_min_duration = 10 * 1000 * 1000;

struct slow_event {
	val_boot_ns time;
	lbl_cgroup cgroup;
	u32 pid;
	enum fs_operation operation;
	char thread[THREAD_NAME_BYTES];
	char type[FILE_SYSTEM_NAME_BYTES];
	s64 offset;
	u64 bytes;
	val_ns duration;
	lbl_errno error;
	u32 unused;
	char name[FILE_NAME_BYTES];
};

EVENTS(slow_operations);
const struct slow_event *slow_event__unused; /* so that the compiler keeps the type */

/* result: what the function returned. */
static __always_inline void slow_report(const struct fs_start *start, enum fs_operation operation,
					u64 ns, s32 result)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct super_block *sb = start->sb;
	struct dentry *dentry = start->dentry;
	struct slow_event *event;

	if (ns < slow_min_duration ||
	    !event_is_admitted_of(slow_operations, bpf_get_current_cgroup_id()))
		return;
	event = event_reserve(slow_operations, sizeof(*event));
	if (!event)
		return;
	event->unused = 0;
	event->time = bpf_ktime_get_boot_ns();
	event->cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
	event->pid = (u32)task->tgid;
	event->operation = operation;
	event->offset = start->offset;
	event->duration = ns;
	event->error = result < 0 ? -result : 0;
	event->bytes = result > 0 ? result : 0;
	bpf_get_current_comm(event->thread, sizeof(event->thread));
	bpf_probe_read_kernel_str(event->type, sizeof(event->type),
				  BPF_CORE_READ(sb, s_type, name));
	if (bpf_probe_read_kernel_str(event->name, sizeof(event->name),
				      BPF_CORE_READ(dentry, d_name.name)) < 0)
		event->name[0] = '\0';
	bpf_ringbuf_submit(event, 0);
}

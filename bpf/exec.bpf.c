/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs that are executed, one event for each. The arguments are read where the new program
 * finds them.
 */
#include "event.h"
#include "function.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define PATH_BYTES     256
#define ARGUMENT_BYTES 4096

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct mm_struct___exec {
	unsigned long arg_start, arg_end;
};

struct task_struct___exec {
	struct task_struct___exec *real_parent;
	struct mm_struct___exec *mm;
	int tgid;
};

struct linux_binprm {
	const char *filename;
};
#pragma clang attribute pop

struct exec_event {
	val_boot_ns time;
	lbl_cgroup cgroup;
	u32 pid;
	u32 parent;
	char path[PATH_BYTES];
	lbl_words arguments[ARGUMENT_BYTES];
};

EVENTS(execs);
const struct exec_event *exec_event__unused; /* so that the compiler keeps the type */

/* Too large for the stack. A program is not run while it runs on the same CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct exec_event);
} exec_room SEC(".maps");

static __always_inline int exec_report(struct task_struct *task, struct linux_binprm *program)
{
	struct task_struct___exec *mine = (struct task_struct___exec *)task;
	unsigned long start = BPF_CORE_READ(mine, mm, arg_start);
	unsigned long bytes = BPF_CORE_READ(mine, mm, arg_end) - start;
	struct exec_event *event;
	u32 zero = 0;

	if (!event_is_admitted_of(execs, bpf_get_current_cgroup_id()))
		return 0;
	event = bpf_map_lookup_elem(&exec_room, &zero);
	if (!event)
		return 0;
	event->time = bpf_ktime_get_boot_ns();
	event->cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
	event->pid = (u32)task->tgid;
	event->parent = (u32)BPF_CORE_READ(mine, real_parent, tgid);
	if (bpf_probe_read_kernel_str(event->path, sizeof(event->path),
				      BPF_CORE_READ(program, filename)) < 0)
		event->path[0] = '\0';
	if (bytes > ARGUMENT_BYTES - 1)
		bytes = ARGUMENT_BYTES - 1;
	if (bpf_probe_read_user(event->arguments, bytes, (void *)start))
		bytes = 0;
	event_send(execs, event, __builtin_offsetof(struct exec_event, arguments) + bytes);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(sched_process_exec__btf, struct task_struct *task, int old,
	     struct linux_binprm *program)
{
	return exec_report(task, program);
}

AT_TRACEPOINT(sched_process_exec, sched_process_exec)
{
	return exec_report(bpf_get_current_task_btf(), (void *)function_argument_4(ctx));
}

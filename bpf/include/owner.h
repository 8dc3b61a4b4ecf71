/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * The owner of a number: always the cgroup, and with per_process = yes also the process. Make this
 * the first member of each key whose numbers have an owner.
 */

#include "label.h"

struct owner {
	lbl_cgroup cgroup;
	lbl_process process; /* 0: not asked for */
};

/*
 * An object of several collectors has a setting for each of them, NAME_per_process. It defines
 * OWNER_PER_PROCESS before it includes this header: true if one of them wants processes. Then each
 * collector takes its own view of the owner with owner_for().
 */
#ifndef OWNER_PER_PROCESS
const volatile bool per_process = false;
#define OWNER_PER_PROCESS per_process
#endif

#define PROCESS_NAME_BYTES 256 /* a file's name has at most 255 */

struct process_name {
	u64 image; /* the address space that the name was read from; exec makes a new one */
	char name[PROCESS_NAME_BYTES];
};

/*
 * With per_process, the agent makes this map large. The oldest entries are evicted first: their
 * series exist already.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 64);
	__type(key, lbl_process);
	__type(value, struct process_name);
} process_names SEC(".maps");

static const struct process_name no_name;

static __noinline int process_remember(struct task_struct *task, u64 id)
{
	struct process_name *known;
	const unsigned char *name;
	u64 image;

	image = (u64)BPF_CORE_READ(task, mm);
	known = bpf_map_lookup_elem(&process_names, &id);
	if (known && (known->image == image || !image))
		return 0;
	/* There is no room for a name on the stack of every program. */
	if (!known && bpf_map_update_elem(&process_names, &id, &no_name, BPF_ANY))
		return 0;
	known = known ?: bpf_map_lookup_elem(&process_names, &id);
	if (!known)
		return 0;
	known->image = image;
	name = BPF_CORE_READ(task, mm, exe_file, f_path.dentry, d_name.name);
	if (!image || !name ||
	    bpf_probe_read_kernel_str(known->name, sizeof(known->name), name) < 2)
		bpf_probe_read_kernel_str(known->name, 16, task->comm);
	return 0;
}

static __always_inline void owner_set(struct owner *owner, struct task_struct *task, u64 cgroup,
				      bool is_per_process)
{
	owner->cgroup = cgroup;
	owner->process = 0;
	if (is_per_process) {
		owner->process = process_id(task);
		process_remember(task, owner->process);
	}
}

/* The owner as a collector sees it that wants processes, or does not. */
static __always_inline struct owner owner_for(const struct owner *owner, bool is_per_process)
{
	return (struct owner){ owner->cgroup, is_per_process ? owner->process : 0 };
}

/* task is a BTF pointer: an argument of a tp_btf program or bpf_get_current_task_btf(). */
static __always_inline void owner_of_task(struct owner *owner, struct task_struct *task)
{
	owner_set(owner, task, task->cgroups->dfl_cgrp->kn->id, OWNER_PER_PROCESS);
}

/*
 * Like owner_of_task(), for programs that seldom run: each run takes some 50 ns more, but the start
 * takes milliseconds less. For each plain load from one trusted pointer to the next, the verifier
 * (6.2 and later) searches all types of the kernel up to four times, on every path that leads
 * there.
 */
static __always_inline void owner_of_task_seldom(struct owner *owner, struct task_struct *task)
{
	owner_set(owner, task, BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id), OWNER_PER_PROCESS);
}

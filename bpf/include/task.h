/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/* Walks over all tasks: SEC("iter/task") programs, which see every task at each collection. */

#include "kernel.h"

#ifndef __VMLINUX_H__
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct bpf_iter_meta {
	u64 seq_num;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task; /* NULL in the last call of a walk */
};
#pragma clang attribute pop
#endif

/* PF_EXITING: set before a parent is notified of the end, and never cleared */
#define TASK_EXITING 0x4

/* True in the switch away from a task that will never run again; then all its sums are final. */
static __always_inline bool task_is_dead(struct task_struct *task)
{
	const u32 task_dead = 0x80; /* TASK_DEAD */

	if (bpf_core_field_exists(task->__state))
		return task->__state & task_dead;
	return ((struct task_struct___before_5_14 *)task)->state & task_dead;
}

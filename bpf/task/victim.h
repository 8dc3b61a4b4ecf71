/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/* What the tracepoint mark_victim says about a process that the OOM killer chose. */
#include "kernel.h"

/* What the kernel's own event of the tracepoint records. */
struct trace_event_raw_mark_victim {
	u32 uid;
} __attribute__((preserve_access_index));

/*
 * Is the tracepoint's argument the task? Since 6.9, and in later builds of some older kernels;
 * before that, its id.
 */
static __always_inline bool victim_is_task(void)
{
	/* The task and the user came in one change. */
	return bpf_core_field_exists(struct trace_event_raw_mark_victim, uid);
}

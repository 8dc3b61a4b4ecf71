/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a [probe] of the configuration runs. Each probe has an instance of this object, and a
 * descriptor that the agent writes: it says where which program attaches, and its settings say what
 * the programs do there. The verifier removes all else.
 */
#include "probe/count.h"
#include "probe/pair.h"
#include "uprobe.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static __always_inline int enter(struct pt_regs *regs, enum probe_place place)
{
	if (!is_paired)
		return probe_count(regs, place, NULL);
	pair_begin(regs, place);
	return 0;
}

static __always_inline int leave(struct pt_regs *regs, enum probe_place place)
{
	struct pair_thread *thread;
	u32 depth;

	if (!is_paired)
		return probe_count(regs, place, NULL);
	thread = pair_find(regs, place, &depth);
	if (!thread || depth >= PAIR_DEPTH)
		return 0;
	probe_count(regs, place, &thread->calls[depth]);
	pair_end(thread, depth);
	return 0;
}

#define PROGRAM(section, name, run)                                                                \
	SEC(section)                                                                               \
	int name(void *ctx)                                                                        \
	{                                                                                          \
		return run;                                                                        \
	}

PROGRAM("kprobe.multi", function__multi__enter, enter(ctx, PROBE_ENTER_KERNEL))
PROGRAM("kretprobe.multi", function__multi__leave, leave(ctx, PROBE_LEAVE_KERNEL))
PROGRAM("kprobe", function__kprobe__enter, enter(ctx, PROBE_ENTER_KERNEL))
PROGRAM("kretprobe", function__kprobe__leave, leave(ctx, PROBE_LEAVE_KERNEL))
PROGRAM("uprobe", user_enter, KEEP_STACK(ctx, enter(ctx, PROBE_ENTER_USER)))
PROGRAM("uretprobe", user_leave, KEEP_STACK(ctx, leave(ctx, PROBE_LEAVE_USER)))
PROGRAM("mark", user_mark, KEEP_STACK(ctx, probe_count(ctx, PROBE_MARK, NULL)))
PROGRAM("raw_tp", event__raw, probe_count(ctx, PROBE_RAW, NULL))
PROGRAM("tp", event__tp, probe_count(ctx, PROBE_EVENT, NULL))
PROGRAM("perf_event", sample, probe_count(ctx, PROBE_SAMPLE, NULL))

/* Beside those for a latency. */
PROGRAM("raw_tp", thread_end, pair_forget(bpf_get_current_pid_tgid()))
/* for when the kernel skips that one */
PROGRAM("raw_tp", thread_end_again, pair_forget(bpf_get_current_pid_tgid()))
PROGRAM("raw_tp", thread_exec, pair_exec(((struct bpf_raw_tracepoint_args *)ctx)->args[1]))

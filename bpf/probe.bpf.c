/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a [probe] of the configuration runs. Each probe has an instance of this object, and a descriptor that the
 * agent writes: it says where which program attaches, and its settings say what the programs do there. The verifier
 * removes all else.
 */
#include "probe/count.h"
#include "probe/pair.h"

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
	thread->depth = depth;
	return 0;
}

SEC("kprobe.multi")
int function__multi__enter(struct pt_regs *regs)
{
	return enter(regs, PROBE_ENTER_KERNEL);
}

SEC("kretprobe.multi")
int function__multi__leave(struct pt_regs *regs)
{
	return leave(regs, PROBE_LEAVE_KERNEL);
}

SEC("kprobe")
int function__kprobe__enter(struct pt_regs *regs)
{
	return enter(regs, PROBE_ENTER_KERNEL);
}

SEC("kretprobe")
int function__kprobe__leave(struct pt_regs *regs)
{
	return leave(regs, PROBE_LEAVE_KERNEL);
}

SEC("uprobe")
int user_enter(struct pt_regs *regs)
{
	return enter(regs, PROBE_ENTER_USER);
}

SEC("uretprobe")
int user_leave(struct pt_regs *regs)
{
	return leave(regs, PROBE_LEAVE_USER);
}

SEC("usdt")
int user_mark(struct pt_regs *regs)
{
	return probe_count(regs, PROBE_MARK, NULL);
}

SEC("raw_tp")
int event__raw(struct bpf_raw_tracepoint_args *ctx)
{
	return probe_count(ctx, PROBE_RAW, NULL);
}

SEC("tp")
int event__tp(void *ctx)
{
	return probe_count(ctx, PROBE_EVENT, NULL);
}

SEC("perf_event")
int sample(struct bpf_perf_event_data *ctx)
{
	return probe_count(ctx, PROBE_SAMPLE, NULL);
}

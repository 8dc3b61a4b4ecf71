/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * Joins the return of a function with the call. Each thread that is in a call has a stack of calls,
 * because a function may call itself, and an interrupt may call the function that it interrupts. A
 * thread keeps its empty stack for the next call, which is cheaper, until half of the room is in
 * use. So the other half is for threads in calls.
 *
 * Some calls never return (longjmp(), the end of the thread, exec), and the kernel may miss a
 * return. The stack pointer tells them: on one stack, what was called later and still runs lies
 * below. Where a thread ends or its program does, they are all over. They are dropped and counted.
 * So are returns without a call, such as those of threads that found no room for a stack.
 */

#include "count.h"
#include "preempt.h"

#define PAIR_DEPTH 8

/*
 * Two calls of one thread that are further apart are not on the same stack: that of an interrupt, a
 * coroutine …
 */
#define PAIR_KERNEL_STACK (16ull << 10)
#define PAIR_USER_STACK	  (8ull << 20)

#if defined(__TARGET_ARCH_x86)
#define PAIR_RETURN_BYTES 8 /* a return takes its address from the stack */
#else
#define PAIR_RETURN_BYTES 0
#endif

struct pair_thread {
	u32 depth;
	struct probe_call calls[PAIR_DEPTH];
};

const struct pair_thread pair_nothing SEC(".rodata.table");
const volatile u32 threads_entries = 1;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct pair_thread);
} threads SEC(".maps");

volatile u32 threads_known SEC(".data.table") = 0;

static __always_inline void pair_remove(u32 key)
{
	if (!bpf_map_delete_elem(&threads, &key))
		__sync_fetch_and_add(&threads_known, -1);
}

/* Idle threads of all CPUs have the number 0. */
static __always_inline u32 pair_key(void)
{
	u32 thread = bpf_get_current_pid_tgid();

	return thread ? thread : bpf_get_smp_processor_id() | 1u << 31;
}

static __always_inline void pair_begin(struct pt_regs *regs, enum probe_place place)
{
	u64 stack = PT_REGS_SP(regs),
		room = place == PROBE_ENTER_KERNEL ? PAIR_KERNEL_STACK : PAIR_USER_STACK;
	u32 key = pair_key(), depth, n_lost = 0;
	struct pair_thread *thread = bpf_map_lookup_elem(&threads, &key);
	struct probe_call *call;

	if (!thread) {
		if (!bpf_map_update_elem(&threads, &key, &pair_nothing, BPF_NOEXIST))
			__sync_fetch_and_add(&threads_known, 1);
		thread = bpf_map_lookup_elem(&threads, &key);
		if (!thread) /* its return will count as lost */
			return;
	}
	depth = thread->depth;
#pragma unroll
	for (u32 i = 0; i < PAIR_DEPTH; i++)
		if (i < depth && stack - thread->calls[i].stack < room) {
			n_lost += depth - i;
			depth = i;
		}
	probe_lose(n_lost);
	/* First, so that an interrupt takes the next one. */
	*(volatile u32 *)&thread->depth = depth + 1;
	if (depth >= PAIR_DEPTH)
		return;
	call = &thread->calls[depth];
	call->stack = stack;
	probe_look(regs, place, call);
	call->start_ns = bpf_ktime_get_ns();
}

/*
 * The thread whose call ends, and the call's place, which the caller gives to pair_end(). NULL: it
 * is not known.
 */
static __always_inline struct pair_thread *pair_find(struct pt_regs *regs, enum probe_place place,
						     u32 *ret_depth)
{
	u64 stack = PT_REGS_SP(regs) - PAIR_RETURN_BYTES;
	u32 key = pair_key(), depth, found = PAIR_DEPTH;
	struct pair_thread *thread = bpf_map_lookup_elem(&threads, &key);

	if (!thread) {
		probe_lose(1);
		return NULL;
	}
	depth = thread->depth;
#pragma unroll
	for (u32 i = 0; i < PAIR_DEPTH; i++)
		if (i < depth && thread->calls[i].stack == stack)
			found = i;
	/*
	 * Where the kernel has no stack pointer for us (kretprobe.multi since 6.14), it also misses
	 * no return.
	 */
	if (found == PAIR_DEPTH && place == PROBE_LEAVE_KERNEL && depth)
		found = depth - 1;
	if (found < PAIR_DEPTH) {
		probe_lose(depth - 1 - found);
		*ret_depth = found;
		return thread;
	}
	probe_lose(1);
	if (depth > PAIR_DEPTH)
		thread->depth = depth - 1;
	return NULL;
}

static __always_inline void pair_end(struct pair_thread *thread, u32 depth)
{
	thread->depth = depth;
	if (!depth && threads_known > threads_entries / 2)
		pair_remove(pair_key());
}

/* None of its calls will return. */
static __always_inline int pair_forget(u32 key)
{
	struct pair_thread *thread = bpf_map_lookup_elem(&threads, &key);

	if (thread) {
		probe_lose(thread->depth);
		pair_remove(key);
	}
	return 0;
}

/*
 * A new program begins. If its first thread is another than that of the old one, it takes over that
 * one's number.
 */
static __always_inline int pair_exec(u32 before)
{
	struct pair_thread *thread = bpf_map_lookup_elem(&threads, &before);
	u32 now = pair_key();

	if (!thread || (s64)thread->calls[0].stack >= 0)
		return pair_forget(before);
	/* Functions of the kernel go on. */
	if (before != now && !bpf_map_update_elem(&threads, &now, thread, BPF_NOEXIST)) {
		__sync_fetch_and_add(&threads_known, 1);
		pair_remove(before);
	}
	return 0;
}

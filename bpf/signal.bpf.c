/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Signals that are sent, one event for each. The kernel sends them with a lock held and interrupts
 * off, so it never preempts the program.
 */
#include "event.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define NAME_BYTES    16
#define KERNEL_THREAD 0x00200000 /* PF_KTHREAD */
#define BIT(signal)   (1ull << (signal))

/* What stands for the information in place of its address. */
#define OF_CALLER 0 /* SEND_SIG_NOINFO */
#define OF_KERNEL 1 /* SEND_SIG_PRIV */

/* si_code: up to 0, a process sent it, unless it is one of these. */
#define CODE_KERNEL   0x80
#define CODE_TIMER    -2
#define CODE_ASYNC_IO -4
#define CODE_IO	      -5

#define SIGNAL_URGENT	23 /* SIGURG */
#define SIGNAL_REALTIME 32 /* the first; the kernel sends these only if a program chose them */
/* SIGALRM, SIGCHLD, SIGURG, SIGVTALRM, SIGPROF, SIGWINCH, SIGIO */
#define EVERYDAY (BIT(14) | BIT(17) | BIT(SIGNAL_URGENT) | BIT(26) | BIT(27) | BIT(28) | BIT(29))

struct kernel_siginfo {
	int si_code;
} __attribute__((preserve_access_index));

/* As the tracepoint has it. */
enum signal_result {
	SIGNAL_RESULT_DELIVERED,
	SIGNAL_RESULT_IGNORED,
	SIGNAL_RESULT_ALREADY_PENDING,
	SIGNAL_RESULT_QUEUE_FULL,
	SIGNAL_RESULT_WITHOUT_INFORMATION,
};

struct signal_event {
	val_boot_ns time;
	lbl_cgroup cgroup;
	lbl_cgroup_path target_cgroup;
	lbl_tgid pid; /* 0: the kernel */
	char name[NAME_BYTES];
	lbl_signal signal;
	u32 target;
	char target_name[NAME_BYTES];
	enum signal_result result;
};

EVENTS(signals);
const struct signal_event *signal_event__unused; /* so that the compiler keeps the type */

const volatile bool everyday = false;
const volatile u32 signal = 0;

static __always_inline int signal_code(u64 information)
{
	if (information == OF_CALLER)
		return 0;
	if (information == OF_KERNEL)
		return CODE_KERNEL;
	return BPF_CORE_READ((struct kernel_siginfo *)information, si_code);
}

static __always_inline bool is_of_process(struct task_struct *sender, int code)
{
	return code <= 0 && code != CODE_TIMER && code != CODE_ASYNC_IO && code != CODE_IO &&
	       !(sender->flags & KERNEL_THREAD);
}

/* The kernel's: timers, children, I/O. A process's: how Go's runtime interrupts its threads. */
static __always_inline bool is_everyday(u32 number, int code, struct task_struct *sender,
					struct task_struct *target)
{
	if (sender)
		return number == SIGNAL_URGENT && sender->tgid == target->tgid;
	return code < 0 || number >= SIGNAL_REALTIME || BIT(number) & EVERYDAY;
}

static __always_inline int signal_report(u32 number, u64 information, struct task_struct *target,
					 u32 result)
{
	struct task_struct *sender = bpf_get_current_task_btf();
	struct signal_event event = { .signal = number, .result = result };
	int code = signal_code(information);

	if (!is_of_process(sender, code))
		sender = NULL;
	if ((signal && number != signal) ||
	    (!everyday && is_everyday(number, code, sender, target)))
		return 0;
	event.target_cgroup = event.cgroup = BPF_CORE_READ(target, cgroups, dfl_cgrp, kn, id);
	if (sender)
		event.cgroup = bpf_get_current_cgroup_id();
	if (!event_is_admitted_of(signals, event.cgroup))
		return 0;
	event.time = bpf_ktime_get_boot_ns();
	event.target = (u32)target->tgid;
	bpf_probe_read_kernel_str(event.target_name, sizeof(event.target_name), target->comm);
	if (sender) {
		event.pid = (u32)sender->tgid;
		bpf_get_current_comm(event.name, sizeof(event.name));
	}
	event_send(signals, &event, sizeof(event));
	return 0;
}

SEC("tp_btf/signal_generate")
int signal_generate(u64 *ctx)
{
	u64 information = OF_CALLER;

	/* A plain load would make it an address that must not be compared with numbers. */
	bpf_probe_read_kernel(&information, sizeof(information), &ctx[1]);
	return signal_report((u32)ctx[0], information, (struct task_struct *)ctx[2], (u32)ctx[4]);
}

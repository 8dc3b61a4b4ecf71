/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files that are opened, one event for each call. It is made where the calls return: the result is
 * known, and the path, which the call has read, is in memory.
 */
#include "event.h"
#include "syscall.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define NAME_BYTES 16
#define PATH_BYTES 4096
#define FLAG_PATH  010000000 /* O_PATH */
#define FLAGS_MODE 3	     /* O_ACCMODE */
#define FLAGS_CREAT 01101    /* O_CREAT, O_WRONLY and O_TRUNC: what creat() means */

/* The kernel adds O_LARGEFILE to the flags of most calls; it means nothing there. */
#if defined(__TARGET_ARCH_x86)
#define FLAG_LARGE 0100000
enum { CALL_OPEN = 2, CALL_CREAT = 85, CALL_OPENAT = 257, COMPAT_OPENAT = 295 };
#else
#define FLAG_LARGE 0400000
/* the first two: none */
enum { CALL_OPEN = -2, CALL_CREAT = -3, CALL_OPENAT = 56, COMPAT_OPENAT = 322 };
#endif
enum { CALL_OPENAT2 = 437, COMPAT_OPEN = 5, COMPAT_CREAT = 8 };

struct open_how {
	u64 flags;
} __attribute__((preserve_access_index));

/* In the order of the access modes in the flags; the last is that of O_PATH. */
enum open_access { OPEN_READ, OPEN_WRITE, OPEN_READ_WRITE, OPEN_IOCTL, OPEN_PATH };

struct open_event {
	val_boot_ns time;
	lbl_cgroup cgroup;
	u32 pid;
	char name[NAME_BYTES];
	enum open_access access;
	u32 flags;
	s32 descriptor; /* -1: it failed */
	lbl_errno error;
	char path[PATH_BYTES];
};

EVENTS(opens);
const struct open_event *open_event__unused; /* so that the compiler keeps the type */

const volatile bool only_failed = false;

/* Too large for the stack. A program is not run while it runs on the same CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct open_event);
} open_room SEC(".maps");

static __always_inline int open_report(u64 path, u64 flags, long result)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct open_event *event;
	u32 zero = 0;
	long bytes;

	if ((only_failed && result >= 0) ||
	    !event_is_admitted_of(opens, bpf_get_current_cgroup_id()))
		return 0;
	event = bpf_map_lookup_elem(&open_room, &zero);
	if (!event)
		return 0;
	event->time = bpf_ktime_get_boot_ns();
	event->cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
	event->pid = (u32)task->tgid;
	bpf_get_current_comm(event->name, sizeof(event->name));
	event->flags = (u32)flags & ~FLAG_LARGE;
	event->access = flags & FLAG_PATH ? OPEN_PATH : flags & FLAGS_MODE;
	event->descriptor = result < 0 ? -1 : (s32)result;
	event->error = syscall_restarts(result) ? SYSCALL_EINTR : syscall_error(result);
	bytes = bpf_probe_read_user_str(event->path, sizeof(event->path), (void *)path);
	if (bytes < 0)
		bytes = 0;
	event_send(opens, event, __builtin_offsetof(struct open_event, path) + bytes);
	return 0;
}

/* The function that all of these calls share. */
static __always_inline int open_end(u64 path, u64 how, u64 result)
{
	/* Depending on the kernel it returns a long or an int, whose upper half is anything. */
	return open_report(path, BPF_CORE_READ((struct open_how *)how, flags), (s32)result);
}

SEC("fexit/do_sys_openat2")
int open__fexit(u64 *ctx)
{
	return open_end(ctx[1], ctx[2], ctx[3]);
}

/* For arm64 before 6.4, which has no fexit. */
struct open_call {
	u64 path;
	u64 how;
};

STORAGE(open_calls, TASK, 0, struct open_call);

SEC("kprobe/do_sys_openat2")
int open__kprobe__begin(struct pt_regs *ctx)
{
	struct open_call *call = bpf_task_storage_get(&open_calls, bpf_get_current_task_btf(), NULL,
						      BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (call) {
		call->path = function_argument_2(ctx);
		call->how = function_argument_3(ctx);
	}
	return 0;
}

SEC("kretprobe/do_sys_openat2")
int open__kprobe__end(struct pt_regs *ctx)
{
	struct open_call *call =
		bpf_task_storage_get(&open_calls, bpf_get_current_task_btf(), NULL, 0);
	u64 how = call ? call->how : 0;

	if (!how)
		return 0;
	call->how = 0;
	return open_end(call->path, how, function_result(ctx));
}

/*
 * For kernels that let no program attach to functions. It runs at the end of every system call, so
 * it has a part whose section is tried last.
 */
static __always_inline int call_report(struct pt_regs *regs, long result)
{
	bool compat = syscall_is_compat(bpf_get_current_task_btf());
	s32 call = syscall_raw_number(regs);
	u64 first = syscall_argument_0(regs, compat), second = syscall_argument_1(regs, compat);
	u64 flags = syscall_argument_2(regs, compat);

	if (call == (compat ? COMPAT_OPENAT : CALL_OPENAT))
		return open_report(second, flags, result);
	if (call == CALL_OPENAT2) {
		if (bpf_probe_read_user(&flags, sizeof(flags), (void *)flags))
			flags = 0;
		return open_report(second, flags, result);
	}
	if (call == (compat ? COMPAT_OPEN : CALL_OPEN))
		return open_report(first, second, result);
	if (call == (compat ? COMPAT_CREAT : CALL_CREAT))
		return open_report(first, FLAGS_CREAT, result);
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(open__btf__call, struct pt_regs *regs, long result)
{
	return call_report(regs, result);
}

SEC("iter/bpf_map")
int open__btf__last(void *ctx)
{
	return 0;
}

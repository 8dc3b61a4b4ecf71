/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names with "__" that do not mean alternatives, and some that do, for test-program.c and test-load.c. */
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define PROGRAM(section, name) \
	SEC(section)           \
	int name(void *ctx)    \
	{                      \
		return 0;      \
	}

/* Two tracepoints. */
PROGRAM("tp_btf/sched_process_fork", task__fork)
PROGRAM("raw_tp/sched_process_exit", task__exit)

/* Called after a type of section, as ebpf_exporter does. */
PROGRAM("raw_tp/sched_switch", raw_tp__first)
PROGRAM("raw_tp/sched_switch", raw_tp__second)

/* The beginning and the end of one function. */
PROGRAM("fentry/vfs_read", read__begin)
PROGRAM("fexit/vfs_read", read__end)

/* A function that is called like that. */
PROGRAM("fentry/vfs_write", __x64_sys_write)
PROGRAM("fentry/vfs_open", __x64_sys_open)

/* One tracepoint with two kinds of arguments, and a function that stands for a tracepoint. */
PROGRAM("tp_btf/mark_victim", victim__task)
PROGRAM("tp_btf/mark_victim", victim__pid)
PROGRAM("tp_btf/sock_send_length", send__btf)
PROGRAM("fexit/udp_sendmsg", send__fexit__ipv4)
PROGRAM("fexit/udpv6_sendmsg", send__fexit__ipv6)
PROGRAM("kprobe/udp_sendmsg", send__kprobe__ipv4)
PROGRAM("kprobe/udpv6_sendmsg", send__kprobe__ipv6)

/* One alternative of two sections: a function, and a program that keeps the tracepoint before it on. */
PROGRAM("tp_btf/sys_exit", exit__btf)
PROGRAM("tp_btf/sys_exit", exit__multi__on)
PROGRAM("kprobe.multi/trace_syscall_exit", exit__multi)
PROGRAM("tp/raw_syscalls/sys_exit", exit__tp)

/* Doubtful. */
PROGRAM("tp_btf/sched_wakeup", wake__up)
PROGRAM("fexit/wake_up_process", wake__process)
PROGRAM("tp_btf/cgroup_mkdir", made)
PROGRAM("kprobe/cgroup_mkdir", made__kprobe)

/* Iterators, over whatever they go. */
PROGRAM("iter/bpf_map_elem", visit__elements)
PROGRAM("iter/task", visit__tasks)

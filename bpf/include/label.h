/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * Types with a meaning. The typedef of a key's member tells the agent how the number becomes an
 * attribute; the typedef of a value's member tells it what the number is. BTF has the names of
 * typedefs, so a descriptor does not repeat any of this (see docs/writing-collectors.md).
 *
 * A label of 0 makes no attribute, except where its line says otherwise.
 */

#include "kernel.h"

/* key members */
/* kernfs id of a cgroup: systemd.unit.name, container.id or process.linux.cgroup */
typedef u64 lbl_cgroup;
typedef u64 lbl_cgroup_path; /* the same: always its path, "/system.slice/sshd.service" */
/* as lbl_cgroup; but other cgroups than the topmost of a unit make no series */
typedef u64 lbl_cgroup_top;
/* process_id() in owner.h: process.pid, process.creation.time, process.executable.name */
typedef u64 lbl_process;
typedef u32 lbl_tgid;	   /* process id alone */
typedef u32 lbl_syscall;   /* syscall_number() in syscall.h: the name of the call, 0 included */
typedef u32 lbl_errno;	   /* errno, positive or negative: "ENOENT" */
typedef u32 lbl_signal;	   /* "SIGTERM" */
typedef u32 lbl_dev;	   /* kernel dev_t (major << 20 | minor): the block device's name */
/* lbl_disk name[32]: what the kernel calls a disk, gendisk.disk_name; "" is none */
typedef u8 lbl_disk;
typedef u32 lbl_stat_dev;  /* a block device, numbered as in stat(2): makedev(major, minor) */
typedef u32 lbl_ifindex;   /* network interface index of the agent's network namespace: its name */
/* address in the kernel: the function's name; lbl_ksym frame[20]: a stack up to a 0 */
typedef u64 lbl_ksym;
typedef u32 lbl_ipv4;	   /* network byte order; 0 is 0.0.0.0 */
typedef struct {
	u8 byte[16];
} lbl_ipv6;		   /* network byte order; ::ffff:192.0.2.1 is 192.0.2.1 */
typedef u8 lbl_hex;	   /* lbl_hex id[8]: two hexadecimal digits for each byte, 0 included */
/* lbl_dname name[256]: a domain name as DNS sends it; all zero is the root, "." */
typedef u8 lbl_dname;
/* lbl_words argument[4096]: texts that each end in NUL; only of events */
typedef u8 lbl_words;
typedef u32 lbl_pci_vendor; /* names of the PCI ID database, 0 included */
typedef u32 lbl_pci_device; /* vendor << 16 | device */
typedef u32 lbl_pci_class;
typedef u32 lbl_pci_subclass; /* class << 8 | subclass */

/* value members */
typedef u64 val_ns;	   /* nanoseconds, shown as seconds: the metric's unit is s */
/* a gauge that an iterator counts again at each collection: it adds, and may subtract */
typedef s64 val_tally;
/* a gauge that programs set: the largest of the CPUs' values is shown, not their sum */
typedef u64 val_level;
/* of an event: when it happened, bpf_ktime_get_boot_ns(); its val_ns are durations */
typedef u64 val_boot_ns;

/* how long a span took, in nanoseconds; its val_boot_ns is when it began */
typedef u64 lbl_duration;
/* of a span, or of the trace of an event; in the order of memory; zeroes: not known */
typedef u8 lbl_trace_id[16];
typedef u8 lbl_span_id[8];
typedef u8 lbl_parent_span_id[8];

/* settings */
typedef struct {
	u64 word[8];
/* a set of system calls by number, word n / 64 bit n % 64: "read, openat", or "all" */
} prm_syscalls;
typedef u64 prm_ns; /* a duration, "10ms" */

/*
 * any char array in a key is text, up to its first NUL; any enum gives the names of its constants.
 * In an event, an empty text makes no attribute.
 */

/*
 * A lbl_process, a number that no other process has had since boot: the start time in units of 2^20
 * ns (about 1 ms), above 22 bits of process id (the kernel's PID_MAX_LIMIT is 2^22).
 */
static __always_inline u64 process_id(struct task_struct *task)
{
	return task->group_leader->start_boottime >> 20 << 22 | (u32)task->tgid;
}

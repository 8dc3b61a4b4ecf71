/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * The kernel's structures, with only the members that the collectors read. CO-RE finds the members
 * by name in the running kernel, so neither their order nor missing members matter. A type that
 * only one collector reads stays in that collector. So does a further member of a structure in this
 * header: declare "struct task_struct___mine" with it, and cast; CO-RE ignores everything from the
 * three underscores on.
 */

#ifndef __VMLINUX_H__
#include <linux/bpf.h>
#include <stdbool.h>
#endif

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

/* A vmlinux.h that is included before has all of this. */
#ifndef __VMLINUX_H__
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;

struct pt_regs; /* <linux/ptrace.h>, or function.h */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
	u64 id; /* = inode number of the cgroup's directory (64-bit, since 5.5) */
};

struct cgroup_root {
	int hierarchy_id; /* 0: v2 */
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
	struct cgroup_root *root;
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct qstr {
	const unsigned char *name;
};

struct super_block;
struct inode;

struct dentry {
	struct qstr d_name;
};

struct path {
	struct dentry *dentry;
};

struct file {
	struct path f_path;
	struct inode *f_inode;
};

struct mm_struct {
	struct file *exe_file;
};

struct sched_info {
	u64 run_delay;	 /* ns waited for a CPU so far */
	u64 last_queued; /* run queue's clock; 0: not waiting */
};

struct rq {
	u64 clock;
};

struct cfs_rq {
	struct rq *rq; /* FAIR_GROUP_SCHED */
};

struct sched_entity {
	u64 sum_exec_runtime;
	u64 nr_migrations;
	struct cfs_rq *cfs_rq; /* of the CPU the task is on, whatever its class; FAIR_GROUP_SCHED */
};

struct task_struct {
	unsigned int __state; /* 5.14 */
	unsigned int flags;
	int pid;  /* of the thread */
	int tgid; /* of the process */
	char comm[16];
	u64 start_boottime; /* ns since boot; 5.5 */
	u64 self_exec_id;   /* 5.7 */
	struct task_struct *group_leader;
	struct mm_struct *mm;
	struct css_set *cgroups;
	unsigned long nvcsw;
	unsigned long nivcsw;
	unsigned long min_flt;
	unsigned long maj_flt;
	struct sched_entity se;
	struct sched_info sched_info;
};

#pragma clang attribute pop
#endif

#define NSEC_PER_SEC 1000000000ull

/*
 * A value of each task or socket: STORAGE(starts, TASK, 0, u64) is for
 * bpf_task_storage_get(&starts, …).
 */
#define STORAGE(NAME, OF, FLAGS, VALUE)                                                            \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_##OF##_STORAGE);                                         \
		__uint(map_flags, BPF_F_NO_PREALLOC | (FLAGS));                                    \
		__type(key, int);                                                                  \
		__type(value, VALUE);                                                              \
	} NAME SEC(".maps")

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_struct___before_5_14 {
	long state;
};

#pragma clang attribute pop

/* Since 6.2: loads from an address as if it were a pointer to type, without a helper call. */
extern void *bpf_rdonly_cast(const void *address, u32 type) __ksym __weak;

#ifndef __VMLINUX_H__
enum special_kfunc_type {
	KF_bpf_rdonly_cast,
};
#endif

#define cast_to(type, address)                                                                     \
	((type *)bpf_rdonly_cast((const void *)(address), bpf_core_type_id_kernel(type)))

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * Files as programs use them: counts the system calls that read, write, open and flush regular
 * files when they return. The call's descriptor leads to the file, and the file's inode says
 * whether it is a regular one. Pipes, sockets, devices and directories are not, and the kernel's
 * virtual files (/proc, /sys, cgroup files) do not count either: see is_made_up(). What happens to
 * the file decides whether a call is a read or a write: sendfile() from a file to a socket is a
 * read, and copy_file_range() is both.
 *
 * mmap, io_uring, AIO and the kernel's own reads are not seen here, because they are not system
 * calls on a file. The bytes that really went to and from devices are the kernel's own sums in each
 * task.
 */
#include "file.h"
#include "call.h"
#include "file-calls.h"
#include "sums.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_io_accounting {
	u64 read_bytes;
	u64 write_bytes;
};

struct task_struct___file {
	struct files_struct *files;
	struct task_io_accounting ioac;
};

#pragma clang attribute pop

/* Successful calls, which are nearly all, take one key per owner. */
struct file_value {
	u64 read;
	u64 write;
	u64 open;
	u64 fsync;
	u64 read_bytes;
	u64 write_bytes;
};

struct failure_key {
	struct owner owner;
	enum file_operation operation;
	lbl_errno error;
};

struct failure_value {
	u64 count;
};

struct file_duration_key {
	struct owner owner;
	enum file_operation operation;
	u32 unused;
};

TABLE_PERCPU(files, struct owner, struct file_value, 1);
TABLE(failures, struct failure_key, struct failure_value, 4);
TABLE(file_durations, struct file_duration_key, struct hist_time, 4);
TABLE(disk, struct owner, struct disk_bytes, 1);

static __always_inline void disk_read(struct task_struct *task, struct disk_bytes *ret_bytes)
{
	ret_bytes->read_bytes = ((struct task_struct___file *)task)->ioac.read_bytes;
	ret_bytes->write_bytes = ((struct task_struct___file *)task)->ioac.write_bytes;
}

static __always_inline void disk_add(const struct owner *any, const struct disk_bytes *grown)
{
	struct owner owner = owner_for(any, fileio_per_process);

	sums_add_to(disk, &owner, grown);
}

/*
 * A descriptor's file is reached through an array of pointers, where plain loads are not allowed to
 * go on. A cast allows it at no cost; without it, each load needs a helper call. A program that
 * contains the cast is refused before 5.17, so there is another without it.
 */

/* thread_info stands for any type that begins with a word. */
static __always_inline bool is_regular_by_cast(struct file **at)
{
	unsigned long address = cast_to(struct thread_info, at)->flags;
	struct inode *inode = cast_to(struct file, address)->f_inode;

	return address && (inode->i_mode & MODE_TYPE) == MODE_REGULAR &&
	       !is_made_up(inode->i_sb->s_magic);
}

static __always_inline bool is_regular_by_helper(struct file **at)
{
	struct file *file;
	struct inode *inode;

	if (bpf_probe_read_kernel(&file, sizeof(file), at) || !file)
		return false;
	inode = BPF_CORE_READ(file, f_inode);
	return (BPF_CORE_READ(inode, i_mode) & MODE_TYPE) == MODE_REGULAR &&
	       !is_made_up(BPF_CORE_READ(inode, i_sb, s_magic));
}

/*
 * The verifier checks loads from an untrusted pointer without a search: see owner_of_task_seldom().
 */
static __always_inline struct task_struct *distrust(struct task_struct *task, bool has_cast)
{
	if (has_cast && bpf_core_enum_value_exists(enum special_kfunc_type, KF_bpf_rdonly_cast))
		return cast_to(struct task_struct, task);
	return task;
}

static __always_inline bool is_regular(struct task_struct *task, u32 fd, bool has_cast)
{
	struct fdtable *table = ((struct task_struct___file *)distrust(task, has_cast))->files->fdt;

	if (fd >= table->max_fds)
		return false;
	if (has_cast && bpf_core_enum_value_exists(enum special_kfunc_type, KF_bpf_rdonly_cast))
		return is_regular_by_cast(table->fd + fd);
	return is_regular_by_helper(table->fd + fd);
}

/* For a program's rare paths: see owner_of_task_seldom(). */
static __noinline bool is_regular_seldom(struct task_struct *task, u32 fd)
{
	struct fdtable *table = BPF_CORE_READ((struct task_struct___file *)task, files, fdt);

	return fd < BPF_CORE_READ(table, max_fds) &&
	       is_regular_by_helper(BPF_CORE_READ(table, fd) + fd);
}

static __always_inline void file_add(const struct owner *owner, u32 operation, u64 bytes)
{
	bool is_own;
	struct file_value *value = files_at(owner, &is_own);

	if (!value)
		return;
	if (operation == FILE_READ) {
		table_count(&value->read, 1, is_own);
		table_count(&value->read_bytes, bytes, is_own);
	} else if (operation == FILE_WRITE) {
		table_count(&value->write, 1, is_own);
		table_count(&value->write_bytes, bytes, is_own);
	} else if (operation == FILE_OPEN) {
		table_count(&value->open, 1, is_own);
	} else {
		table_count(&value->fsync, 1, is_own);
	}
}

static __noinline int failure_add(const struct owner *owner, u32 operation, u32 error)
{
	struct failure_key key = { *owner, operation, error };

	table_add_to(failures, &key, count, 1);
	return 0;
}

static __noinline int file_duration_add(const struct owner *owner, u32 operation, u64 ns)
{
	struct file_duration_key key = { *owner, operation, 0 };

	hist_time_add_to(file_durations, &key, ns);
	return 0;
}

static __always_inline void operation_add(const struct owner *owner, u32 operation,
					  long ret, u64 ns)
{
	u32 error = syscall_error(ret);

	if (error)
		failure_add(owner, operation, error);
	else
		file_add(owner, operation, ret);
	if (fileio_duration && ns)
		file_duration_add(owner, operation, ns);
}

/*
 * A copy from one descriptor to another; either may be a file. Global, so that the verifier follows
 * it only once.
 */
__noinline int copy_exit(u32 call, long ret, u64 ns)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	bool is_compat = syscall_is_compat(task);
	u32 fds[] = { syscall_argument_0(regs, is_compat), syscall_argument_1(regs, is_compat),
		      syscall_argument_2(regs, is_compat) };
	bool is_read = is_regular_seldom(task, call & CALL_IN_0 ? fds[0] : fds[1]);
	bool is_write = is_regular_seldom(task, call & CALL_IN_0 ? fds[2] : fds[0]);
	struct owner owner;

	if (!is_read && !is_write)
		return 0;
	owner_of_task_seldom(&owner, task);
	owner = owner_for(&owner, fileio_per_process);
	if (fileio_duration && !ns)
		ns = call_end(task, syscall_number(task, regs), false);
	if (is_read)
		operation_add(&owner, FILE_READ, ret, ns);
	if (is_write)
		operation_add(&owner, FILE_WRITE, ret, ns);
	return 0;
}

/*
 * any: the owner; it is taken here if syscalls has not needed it. ns: how long the call took, if
 * that is known already. A failed open has no file to look at, so it counts in any case.
 */
static __always_inline void file_exit(struct task_struct *task, struct pt_regs *regs,
				      u32 calls, long ret,
				      const struct owner *any, u64 ns, bool has_cast)
{
	bool is_compat = syscall_is_compat(task);
	u32 call = file_call(calls, is_compat), fd;
	struct owner owner;

	if (!call || syscall_restarts(ret))
		return;
	if (call & CALL_COPIES) {
		copy_exit(call, ret, ns);
		return;
	}
	fd = call & CALL_RETURNS_FD ? ret : syscall_argument_0(regs, is_compat);
	if (!(call & CALL_RETURNS_FD && syscall_error(ret)) && !is_regular(task, fd, has_cast))
		return;
	if (syscalls_on)
		owner = owner_for(any, fileio_per_process);
	else
		owner_set(&owner, task, distrust(task, has_cast)->cgroups->dfl_cgrp->kn->id,
			  fileio_per_process);
	if (fileio_duration && !ns)
		ns = call_end(task, syscall_number(task, regs), false);
	operation_add(&owner, call & CALL_OPERATION, ret, ns);
}

/* At the start of a call: is it worth a look at the clock? */
static __always_inline bool file_is_timed(struct task_struct *task, struct pt_regs *regs, u32 calls,
					 bool has_cast)
{
	bool is_compat = syscall_is_compat(task);
	u32 call = file_call(calls, is_compat);

	return call && (!file_call_is_on_one_file(call) ||
			is_regular(task, syscall_argument_0(regs, is_compat), has_cast));
}

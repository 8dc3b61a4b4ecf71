/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files as programs use them: counts the system calls that read, write, open and flush regular files when
 * they return. The call's descriptor leads to the file, and the file's inode says whether it is a regular
 * one. Pipes, sockets, devices and directories are not, and the kernel's virtual files (/proc, /sys,
 * cgroup files) do not count either: see is_made_up(). What happens to the file decides whether a call is
 * a read or a write: sendfile() from a file to a socket is a read, and copy_file_range() is both.
 *
 * mmap, io_uring, AIO and the kernel's own reads are not seen here, because they are not system calls on
 * a file. The bytes that really went to and from devices are the kernel's own sums in each task.
 */
#include "owner.h"
#include "hist.h"
#include "syscall.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct super_block {
	unsigned long s_magic;
};

struct inode {
	unsigned short i_mode;
	struct super_block *i_sb;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct task_io_accounting {
	u64 read_bytes;
	u64 write_bytes;
};

struct task_struct___file {
	struct files_struct *files;
	struct task_io_accounting ioac;
};

struct bpf_iter__task {
	struct task_struct *task;
};

#pragma clang attribute pop

#define TASK_EXITING 0x4 /* PF_EXITING */
#define io_of(task)  (((struct task_struct___file *)(task))->ioac)

enum file_operation { FILE_NONE, FILE_READ, FILE_WRITE, FILE_OPEN, FILE_FSYNC };

const volatile bool duration = false;

/* Successful calls, which are nearly all, take one slot per owner. Each map except disk has one writer. */
struct file_key {
	struct owner owner;
};

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

struct duration_key {
	struct owner owner;
	enum file_operation operation;
	lbl_errno error; /* always 0 */
};

struct disk_value {
	u64 read_bytes;
	u64 write_bytes;
};

TABLE(files, struct file_key, struct file_value, 512);
TABLE(failures, struct failure_key, struct failure_value, 512);
TABLE(durations, struct duration_key, struct hist_time, 256);
TABLE(disk, struct file_key, struct disk_value, 512);

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u64);
} starts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct disk_value);
} disk_seen SEC(".maps");

/*
 * What a call does, by number: an operation, which argument is the descriptor, and whether it copies
 * from one descriptor to another.
 */
enum {
	CALL_OPERATION = 7,
	CALL_RETURNS_FD = 1 << 3, /* open: the descriptor is the result */
	CALL_COPIES = 1 << 4,	  /* from argument 1 to argument 0 ... */
	CALL_IN_0 = 1 << 5,	  /* ... or from argument 0 to argument 2 */
};

#define OPENS	   (FILE_OPEN | CALL_RETURNS_FD)
#define COPIES_0_2 (CALL_COPIES | CALL_IN_0)
#define COPIES_1_0 CALL_COPIES

static const u8 calls[SYSCALL_NUMBERS] = {
#if defined(__TARGET_ARCH_x86)
	[0] = FILE_READ, /* read */
	[1] = FILE_WRITE, /* write */
	[2] = OPENS, /* open */
	[17] = FILE_READ, /* pread64 */
	[18] = FILE_WRITE, /* pwrite64 */
	[19] = FILE_READ, /* readv */
	[20] = FILE_WRITE, /* writev */
	[40] = COPIES_1_0, /* sendfile */
	[74] = FILE_FSYNC, /* fsync */
	[75] = FILE_FSYNC, /* fdatasync */
	[85] = OPENS, /* creat */
	[257] = OPENS, /* openat */
	[275] = COPIES_0_2, /* splice */
	[277] = FILE_FSYNC, /* sync_file_range */
	[295] = FILE_READ, /* preadv */
	[296] = FILE_WRITE, /* pwritev */
	[304] = OPENS, /* open_by_handle_at */
	[326] = COPIES_0_2, /* copy_file_range */
	[327] = FILE_READ, /* preadv2 */
	[328] = FILE_WRITE, /* pwritev2 */
	[437] = OPENS, /* openat2 */
#elif defined(__TARGET_ARCH_arm64)
	[56] = OPENS, /* openat */
	[63] = FILE_READ, /* read */
	[64] = FILE_WRITE, /* write */
	[65] = FILE_READ, /* readv */
	[66] = FILE_WRITE, /* writev */
	[67] = FILE_READ, /* pread64 */
	[68] = FILE_WRITE, /* pwrite64 */
	[69] = FILE_READ, /* preadv */
	[70] = FILE_WRITE, /* pwritev */
	[71] = COPIES_1_0, /* sendfile */
	[76] = COPIES_0_2, /* splice */
	[82] = FILE_FSYNC, /* fsync */
	[83] = FILE_FSYNC, /* fdatasync */
	[84] = FILE_FSYNC, /* sync_file_range */
	[265] = OPENS, /* open_by_handle_at */
	[285] = COPIES_0_2, /* copy_file_range */
	[286] = FILE_READ, /* preadv2 */
	[287] = FILE_WRITE, /* pwritev2 */
	[437] = OPENS, /* openat2 */
#endif
};

static const u8 compat_calls[SYSCALL_NUMBERS] = {
#if defined(__TARGET_ARCH_x86)
	[3] = FILE_READ, /* read */
	[4] = FILE_WRITE, /* write */
	[5] = OPENS, /* open */
	[8] = OPENS, /* creat */
	[118] = FILE_FSYNC, /* fsync */
	[145] = FILE_READ, /* readv */
	[146] = FILE_WRITE, /* writev */
	[148] = FILE_FSYNC, /* fdatasync */
	[180] = FILE_READ, /* pread64 */
	[181] = FILE_WRITE, /* pwrite64 */
	[187] = COPIES_1_0, /* sendfile */
	[239] = COPIES_1_0, /* sendfile64 */
	[295] = OPENS, /* openat */
	[313] = COPIES_0_2, /* splice */
	[314] = FILE_FSYNC, /* sync_file_range */
	[333] = FILE_READ, /* preadv */
	[334] = FILE_WRITE, /* pwritev */
	[342] = OPENS, /* open_by_handle_at */
	[377] = COPIES_0_2, /* copy_file_range */
	[378] = FILE_READ, /* preadv2 */
	[379] = FILE_WRITE, /* pwritev2 */
	[437] = OPENS, /* openat2 */
#elif defined(__TARGET_ARCH_arm64)
	[3] = FILE_READ, /* read */
	[4] = FILE_WRITE, /* write */
	[5] = OPENS, /* open */
	[8] = OPENS, /* creat */
	[118] = FILE_FSYNC, /* fsync */
	[145] = FILE_READ, /* readv */
	[146] = FILE_WRITE, /* writev */
	[148] = FILE_FSYNC, /* fdatasync */
	[180] = FILE_READ, /* pread64 */
	[181] = FILE_WRITE, /* pwrite64 */
	[187] = COPIES_1_0, /* sendfile */
	[239] = COPIES_1_0, /* sendfile64 */
	[322] = OPENS, /* openat */
	[340] = COPIES_0_2, /* splice */
	[341] = FILE_FSYNC, /* sync_file_range2 */
	[361] = FILE_READ, /* preadv */
	[362] = FILE_WRITE, /* pwritev */
	[371] = OPENS, /* open_by_handle_at */
	[391] = COPIES_0_2, /* copy_file_range */
	[392] = FILE_READ, /* preadv2 */
	[393] = FILE_WRITE, /* pwritev2 */
	[437] = OPENS, /* openat2 */
#endif
};

/* 0: not one of ours. Most calls end here, before anything is read from the task. */
static __always_inline bool is_none(struct pt_regs *regs)
{
	u32 number = syscall_raw_number(regs);

	return number >= SYSCALL_NUMBERS || !(calls[number] | compat_calls[number]);
}

static __always_inline u32 call_of(struct pt_regs *regs, bool compat)
{
	u32 number = syscall_raw_number(regs) & (SYSCALL_NUMBERS - 1);

	return compat ? compat_calls[number] : calls[number];
}

static __always_inline bool is_on_one_file(u32 call)
{
	return !(call & (CALL_RETURNS_FD | CALL_COPIES));
}

/* include/uapi/linux/magic.h, and stat.h */
static __always_inline bool is_made_up(unsigned long magic)
{
	switch (magic) {
	case 0x9fa0:	 /* proc */
	case 0x62656572: /* sysfs */
	case 0x63677270: /* cgroup2 */
	case 0x27e0eb:	 /* cgroup */
	case 0x64626720: /* debugfs */
	case 0x74726163: /* tracefs */
	case 0x73636673: /* securityfs */
	case 0x6e736673: /* nsfs */
		return true;
	}
	return false;
}

#define MODE_TYPE    0170000
#define MODE_REGULAR 0100000

/*
 * A descriptor's file is reached through an array of pointers, where plain loads are not allowed to go on.
 * Since 6.2 a cast allows it at no cost; without it, each load would need a helper call.
 */
extern void *bpf_rdonly_cast(const void *address, u32 type) __ksym __weak;

enum special_kfunc_type {
	KF_bpf_rdonly_cast,
};

#define cast_to(type, address)                                                                     \
	((type *)bpf_rdonly_cast((const void *)(address), bpf_core_type_id_kernel(type)))

/* thread_info stands for any type that begins with a word. */
static __always_inline bool is_regular_by_cast(struct file **at)
{
	unsigned long address = cast_to(struct thread_info, at)->flags;
	struct inode *inode = cast_to(struct file, address)->f_inode;

	return address && (inode->i_mode & MODE_TYPE) == MODE_REGULAR && !is_made_up(inode->i_sb->s_magic);
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

/* The verifier checks loads from an untrusted pointer without a search: see owner_of_task_seldom(). */
static __always_inline struct task_struct *distrust(struct task_struct *task)
{
	if (bpf_core_enum_value_exists(enum special_kfunc_type, KF_bpf_rdonly_cast))
		return cast_to(struct task_struct, task);
	return task;
}

static __always_inline bool is_regular(struct task_struct *task, u32 fd)
{
	struct fdtable *table = ((struct task_struct___file *)distrust(task))->files->fdt;

	if (fd >= table->max_fds)
		return false;
	if (bpf_core_enum_value_exists(enum special_kfunc_type, KF_bpf_rdonly_cast))
		return is_regular_by_cast(table->fd + fd);
	return is_regular_by_helper(table->fd + fd);
}

static __always_inline void file_add(const struct file_key *key, u32 operation, u64 bytes)
{
	struct file_value *value = files_at(key);

	if (!value)
		return;
	if (operation == FILE_READ) {
		value->read++;
		value->read_bytes += bytes;
	} else if (operation == FILE_WRITE) {
		value->write++;
		value->write_bytes += bytes;
	} else if (operation == FILE_OPEN) {
		value->open++;
	} else {
		value->fsync++;
	}
}

static __noinline int failure_add(const struct file_key *file, u32 operation, u32 error)
{
	struct failure_key key = { file->owner, operation, error };
	struct failure_value *value = failures_at(&key);

	if (value)
		value->count++;
	return 0;
}

static __noinline int duration_add(const struct file_key *file, u32 operation, u64 start_ns)
{
	struct duration_key key = { file->owner, operation, 0 };
	struct hist_time *value;
	u64 ns = bpf_ktime_get_ns() - start_ns;

	value = durations_at(&key);
	if (value)
		hist_time_add(value, ns);
	return 0;
}

static __always_inline void operation_add(struct task_struct *task, u32 operation, long ret,
					  u64 start_ns)
{
	struct file_key key;
	u32 error = syscall_error(ret);

	owner_of_task(&key.owner, distrust(task));
	if (error)
		failure_add(&key, operation, error);
	else
		file_add(&key, operation, ret);
	if (duration && start_ns)
		duration_add(&key, operation, start_ns);
}

/* 0: the call began before the hook was attached, or a filter refused it. */
static __noinline u64 start_take(struct task_struct *task)
{
	u64 *start = bpf_task_storage_get(&starts, task, NULL, 0), ns;

	if (!start)
		return 0;
	ns = *start;
	*start = 0;
	return ns;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(sys_enter, struct pt_regs *regs, long number)
{
	struct task_struct *task;
	bool compat;
	u32 call;
	u64 *start;

	if (is_none(regs))
		return 0;
	task = bpf_get_current_task_btf();
	compat = syscall_is_compat(task);
	call = call_of(regs, compat);
	if (!call || (is_on_one_file(call) && !is_regular(task, syscall_argument_0(regs, compat))))
		return 0;
	start = bpf_task_storage_get(&starts, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (start)
		*start = bpf_ktime_get_ns();
	return 0;
}

/* Copies from one descriptor to another; either may be a file. */
static __always_inline void copy_add(struct task_struct *task, struct pt_regs *regs, bool compat, u32 call,
				     long ret)
{
	u32 first = syscall_argument_0(regs, compat);
	u32 in = call & CALL_IN_0 ? first : syscall_argument_1(regs, compat);
	u32 out = call & CALL_IN_0 ? syscall_argument_2(regs, compat) : first;
	u64 start_ns = duration ? start_take(task) : 0;

	if (is_regular(task, in))
		operation_add(task, FILE_READ, ret, start_ns);
	if (is_regular(task, out))
		operation_add(task, FILE_WRITE, ret, start_ns);
}

/* A failed open has no file to look at, so it counts in any case. */
SEC("tp_btf/sys_exit")
int BPF_PROG(sys_exit, struct pt_regs *regs, long ret)
{
	struct task_struct *task;
	bool compat, is_file;
	u32 call;

	if (is_none(regs))
		return 0;
	task = bpf_get_current_task_btf();
	compat = syscall_is_compat(task);
	call = call_of(regs, compat);
	if (!call || syscall_restarts(ret))
		return 0;
	if (call & CALL_COPIES) {
		copy_add(task, regs, compat, call, ret);
		return 0;
	}
	if (is_on_one_file(call))
		is_file = is_regular(task, syscall_argument_0(regs, compat));
	else
		is_file = syscall_error(ret) || is_regular(task, ret);
	if (is_file)
		operation_add(task, call & CALL_OPERATION, ret, duration ? start_take(task) : 0);
	return 0;
}

/*
 * The kernel keeps disk bytes as sums in each task, from zero at its fork. Most tasks have none and are
 * skipped. For the others this program remembers how much it has counted. What a task had before the
 * first walk is never counted.
 */
bool seeded;

/* The growth of a sum since last time. The walk and the end of the task may run this on two CPUs at once. */
static __always_inline u64 grown_since(u64 *last, u64 now)
{
	u64 before = *(volatile u64 *)last;

	if (now <= before || __sync_val_compare_and_swap(last, before, now) != before)
		return 0;
	return now - before;
}

static __always_inline void disk_add(struct task_struct *task, u64 read_bytes, u64 write_bytes)
{
	struct file_key key;
	struct disk_value *value;

	if (!read_bytes && !write_bytes)
		return;
	owner_of_task_seldom(&key.owner, task);
	value = disk_at(&key);
	if (!value)
		return;
	table_add(&value->read_bytes, read_bytes);
	table_add(&value->write_bytes, write_bytes);
}

SEC("iter/task")
int disk_walk(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct disk_value *last;
	u64 read_bytes, write_bytes;

	if (!task) {
		seeded = true;
		return 0;
	}
	read_bytes = io_of(task).read_bytes;
	write_bytes = io_of(task).write_bytes;
	if (!read_bytes && !write_bytes)
		return 0;
	last = bpf_task_storage_get(&disk_seen, task, NULL,
				    seeded && task->flags & TASK_EXITING ? 0 : BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!last)
		return 0;
	read_bytes = grown_since(&last->read_bytes, read_bytes);
	write_bytes = grown_since(&last->write_bytes, write_bytes);
	if (seeded)
		disk_add(task, read_bytes, write_bytes);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(sched_process_exit, struct task_struct *task)
{
	u64 read_bytes = io_of(task).read_bytes;
	u64 write_bytes = io_of(task).write_bytes;
	struct disk_value *last;

	if (!seeded || (!read_bytes && !write_bytes))
		return 0;
	last = bpf_task_storage_get(&disk_seen, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (last) {
		read_bytes = grown_since(&last->read_bytes, read_bytes);
		write_bytes = grown_since(&last->write_bytes, write_bytes);
	}
	disk_add(task, read_bytes, write_bytes);
	return 0;
}

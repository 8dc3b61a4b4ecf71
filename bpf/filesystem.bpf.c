/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The collectors filesystem and slow: how long file systems take to read, write, open and flush
 * regular files. Measured are the functions that all file systems share, from their entry to their
 * return.
 *
 * One operation may call another: a write to a file opened with O_SYNC flushes it, so each kind has
 * a start of its own. And a file system may use another one, which calls the same function again;
 * then only the inner call counts, because its end clears the start. So if the kernel skips a
 * program, the next operation is measured right.
 */
#include "label.h"

const volatile bool filesystem_on = false;
const volatile bool filesystem_per_process = false;
const volatile bool slow_on = false;
const volatile u64 slow_rate_limit = 1000;

#define OWNER_PER_PROCESS filesystem_per_process
#define EVENT_RATE_LIMIT  slow_rate_limit

#include "owner.h"
#include "hist.h"
#include "table.h"
#include "file.h"
#include "function.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define FILE_SYSTEM_NAME_BYTES 16

enum fs_operation { FS_READ, FS_WRITE, FS_OPEN, FS_FSYNC, FS_OPERATIONS };

struct fs_key {
	struct owner owner;
	char type[FILE_SYSTEM_NAME_BYTES];
	enum fs_operation operation;
	u32 unused;
};

TABLE(operations, struct fs_key, struct hist_time, 8);

struct fs_start {
	u64 ns; /* 0: none has begun */
	struct super_block *sb;
	struct dentry *dentry; /* these two only for slow; the caller holds the file open */
	s64 offset;	       /* 0 also for operations that have none */
};

struct fs_starts {
	struct fs_start of[FS_OPERATIONS];
};

STORAGE(fs_begun, TASK, 0, struct fs_starts);

#include "filesystem/slow.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct dentry___of_inode {
	struct inode *d_inode;
};

struct task_struct___of_files {
	struct files_struct *files;
};

#pragma clang attribute pop

/* NULL: nothing is to be kept of it. */
static __always_inline struct fs_start *operation_begin(enum fs_operation operation,
							struct inode *inode)
{
	struct super_block *sb = BPF_CORE_READ(inode, i_sb);
	bool is_counted = (BPF_CORE_READ(inode, i_mode) & MODE_TYPE) == MODE_REGULAR &&
			  !is_made_up(BPF_CORE_READ(sb, s_magic));
	struct fs_starts *starts = bpf_task_storage_get(&fs_begun, bpf_get_current_task_btf(), NULL,
							is_counted ?
							BPF_LOCAL_STORAGE_GET_F_CREATE : 0);

	if (!starts)
		return NULL;
	starts->of[operation].sb = sb;
	starts->of[operation].ns = is_counted ? bpf_ktime_get_ns() : 0;
	return &starts->of[operation];
}

/* offset: where the kernel has the offset of a read or write; 0: nowhere. */
static __always_inline void place_note(struct fs_start *start, struct dentry *dentry, u64 offset)
{
	start->dentry = dentry;
	start->offset = 0;
	bpf_probe_read_kernel(&start->offset, sizeof(start->offset), (void *)offset);
}

static __always_inline void operation_count(const struct fs_start *start,
					    enum fs_operation operation, u64 ns)
{
	struct fs_key key = { .operation = operation };
	struct super_block *sb = start->sb;

	owner_of_task_seldom(&key.owner, bpf_get_current_task_btf());
	bpf_probe_read_kernel_str(key.type, sizeof(key.type), BPF_CORE_READ(sb, s_type, name));
	hist_time_add_to(operations, &key, ns);
}

/* result: what the function returned. */
static __always_inline int operation_end(enum fs_operation operation, s32 result)
{
	struct fs_starts *starts = bpf_task_storage_get(&fs_begun, bpf_get_current_task_btf(),
							NULL, 0);
	struct fs_start *start = starts ? &starts->of[operation] : NULL;
	u64 ns;

	if (!start || !start->ns)
		return 0;
	ns = bpf_ktime_get_ns() - start->ns;
	start->ns = 0;
	if (filesystem_on)
		operation_count(start, operation, ns);
	if (slow_on)
		slow_report(start, operation, ns, result);
	return 0;
}

static __always_inline struct inode *inode_of_file(u64 file)
{
	return BPF_CORE_READ((struct file *)file, f_inode);
}

static __always_inline struct dentry *dentry_of_file(u64 file)
{
	return BPF_CORE_READ((struct file *)file, f_path.dentry);
}

static __always_inline struct dentry *dentry_of_path(u64 path)
{
	return BPF_CORE_READ((struct path *)path, dentry);
}

static __always_inline struct inode *inode_of_path(u64 path)
{
	return BPF_CORE_READ((struct dentry___of_inode *)dentry_of_path(path), d_inode);
}

/* What a system call gets is the registers of the program; the first is the descriptor. */
#if defined(__TARGET_ARCH_x86)
#define CALL "__x64_sys_"
#define CALL_DESCRIPTOR di
#else
#define CALL "__arm64_sys_"
#define CALL_DESCRIPTOR regs[0]
#endif

static __always_inline u64 file_of_call(u64 registers)
{
	u32 fd = BPF_CORE_READ((struct pt_regs *)registers, CALL_DESCRIPTOR);
	struct task_struct___of_files *task = (void *)bpf_get_current_task_btf();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	u64 file = 0;

	if (fd < BPF_CORE_READ(table, max_fds))
		bpf_probe_read_kernel(&file, sizeof(file), BPF_CORE_READ(table, fd) + fd);
	return file;
}

/* A plain load of an address of no structure is refused before 5.17. */
static __always_inline u64 argument_4(u64 *ctx)
{
	u64 argument = 0;

	bpf_probe_read_kernel(&argument, sizeof(argument), &ctx[3]);
	return argument;
}

/*
 * of: file or path, what the first argument leads to. fourth: ITSELF if that is where the offset
 * is, or NO_OFFSET. n: how many arguments the function has; its result follows them. Some return an
 * int, whose upper half is anything, and none more than 2^31. The kprobes are for arm64 before 6.4,
 * which has no fexit.
 */
#define OPERATION(name, operation, function, of, first, fourth, n)                                 \
	SEC("fentry/" function)                                                                    \
	int name##__fexit__begin(u64 *ctx)                                                         \
	{                                                                                          \
		u64 at = first(ctx[0]);                                                            \
		struct fs_start *start = operation_begin(operation, inode_of_##of(at));            \
		if (slow_on && start)                                                              \
			place_note(start, dentry_of_##of(at), fourth(argument_4(ctx)));            \
		return 0;                                                                          \
	}                                                                                          \
	SEC("fexit/" function)                                                                     \
	int name##__fexit__end(u64 *ctx)                                                           \
	{                                                                                          \
		return operation_end(operation, (s32)ctx[n]);                                      \
	}                                                                                          \
	SEC("kprobe/" function)                                                                    \
	int name##__kprobe__begin(struct pt_regs *ctx)                                             \
	{                                                                                          \
		u64 at = first(function_argument_1(ctx));                                          \
		struct fs_start *start = operation_begin(operation, inode_of_##of(at));            \
		if (slow_on && start)                                                              \
			place_note(start, dentry_of_##of(at),                                      \
				   fourth(function_argument_4(ctx)));                              \
		return 0;                                                                          \
	}                                                                                          \
	SEC("kretprobe/" function)                                                                 \
	int name##__kprobe__end(struct pt_regs *ctx)                                               \
	{                                                                                          \
		return operation_end(operation, (s32)function_result(ctx));                        \
	}

#define ITSELF(argument)    (argument)
#define NO_OFFSET(argument) 0

OPERATION(read, FS_READ, "vfs_read", file, ITSELF, ITSELF, 4)
OPERATION(readv, FS_READ, "vfs_readv", file, ITSELF, ITSELF, 5)
OPERATION(write, FS_WRITE, "vfs_write", file, ITSELF, ITSELF, 4)
OPERATION(writev, FS_WRITE, "vfs_writev", file, ITSELF, ITSELF, 5)
OPERATION(open, FS_OPEN, "vfs_open", path, ITSELF, NO_OFFSET, 2)
OPERATION(flush, FS_FSYNC, "vfs_fsync_range", file, ITSELF, NO_OFFSET, 4)
/* In some kernels these do not call the last one, because it is compiled into them. */
OPERATION(fsync, FS_FSYNC, CALL "fsync", file, file_of_call, NO_OFFSET, 1)
OPERATION(fdatasync, FS_FSYNC, CALL "fdatasync", file, file_of_call, NO_OFFSET, 1)

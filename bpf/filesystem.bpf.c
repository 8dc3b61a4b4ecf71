/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long file systems take to read, write, open and flush regular files. Measured are the
 * functions that all file systems share, from their entry to their return.
 *
 * One operation may call another: a write to a file opened with O_SYNC flushes it, so each kind has
 * a start of its own. And a file system may use another one, which calls the same function again;
 * then only the inner call counts, because its end clears the start. So if the kernel skips a
 * program, the next operation is measured right.
 */
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
};

struct fs_starts {
	struct fs_start of[FS_OPERATIONS];
};

STORAGE(fs_begun, TASK, 0, struct fs_starts);

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct dentry___of_inode {
	struct inode *d_inode;
};

struct task_struct___of_files {
	struct files_struct *files;
};

#pragma clang attribute pop

static __always_inline int operation_begin(enum fs_operation operation, struct inode *inode)
{
	struct super_block *sb = BPF_CORE_READ(inode, i_sb);
	bool is_counted = (BPF_CORE_READ(inode, i_mode) & MODE_TYPE) == MODE_REGULAR &&
			  !is_made_up(BPF_CORE_READ(sb, s_magic));
	struct fs_starts *starts = bpf_task_storage_get(&fs_begun, bpf_get_current_task_btf(), NULL,
							is_counted ?
							BPF_LOCAL_STORAGE_GET_F_CREATE : 0);

	if (starts) {
		starts->of[operation].sb = sb;
		starts->of[operation].ns = is_counted ? bpf_ktime_get_ns() : 0;
	}
	return 0;
}

static __always_inline int operation_end(enum fs_operation operation)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct fs_starts *starts = bpf_task_storage_get(&fs_begun, task, NULL, 0);
	struct fs_key key = {};
	struct super_block *sb;
	u64 ns;

	if (!starts || !starts->of[operation].ns)
		return 0;
	ns = bpf_ktime_get_ns() - starts->of[operation].ns;
	starts->of[operation].ns = 0;
	sb = starts->of[operation].sb;
	owner_of_task_seldom(&key.owner, task);
	bpf_probe_read_kernel_str(key.type, sizeof(key.type), BPF_CORE_READ(sb, s_type, name));
	key.operation = operation;
	hist_time_add_to(operations, &key, ns);
	return 0;
}

static __always_inline struct inode *inode_of_file(u64 file)
{
	return BPF_CORE_READ((struct file *)file, f_inode);
}

static __always_inline struct inode *inode_of_path(u64 path)
{
	struct dentry___of_inode *dentry = (void *)BPF_CORE_READ((struct path *)path, dentry);

	return BPF_CORE_READ(dentry, d_inode);
}

/* What a system call gets is the registers of the program; the first is the descriptor. */
#if defined(__TARGET_ARCH_x86)
#define CALL "__x64_sys_"
#define CALL_DESCRIPTOR di
#else
#define CALL "__arm64_sys_"
#define CALL_DESCRIPTOR regs[0]
#endif

static __always_inline struct inode *inode_of_call(u64 registers)
{
	u32 fd = BPF_CORE_READ((struct pt_regs *)registers, CALL_DESCRIPTOR);
	struct task_struct___of_files *task = (void *)bpf_get_current_task_btf();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file *file = NULL;

	if (fd < BPF_CORE_READ(table, max_fds))
		bpf_probe_read_kernel(&file, sizeof(file), BPF_CORE_READ(table, fd) + fd);
	return BPF_CORE_READ(file, f_inode);
}

/* The kprobes are for arm64 before 6.4, which has no fexit. */
#define OPERATION(name, operation, function, inode_of)                                             \
	SEC("fentry/" function)                                                                    \
	int name##__fexit__begin(u64 *ctx)                                                         \
	{                                                                                          \
		return operation_begin(operation, inode_of(ctx[0]));                               \
	}                                                                                          \
	SEC("fexit/" function)                                                                     \
	int name##__fexit__end(u64 *ctx)                                                           \
	{                                                                                          \
		return operation_end(operation);                                                   \
	}                                                                                          \
	SEC("kprobe/" function)                                                                    \
	int name##__kprobe__begin(struct pt_regs *ctx)                                             \
	{                                                                                          \
		return operation_begin(operation, inode_of(function_argument_1(ctx)));             \
	}                                                                                          \
	SEC("kretprobe/" function)                                                                 \
	int name##__kprobe__end(struct pt_regs *ctx)                                               \
	{                                                                                          \
		return operation_end(operation);                                                   \
	}

OPERATION(read, FS_READ, "vfs_read", inode_of_file)
OPERATION(readv, FS_READ, "vfs_readv", inode_of_file)
OPERATION(write, FS_WRITE, "vfs_write", inode_of_file)
OPERATION(writev, FS_WRITE, "vfs_writev", inode_of_file)
OPERATION(open, FS_OPEN, "vfs_open", inode_of_path)
OPERATION(flush, FS_FSYNC, "vfs_fsync_range", inode_of_file)
/* In some kernels these do not call the last one, because it is compiled into them. */
OPERATION(fsync, FS_FSYNC, CALL "fsync", inode_of_call)
OPERATION(fdatasync, FS_FSYNC, CALL "fdatasync", inode_of_call)

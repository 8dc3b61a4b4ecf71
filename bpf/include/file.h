/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/* Files: which of them are regular, and in which file systems the kernel makes them up. */

#include "kernel.h"

#ifndef __VMLINUX_H__
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct file_system_type {
	const char *name;
};

struct super_block {
	unsigned long s_magic;
	struct file_system_type *s_type;
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

#pragma clang attribute pop
#endif

#define MODE_TYPE    0170000
#define MODE_REGULAR 0100000

/* By the numbers of include/uapi/linux/magic.h: no program has written what is in these files. */
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

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs that could change what the kernel does, or that are not known at all. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define PROGRAM(name, section)	   \
	SEC(section)		   \
	int name(void *ctx)	   \
	{			   \
		return 0;	   \
	}

PROGRAM(opened, "lsm/file_open")
PROGRAM(changed, "fmod_ret/security_file_open")
PROGRAM(dropped, "xdp")
PROGRAM(written, "raw_tp.w/nbd_send_request")
PROGRAM(replaced, "freplace/other")
PROGRAM(unknown, "nonsense")
PROGRAM(entered, "fentry/vfs_read")
PROGRAM(called, "kprobe/vfs_read")

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} counts SEC(".maps");

SEC("tp_btf/sched_wakeup")
int wake__up(void *ctx)
{
	return 0;
}

SEC("fexit/wake_up_process")
int wake__process(void *ctx)
{
	return 0;
}

SEC("fexit/vfs_read")
int file__read(void *ctx)
{
	return 0;
}

SEC("fexit/vfs_write")
int file__write(void *ctx)
{
	return 0;
}

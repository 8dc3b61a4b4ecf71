/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "kernel.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct no_key {
	u32 unused;
};

/* The test maps it, to see what is counted while no agent runs. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, struct no_key);
	__type(value, u64);
} calls SEC(".maps");

const volatile u32 process = 0;

SEC("uprobe/libc.so.6:getsid")
int getsid_called(void *ctx)
{
	struct no_key key = {};
	u64 *value = bpf_map_lookup_elem(&calls, &key);

	if (value && bpf_get_current_pid_tgid() >> 32 == process)
		__sync_fetch_and_add(value, 1);
	return 0;
}

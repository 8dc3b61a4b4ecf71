/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What begins is seen, but no kernel has the hook where it would be counted. */
#include "owner.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, u32);
	__type(value, u64);
} begun SEC(".maps"), ended SEC(".maps");

SEC("tp_btf/task_newtask")
int BPF_PROG(begin, struct task_struct *task)
{
	u32 key = task->pid;
	u64 now = bpf_ktime_get_ns();

	bpf_map_update_elem(&begun, &key, &now, BPF_ANY);
	return 0;
}

SEC("tp_btf/task_that_ends_nowhere")
int BPF_PROG(end, struct task_struct *task)
{
	u32 key = task->pid;
	u64 *value = bpf_map_lookup_elem(&begun, &key);

	if (value)
		bpf_map_update_elem(&ended, &key, value, BPF_ANY);
	return 0;
}

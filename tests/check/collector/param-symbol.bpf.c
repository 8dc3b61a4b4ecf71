/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "kernel.h"

char LICENSE[] SEC("license") = "GPL";

const volatile u64 sound, given;
const volatile u32 narrow;
const volatile char text[8];

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} calls SEC(".maps");

SEC("raw_tp/sys_enter")
int enter(void *unused)
{
	return sound + given + narrow + text[0];
}

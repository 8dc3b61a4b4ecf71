/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "hist.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, u32);
	__type(value, u64);
} counts SEC(".maps");

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct sum_key {
	u64 number;
};

struct sum_value {
	s64 balance;
	u16 narrow;
	u8 unused[6];
};

TABLE(sums, struct sum_key, struct sum_value, 4);

SEC("tp_btf/sys_exit")
int BPF_PROG(on_exit)
{
	struct sum_key key = {};
	struct sum_value *value = sums_at(&key);

	if (value)
		value->balance--;
	return 0;
}

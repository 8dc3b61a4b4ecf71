/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "hist.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct number {
	u64 number;
};

TABLE(counts, struct number, u64, 100);

SEC("tp_btf/sys_enter")
int BPF_PROG(enter)
{
	struct number key = { 1 };
	u64 *value = counts_at(&key);

	if (value)
		table_add(value, 1);
	return 0;
}

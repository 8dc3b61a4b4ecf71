/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * System calls by name and error, counted where they return: one hook, no clock, no helper call.
 * Durations cost a second hook and two clock reads, so they are taken only for the calls that the user
 * names, and the hook is not even attached otherwise.
 */
#include "owner.h"
#include "hist.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct pt_regs {
	unsigned long orig_ax;
};
#pragma clang attribute pop

struct syscall_key {
	struct owner owner;
	lbl_syscall syscall;
	lbl_errno error;
};

struct syscall_value {
	u64 count;
};

TABLE(syscalls, struct syscall_key, struct syscall_value, 2048);

SEC("tp_btf/sys_exit")
int BPF_PROG(sys_exit, struct pt_regs *regs, long ret)
{
	struct syscall_key key = {};
	struct syscall_value *value;

	owner_of_task(&key.owner, bpf_get_current_task_btf());
	key.syscall = regs->orig_ax;
	key.error = ret < 0 && ret >= -4095 ? -ret : 0;
	value = syscalls_at(&key);
	if (value)
		value->count++;
	return 0;
}

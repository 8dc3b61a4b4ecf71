/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf() calls by process and command. */
#include "syscall.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#if defined(__TARGET_ARCH_x86)
#define SYSCALL_BPF 321
#else
#define SYSCALL_BPF 280
#endif

struct command_key {
	u32 process;
	u32 command; /* enum bpf_cmd */
};

struct command_value {
	u64 count;
};

TABLE(commands, struct command_key, struct command_value, 64);

SEC("tp_btf/sys_enter")
int BPF_PROG(enter, struct pt_regs *regs, long number)
{
	struct command_key key = { .process = bpf_get_current_pid_tgid() >> 32 };
	struct command_value *value;

	if (number != SYSCALL_BPF)
		return 0;
	key.command = syscall_argument_0(regs, false);
	value = commands_at(&key);
	if (value)
		table_add(&value->count, 1);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Hooks with alternatives, for test-program.c and test-load.c. */
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile bool is_asked = false;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, u32);
	__type(value, u64);
} counts SEC(".maps");

SEC("tp_btf/sys_enter")
int plain(void *ctx)
{
	return 0;
}

/* Of one hook three alternatives; the second in the object's order is the first in that of sections. */
SEC("tp/raw_syscalls/sys_exit")
int exit__tp(void *ctx)
{
	return 0;
}

SEC("tp_btf/sys_exit")
int exit__btf(void *ctx)
{
	return 0;
}

SEC("raw_tp/sys_exit")
int exit__raw(void *ctx)
{
	return 0;
}

SEC("fexit/udp_sendmsg")
int send__fexit__ipv4(void *ctx)
{
	return 0;
}

SEC("fexit/udpv6_sendmsg")
int send__fexit__ipv6(void *ctx)
{
	return 0;
}

SEC("iter/bpf_map_elem")
int visit(void *ctx)
{
	return 0;
}

SEC("?iter/task")
int walk(void *ctx)
{
	return 0;
}

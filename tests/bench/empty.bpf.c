/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The floor: what a hook costs whose program does nothing. One program for each hook of a hot collector. */
#include "kernel.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define EMPTY(NAME, HOOK)                                                                          \
	SEC("tp_btf/" HOOK)                                                                        \
	int NAME(void *ctx)                                                                        \
	{                                                                                          \
		return 0;                                                                          \
	}

EMPTY(sys_exit, "sys_exit")
EMPTY(sched_switch, "sched_switch")
EMPTY(sock_send_length, "sock_send_length")
EMPTY(sock_recv_length, "sock_recv_length")
EMPTY(inet_sock_set_state, "inet_sock_set_state")

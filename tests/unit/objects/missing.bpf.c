/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Hooks whose best alternatives no kernel has, for test-load.c. */
#include "kernel.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define ALTERNATIVE(NAME, SECTION)                                                                 \
	SEC(SECTION)                                                                               \
	int NAME(u64 *ctx)                                                                         \
	{                                                                                          \
		return 0;                                                                          \
	}

ALTERNATIVE(enter__btf, "tp_btf/no_such_tracepoint_1")
ALTERNATIVE(enter__fexit, "fexit/no_such_function_1")
ALTERNATIVE(leave__btf, "tp_btf/no_such_tracepoint_2")
ALTERNATIVE(leave__fexit, "fexit/no_such_function_2")
ALTERNATIVE(function, "fentry/no_such_function_3")
ALTERNATIVE(sound, "tp_btf/sched_switch")

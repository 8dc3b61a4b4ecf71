/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Compares more than the compiler does without a call. */
#include "kernel.h"

char LICENSE[] SEC("license") = "GPL";

char one[64], other[64];

SEC("raw_tp/sys_enter")
int enter(void *unused)
{
	return __builtin_memcmp(one, other, sizeof(one));
}

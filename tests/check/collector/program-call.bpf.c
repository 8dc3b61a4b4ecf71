/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls that do more than watch, in a program and in a function of its own. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

static __attribute__((noinline)) int stop(void *ctx)
{
	bpf_send_signal(9);
	return ctx != 0;
}

SEC("kprobe/vfs_read")
int called(void *ctx)
{
	bpf_override_return(ctx, -1);
	return stop(ctx);
}

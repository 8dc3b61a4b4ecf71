/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include "socket.h"

struct proto_accept_arg { /* 6.10 */
	int flags;
} __attribute__((preserve_access_index));

/*
 * An argument, in one line: the compiler must not make one load of two, from an address that
 * depends on the kernel, because the verifier refuses that.
 */
#define accepted_at(ctx, n)                                                                        \
	({                                                                                         \
		u64 at_ = (ctx)[n];                                                                \
		asm volatile("/* " #n " */" : "+r"(at_));                                          \
		(struct sock *)at_;                                                                \
	})

/* What inet_csk_accept() has returned, in fexit: until 6.9 it had four arguments, then two. */
static __always_inline struct sock *accepted_of(u64 *ctx)
{
	if (bpf_core_type_exists(struct proto_accept_arg))
		return accepted_at(ctx, 2);
	return accepted_at(ctx, 4);
}

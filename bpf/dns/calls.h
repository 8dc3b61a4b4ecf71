/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * The functions of the C library that look up a name, and how they fail. They do not call each
 * other, so each lookup is seen once. The object that includes this defines
 *
 *     static __always_inline int lookup_begin(struct pt_regs *ctx);
 *     static __always_inline int lookup_end(enum dns_error error);
 */
#include "function.h"
#include "uprobe.h"

/* What getaddrinfo() returns, negated (netdb.h of glibc). */
enum dns_error {
	DNS_ERROR_NONE,
	DNS_ERROR_EAI_BADFLAGS,
	DNS_ERROR_EAI_NONAME,
	DNS_ERROR_EAI_AGAIN,
	DNS_ERROR_EAI_FAIL,
	DNS_ERROR_EAI_NODATA,
	DNS_ERROR_EAI_FAMILY,
	DNS_ERROR_EAI_SOCKTYPE,
	DNS_ERROR_EAI_SERVICE,
	DNS_ERROR_EAI_ADDRFAMILY,
	DNS_ERROR_EAI_MEMORY,
	DNS_ERROR_EAI_SYSTEM,
	DNS_ERROR_EAI_OVERFLOW,
	DNS_ERROR_FAILED = 255, /* of gethostbyname(), which says why in a variable of the thread */
};

#define LOOKUP(function, error)                                                                    \
	SEC("uprobe/libc.so.6:" #function)                                                         \
	int function##_begin(struct pt_regs *ctx)                                                  \
	{                                                                                          \
		return KEEP_STACK(ctx, lookup_begin(ctx));                                         \
	}                                                                                          \
	SEC("uretprobe/libc.so.6:" #function)                                                      \
	int function##_end(struct pt_regs *ctx)                                                    \
	{                                                                                          \
		return KEEP_STACK(ctx, lookup_end(error));                                         \
	}

#define LOOKUPS                                                                                    \
	LOOKUP(getaddrinfo, -(int)function_result(ctx))                                            \
	LOOKUP(gethostbyname, function_result(ctx) ? DNS_ERROR_NONE : DNS_ERROR_FAILED)            \
	LOOKUP(gethostbyname2, function_result(ctx) ? DNS_ERROR_NONE : DNS_ERROR_FAILED)

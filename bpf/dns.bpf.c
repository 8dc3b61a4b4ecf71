/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long programs wait for the C library to look up a name. Only functions that do not call each
 * other are hooked, so each lookup counts once. The file with the functions is in dns.conf.
 */
#include "owner.h"
#include "hist.h"
#include "table.h"
#include "function.h"
#include "uprobe.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

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

struct lookup_key {
	struct owner owner;
	enum dns_error error;
	u32 unused;
};

TABLE(lookups, struct lookup_key, struct hist_time, 3);

STORAGE(lookups_begun, TASK, 0, u64);

static __always_inline int lookup_begin(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 *began_ns = bpf_task_storage_get(&lookups_begun, task, NULL,
					     BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (began_ns)
		*began_ns = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int lookup_end(u32 error)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 *began_ns = bpf_task_storage_get(&lookups_begun, task, NULL, 0), ns;
	struct lookup_key key = {};

	if (!began_ns || !*began_ns)
		return 0;
	ns = bpf_ktime_get_ns() - *began_ns;
	*began_ns = 0;
	owner_of_task_seldom(&key.owner, task);
	key.error = error;
	hist_time_add_to(lookups, &key, ns);
	return 0;
}

#define LOOKUP(function, error)                                                                    \
	SEC("uprobe/libc.so.6:" #function)                                                         \
	int function##_begin(struct pt_regs *ctx)                                                  \
	{                                                                                          \
		return KEEP_STACK(ctx, lookup_begin());                                            \
	}                                                                                          \
	SEC("uretprobe/libc.so.6:" #function)                                                      \
	int function##_end(struct pt_regs *ctx)                                                    \
	{                                                                                          \
		return KEEP_STACK(ctx, lookup_end(error));                                         \
	}

LOOKUP(getaddrinfo, -(int)function_result(ctx))
LOOKUP(gethostbyname, function_result(ctx) ? DNS_ERROR_NONE : DNS_ERROR_FAILED)
LOOKUP(gethostbyname2, function_result(ctx) ? DNS_ERROR_NONE : DNS_ERROR_FAILED)

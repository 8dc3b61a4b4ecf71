/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TCP connections that a process accepts, one event for each. */
#include "event.h"
#include "function.h"

#include "socket/accepted.h"
#include "socket/ends.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct accept_event {
	val_boot_ns time;
	lbl_cgroup cgroup;
	struct caller caller;
	struct ends ends;
};

EVENTS(accepts);
const struct accept_event *accept_event__unused; /* so that the compiler keeps the type */

/* sk: NULL if there was nothing to accept */
static __always_inline int accept_report(const struct sock *sk)
{
	struct accept_event event = {};

	if (!sk || BPF_CORE_READ(sk, sk_protocol) != SOCKET_PROTOCOL_TCP ||
	    !event_is_admitted_of(accepts, socket_cgroup_read(sk)))
		return 0;
	event.time = bpf_ktime_get_boot_ns();
	event.cgroup = socket_cgroup_read(sk);
	caller_read(&event.caller);
	ends_read(&event.ends, &sk->__sk_common, local_port_of(sk));
	event_send(accepts, &event, sizeof(event));
	return 0;
}

SEC("fexit/inet_csk_accept")
int accept_end__fexit(u64 *ctx)
{
	return accept_report(accepted_of(ctx));
}

/* For arm64 before 6.4, which has no fexit. */
SEC("kretprobe/inet_csk_accept")
int accept_end__kretprobe(struct pt_regs *ctx)
{
	return accept_report((struct sock *)function_result(ctx));
}

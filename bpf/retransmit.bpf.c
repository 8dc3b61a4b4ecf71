/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP segments that are sent again, one event for each packet of them. SYN/ACKs are sent again by a
 * function of their own.
 */
#include "event.h"

#include "socket/ends.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sk_buff {
	char cb[48];
};

struct tcp_skb_cb {
	u16 tcp_gso_segs;
};

struct trace_event_raw_tcp_retransmit_skb {
	int err; /* 6.17 */
};
#pragma clang attribute pop

struct retransmit_event {
	val_boot_ns time;
	lbl_cgroup cgroup;
	struct ends ends;
	enum connection_state state;
	u32 segments;
	u32 unused;
};

EVENTS(retransmits);
const struct retransmit_event *retransmit_event__unused; /* so that the compiler keeps the type */

/* end: the socket, or a half-open connection */
static __always_inline int retransmit_report(const struct sock *sk, const struct sock_common *end,
					     u32 local_port, u32 state, u32 segments)
{
	struct retransmit_event event = { .state = state, .segments = segments };

	if (!event_is_admitted_of(retransmits, socket_cgroup_read(sk)))
		return 0;
	event.time = bpf_ktime_get_boot_ns();
	event.cgroup = socket_cgroup_read(sk);
	ends_read(&event.ends, end, local_port);
	event_send(retransmits, &event, sizeof(event));
	return 0;
}

/* The event has a third argument since it also happens if nothing could be sent: an error. */
SEC("tp_btf/tcp_retransmit_skb")
int segment_retransmit(u64 *ctx)
{
	const struct sock *sk = (const struct sock *)ctx[0];
	const struct tcp_skb_cb *control = (void *)((const struct sk_buff *)ctx[1])->cb;

	if (bpf_core_field_exists(struct trace_event_raw_tcp_retransmit_skb, err) && (int)ctx[2])
		return 0;
	return retransmit_report(sk, &sk->__sk_common, local_port_of(sk), sk->__sk_common.skc_state,
				 BPF_CORE_READ(control, tcp_gso_segs));
}

SEC("tp_btf/tcp_retransmit_synack")
int BPF_PROG(synack_retransmit, const struct sock *listener, const struct request_sock *request)
{
	const struct sock_common *end = &request->__req_common;

	return retransmit_report(listener, end, end->skc_num, STATE_SYN_RECEIVED, 1);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Attempts to connect with TCP, one event for each when it succeeds or fails. */
#include "event.h"

#include "socket/ends.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile prm_ns min_duration = 0;
const volatile bool only_failed = false;

struct connect_event {
	val_boot_ns time;
	lbl_cgroup cgroup;
	struct caller caller;
	struct ends ends;
	val_ns duration;
	lbl_errno error;
	u32 unused;
};

EVENTS(connects);
const struct connect_event *connect_event__unused; /* so that the compiler keeps the type */

struct attempt {
	u64 began_ns; /* 0: it has been decided */
	struct caller caller;
};

STORAGE(connects_begun, SK, 0, struct attempt);

static __always_inline void connect_begin(struct sock *sk, bool is_again)
{
	struct attempt *attempt = bpf_sk_storage_get(&connects_begun, sk, NULL,
						     BPF_SK_STORAGE_GET_F_CREATE);

	if (!attempt || (is_again && attempt->began_ns))
		return;
	attempt->began_ns = bpf_ktime_get_boot_ns();
	caller_read(&attempt->caller);
}

static __always_inline void connect_end(struct sock *sk, bool has_failed)
{
	struct attempt *attempt = bpf_sk_storage_get(&connects_begun, sk, NULL, 0);
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct connect_event event = {};

	if (!attempt || !attempt->began_ns || !tp)
		return;
	event.time = bpf_ktime_get_boot_ns();
	event.duration = event.time - attempt->began_ns;
	attempt->began_ns = 0;
	if ((only_failed && !has_failed) || event.duration < min_duration ||
	    !event_is_admitted_of(connects, socket_cgroup_read(sk)))
		return;
	event.caller = attempt->caller;
	event.cgroup = socket_cgroup_read(sk);
	ends_read(&event.ends, &sk->__sk_common, local_port_of(sk));
	if (has_failed)
		event.error = connection_error(sk, tp, STATE_SYN_SENT);
	event_send(connects, &event, sizeof(event));
}

static __always_inline int state_follow(struct sock *sk, int from, int to, bool is_again)
{
	if (sk->sk_protocol != SOCKET_PROTOCOL_TCP)
		return 0;
	if (to == STATE_SYN_SENT)
		connect_begin(sk, is_again);
	else if ((from == STATE_SYN_SENT || from == STATE_SYN_RECEIVED) && to != STATE_SYN_RECEIVED)
		connect_end(sk, to == STATE_CLOSED);
	return 0;
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(state_change, struct sock *sk, int from, int to)
{
	return state_follow(sk, from, to, false);
}

/* The same event once more, for when the kernel skips the first program. */
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(state_change_again, struct sock *sk, int from, int to)
{
	return state_follow(sk, from, to, true);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP connections that end, one event for each. The kernel has counted the bytes in the socket. The
 * process is known only while it connects, accepts or closes, so the socket keeps it until the end.
 */
#include "event.h"

#include "socket/accepted.h"
#include "socket/ends.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define ECONNABORTED 103

struct connection_event {
	val_boot_ns time;
	lbl_cgroup cgroup;
	struct caller caller;
	enum tcp_role role;
	struct ends ends;
	lbl_errno error;
	u64 sent;
	u64 received;
	u64 retransmits;
	val_ns duration;
};

EVENTS(connections);
const struct connection_event *connection_event__unused; /* so that the compiler keeps the type */

struct opened {
	u64 established_ns; /* 0: it is not, or its end has been reported */
	enum tcp_role role;
	struct caller caller;
};

STORAGE(connections_opened, SK, 0, struct opened);

static __always_inline struct opened *opened_of(struct sock *sk)
{
	return bpf_sk_storage_get(&connections_opened, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
}

/* If the kernel has no error and nobody has sent a FIN, the program has reset the connection. */
static __always_inline u32 end_error(struct sock *sk, int from)
{
	if (!sk->sk_err && (from == STATE_ESTABLISHED || from == STATE_CLOSE_WAIT))
		return ECONNABORTED;
	return sk->sk_err;
}

static __always_inline void connection_report(struct sock *sk, struct tcp_sock *tp, int from,
					      const struct opened *opened, u64 established_ns)
{
	struct connection_event event = { .role = opened->role, .caller = opened->caller };

	event.time = bpf_ktime_get_boot_ns();
	event.duration = event.time - established_ns;
	event.cgroup = socket_cgroup_read(sk);
	ends_read(&event.ends, &sk->__sk_common, local_port_of(sk));
	event.sent = tcp_sent(tp);
	event.received = tp->bytes_received;
	/* A FIN is one byte of it. */
	if (event.received && sk->__sk_common.skc_flags & SOCKET_FLAG_DONE)
		event.received--;
	event.retransmits = tp->total_retrans;
	event.error = end_error(sk, from);
	event_send(connections, &event, sizeof(event));
}

static __always_inline void connection_end(struct sock *sk, int from)
{
	struct opened *opened = bpf_sk_storage_get(&connections_opened, sk, NULL, 0);
	u64 established_ns = opened ? opened->established_ns : 0;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);

	if (!established_ns || !tp)
		return;
	opened->established_ns = 0;
	if (!opened->caller.pid && end_error(sk, from) == ECONNABORTED && !sk->sk_err)
		caller_read(&opened->caller);
	if (event_is_admitted_of(connections, socket_cgroup_read(sk)))
		connection_report(sk, tp, from, opened, established_ns);
}

static __always_inline void connection_open(struct sock *sk, int to)
{
	struct opened *opened = opened_of(sk);

	if (!opened)
		return;
	if (to == STATE_SYN_SENT) {
		opened->established_ns = 0;
		opened->role = TCP_ROLE_CLIENT;
		caller_read(&opened->caller);
	} else if (!opened->established_ns) {
		opened->established_ns = bpf_ktime_get_boot_ns();
		opened->role = opened->role ?: TCP_ROLE_SERVER;
	}
}

/* A process closes its end. It is the best that is known if the kernel refuses the last program. */
static __always_inline void connection_close(struct sock *sk)
{
	struct opened *opened = bpf_sk_storage_get(&connections_opened, sk, NULL, 0);

	if (opened && !opened->caller.pid)
		caller_read(&opened->caller);
}

static __always_inline int state_follow(struct sock *sk, int from, int to)
{
	bool is_opening = from == STATE_SYN_SENT || from == STATE_SYN_RECEIVED;

	if (sk->sk_protocol != SOCKET_PROTOCOL_TCP || from == to)
		return 0;
	if (to == STATE_CLOSED)
		connection_end(sk, from);
	else if (to == STATE_SYN_SENT || (is_opening && to != STATE_SYN_RECEIVED))
		connection_open(sk, to);
	else if (to == STATE_FIN_WAIT_1 || to == STATE_LAST_ACK)
		connection_close(sk);
	return 0;
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(state_change, struct sock *sk, int from, int to)
{
	return state_follow(sk, from, to);
}

/* The same event once more, for when the kernel skips the first program. */
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(state_change_again, struct sock *sk, int from, int to)
{
	return state_follow(sk, from, to);
}

/* A process may accept a connection before the kernel makes it established. */
SEC("fexit/inet_csk_accept")
int connection_accept(u64 *ctx)
{
	struct sock *sk = accepted_of(ctx);
	struct opened *opened = sk ? opened_of(sk) : NULL;

	if (opened)
		caller_read(&opened->caller);
	return 0;
}

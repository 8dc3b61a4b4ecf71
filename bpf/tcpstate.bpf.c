/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP states: transitions are counted when they happen, connections at each collection.
 *
 * Transitions are the kernel's. TIME_WAIT and the half-open connections of a listener are separate small
 * objects there, so a socket that goes to TIME_WAIT is seen to change to closed.
 *
 * The gauge counts what ss shows: sockets, half-open connections and TIME_WAIT, in the agent's network
 * namespace, because the kernel lists no other. TIME_WAIT has no owner: nothing in it says whose it was.
 */
#include "socket.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct inet_timewait_sock {
	unsigned char tw_substate;
};

struct tcp_timewait_sock {
	struct inet_timewait_sock tw_sk;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

#pragma clang attribute pop

struct transition_key {
	struct owner owner;
	enum connection_state from;
	enum connection_state to;
};

struct transition_value {
	u64 count;
};

struct connection_key {
	struct owner owner;
	enum connection_state state;
	u32 unused;
};

struct connection_value {
	val_tally count;
};

TABLE(transitions, struct transition_key, struct transition_value, 1024);
TABLE(connections, struct connection_key, struct connection_value, 512);

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(state_change, struct sock *sk, int from, int to)
{
	struct transition_key key = {};
	struct transition_value *value;

	/* A socket that was never used changes from closed to closed. */
	if (sk->sk_protocol != SOCKET_PROTOCOL_TCP || from == to)
		return 0;
	socket_process_follow(sk, to);
	owner_of_socket_seldom(&key.owner, sk);
	key.from = from;
	key.to = to;
	value = transitions_at(&key);
	if (value)
		value->count++;
	return 0;
}

/* For sockets that existed before: the process that holds them. */
SEC("iter/task_file")
int holder_note(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct socket *socket;
	struct sock *sk;

	if (!task || !file)
		return 0;
	socket = bpf_sock_from_file(file);
	sk = socket ? socket->sk : NULL;
	if (!sk || sk->sk_protocol != SOCKET_PROTOCOL_TCP)
		return 0;
	if (!bpf_sk_storage_get(&socket_processes, sk, NULL, 0))
		socket_process_set(sk, task);
	return 0;
}

/* Sockets, connection requests and TIME_WAIT are in the same kernel table; the state tells them apart. */
static __always_inline void connection_describe(struct connection_key *key, struct sock_common *common)
{
	struct tcp_timewait_sock *waiting;
	struct sock *sk;

	key->state = common->skc_state;
	if (key->state == STATE_REQUEST) {
		key->state = STATE_SYN_RECEIVED;
		key->owner.cgroup = socket_cgroup_read(common->skc_listener);
		return;
	}
	if (key->state == STATE_TIME_WAIT) {
		waiting = bpf_skc_to_tcp_timewait_sock(common);
		if (waiting)
			key->state = waiting->tw_sk.tw_substate;
		return;
	}
	sk = (struct sock *)bpf_skc_to_tcp_sock(common);
	if (sk)
		owner_of_socket_seldom(&key->owner, sk);
}

const volatile bool count_connections = true;

SEC("iter/tcp")
int connection_count(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct connection_key key = {};
	struct connection_value *value;

	if (!common)
		return 0;
	connection_describe(&key, common);
	value = connections_at(&key);
	if (value)
		value->count++;
	return 0;
}

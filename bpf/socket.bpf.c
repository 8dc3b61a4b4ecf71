/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The collectors that look at sockets: network, tcpstate and tcppeer. They share one program at the
 * changes of state of a TCP socket, one record for each socket, and one walk over all records
 * before each collection. What they count is in socket/; this file calls it at the hooks. A socket
 * that was open before the programs attached is counted from then on.
 */
#include "socket/settings.h"
#include "socket/changes.h"
#include "socket/udp.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	struct sock *sk; /* NULL in the last call of a walk */
	void *value;
};

#pragma clang attribute pop

static __always_inline int state_follow(struct sock *sk, int from, int to, bool is_again)
{
	struct socket_record *record;
	struct tcp_sock *tp;

	/* A socket that was never used changes from closed to closed. */
	if (sk->sk_protocol != SOCKET_PROTOCOL_TCP || from == to)
		return 0;
	record = bpf_sk_storage_get(&socket_records, sk, NULL, 0);
	if (is_again && record && record->state == to)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	record = record_at_change(sk, tp, record, from, to);
	if (record)
		change_follow(sk, tp, record, from, to);
	return 0;
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(state_change, struct sock *sk, int from, int to)
{
	return state_follow(sk, from, to, false);
}

/*
 * The same event once more, for when the kernel skips the first program: it hardly ever skips both.
 */
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(state_change_again, struct sock *sk, int from, int to)
{
	return state_follow(sk, from, to, true);
}

static __always_inline int socket_finish(struct sock *sk)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);

	if (tp)
		change_end(sk, tp);
	return 0;
}

SEC("tp_btf/tcp_destroy_sock")
int BPF_PROG(socket_end, struct sock *sk)
{
	return socket_finish(sk);
}

/*
 * Softirqs are mostly off there, so nothing preempts the first one. But they are on if a packet
 * came during a close.
 */
SEC("tp_btf/tcp_destroy_sock")
int BPF_PROG(socket_end_again, struct sock *sk)
{
	return socket_finish(sk);
}

SEC("tp_btf/tcp_retransmit_synack")
int BPF_PROG(synack_retransmit, struct sock *sk, struct request_sock *request)
{
	synack_count(sk, &request->__req_common);
	return 0;
}

static __always_inline void walk_end(void)
{
	seeded_ns = seeded_ns ?: bpf_ktime_get_ns();
	if (tcpstate_on)
		time_wait_tally();
}

/*
 * met: the record that the walk has met, NULL: it meets sockets. A socket may be closed meanwhile,
 * and its memory be another socket's at once. Then its record is not the one that the walk has met:
 * a record's memory stays what it is until the walk ends. So all of it is read before the record.
 */
static __always_inline void walk_step(struct sock *sk, struct tcp_sock *tp,
				      struct socket_record *met)
{
	struct socket_record *record = met ?: bpf_sk_storage_get(&socket_records, sk, NULL, 0);
	struct peer peer = {};
	struct tcp_sums now;
	int half_open = 0;
	u32 last;

	if (!record)
		return;
	last = *(volatile u32 *)&record->state;
	tcp_read(sk, tp, &now);
	if (tcppeer_on)
		peer_read(&sk->__sk_common, local_port_of(sk), &peer);
	if (tcpstate_on && now.state == STATE_LISTEN)
		half_open = half_open_of(sk);
	record = bpf_sk_storage_get(&socket_records, sk, NULL, 0);
	if (!record || (met && record != met))
		return;
	if (tcpstate_on && now.state != STATE_CLOSED)
		state_add(&record->owner, now.state, 1);
	if (tcpstate_on && half_open > 0)
		state_add(&record->owner, STATE_SYN_RECEIVED, half_open);
	if (now.state != STATE_CLOSED && last != STATE_CLOSED)
		changes_catch_up(record, now.type, last, now.state, &peer);
	if (network_on || tcppeer_on)
		tcp_account(record, &now, &peer);
}

/*
 * All sockets that have a record, in any network namespace. First in this file, so bpfpush prefers
 * it.
 */
SEC("iter/bpf_sk_storage_map")
int sockets_walk(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct socket_record *record = ctx->value;
	struct sock *sk = ctx->sk;
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;

	if (!sk)
		walk_end();
	else if (tp && record)
		walk_step(sk, tp, record);
	return 0;
}

/* Where the kernel can stop in that one: the sockets of the agent's network namespace. */
SEC("iter/tcp")
int sockets_walk__tcp(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct tcp_sock *tp = common ? bpf_skc_to_tcp_sock(common) : NULL;

	if (!common)
		walk_end();
	else if (tp)
		walk_step((struct sock *)tp, tp, NULL);
	return 0;
}

/* All sockets of the agent's network namespace, held by a process or not. */
SEC("iter/tcp")
int namespace_seed(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct tcp_sock *tp = common ? bpf_skc_to_tcp_sock(common) : NULL;

	agent_net = (u64)net_of_agent();
	if (tp)
		record_of_old((struct sock *)tp, tp);
	return 0;
}

/* All sockets that a process holds, in any network namespace. */
SEC("iter/task_file")
int process_seed(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct socket_record *record;
	struct socket *socket;
	struct tcp_sock *tp;
	struct sock *sk;

	if (!task || !file)
		return 0;
	socket = bpf_sock_from_file(file);
	sk = socket ? socket->sk : NULL;
	if (!sk || sk->sk_protocol != SOCKET_PROTOCOL_TCP)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	record = record_of_old(sk, tp);
	if (OWNER_PER_PROCESS && record && !record->owner.process)
		record->owner.process =
			process_of_socket(sk, task, sk->__sk_common.skc_state == STATE_LISTEN);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * What is known of a TCP socket: its owner, how much of what the kernel counts in it has been
 * counted here, and the last state in which the programs saw it. A socket gets its record at the
 * first change of state that they see. Two walks at the start give one to the sockets that exist
 * already. Each later walk visits the sockets that have a record: those of all network namespaces,
 * held by a process or not.
 *
 * The kernel skips a program while another run of it on the same CPU is preempted or interrupted.
 * So a socket may change its state unseen, even all its life. Then the next change that is seen,
 * the next walk, or the end of the socket catches up (changes.h).
 *
 * The process of a socket is the one that connected or listened, because only then the current task
 * is known to be the socket's. An accepted socket inherits its listener's. The kernel does not copy
 * records to accepted sockets: if it had no memory for the copy, it would refuse the connection. It
 * copies only the listener's process, and only if a collector asks for processes.
 */

#include "owner.h"
#include "tcp.h"

#define TASK_KERNEL 0x00200000 /* PF_KTHREAD */
#define LONGEST_UNHELD_NS (120 * NSEC_PER_SEC)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct nsproxy {
	struct net *net_ns;
};

struct task_struct___in_namespaces {
	struct nsproxy *nsproxy;
};

#pragma clang attribute pop

/* What the kernel has counted in a socket. */
struct tcp_sums {
	u64 received;
	u64 sent;
	/* in SYN_RECEIVED 0: there they are SYN/ACKs, which are counted when they are sent */
	u64 retransmits;
	u64 acked; /* bytes, plus 1 */
	u64 rtt_ns;
	u32 type; /* enum network_type */
	u32 state; /* enum connection_state */
};

struct socket_record {
	struct owner owner;
	u64 received; /* this and the next two: what has been counted */
	u64 sent;
	u64 retransmits;
	u64 acked; /* bytes acknowledged when the round trip was last read, plus 1 */
	u64 established_ns; /* or opened, until it is seen that it is established; 0: not seen */
	enum tcp_role role;
	u32 state; /* enum connection_state: that was seen last; 0: none of a young socket */
};

STORAGE(socket_records, SK, 0, struct socket_record);

STORAGE(listener_processes, SK, BPF_F_CLONE, u64);

static __noinline int tcp_read(struct sock *sk, struct tcp_sock *tp, struct tcp_sums *sums)
{
	sums->state = sk->__sk_common.skc_state;
	sums->type = socket_type(&sk->__sk_common);
	sums->received = *(volatile u64 *)&tp->bytes_received;
	/* A FIN is one byte of it. */
	if (sums->received && sk->__sk_common.skc_flags & SOCKET_FLAG_DONE)
		sums->received--;
	sums->sent = tcp_sent(tp);
	sums->retransmits = sums->state == STATE_SYN_RECEIVED ? 0 : tp->total_retrans;
	sums->acked = tp->bytes_acked + 1;
	sums->rtt_ns = tp->srtt_us * 1000ull / 8;
	return 0;
}

/*
 * Which side connected, for a connection whose beginning was not seen: the SYN counts as an
 * acknowledged byte on the side that sent it first, and not on the other
 * (tcp_create_openreq_child() starts after it). So does a FIN, once it is sent. At the end nothing
 * tells whether it was; but who has the peer's FIN mostly has sent one.
 */
static __always_inline enum tcp_role role_guess(struct sock *sk, struct tcp_sock *tp)
{
	u8 state = sk->__sk_common.skc_state;
	u64 beyond;

	if (state == STATE_SYN_SENT)
		return TCP_ROLE_CLIENT;
	if (state == STATE_SYN_RECEIVED)
		return TCP_ROLE_SERVER;
	if (state == STATE_LISTEN || !tp->rcv_nxt)
		return TCP_ROLE_NONE;
	beyond = tp->bytes_acked + (u32)(tp->snd_nxt - tp->snd_una) - tcp_sent(tp);
	if (state == STATE_CLOSED)
		beyond -= !!(sk->__sk_common.skc_flags & SOCKET_FLAG_DONE);
	else if (state != STATE_ESTABLISHED && state != STATE_CLOSE_WAIT)
		beyond -= tp->snd_nxt == tp->write_seq;
	return beyond == 1 ? TCP_ROLE_CLIENT : !beyond ? TCP_ROLE_SERVER : TCP_ROLE_NONE;
}

/* Of the agent, which runs the walks. */
static __always_inline struct net *net_of_agent(void)
{
	struct task_struct___in_namespaces *agent = (void *)bpf_get_current_task_btf();

	return BPF_CORE_READ(agent, nsproxy, net_ns);
}

u64 seeded_ns; /* when all sockets that a walk can find had their records; 0: not yet */
u64 agent_net;

/*
 * Has a socket without a record been opened since? The walks at the start do not find those of
 * other network namespaces that no process holds. These do not live long.
 */
static __always_inline bool socket_is_young(struct sock *sk)
{
	return seeded_ns && ((u64)sk->__sk_common.skc_net.net == agent_net ||
			     bpf_ktime_get_ns() - seeded_ns > LONGEST_UNHELD_NS);
}

/* From here on everything counts; with is_whole, all that was before counts too. */
static __noinline int record_fill(struct socket_record *record, struct sock *sk,
				  struct tcp_sock *tp, bool is_whole)
{
	struct tcp_sums now;

	record->owner.cgroup = socket_cgroup_read(sk);
	record->role = role_guess(sk, tp);
	if (is_whole) {
		record->state = record->role == TCP_ROLE_SERVER ? STATE_LISTEN : 0;
		return 0;
	}
	tcp_read(sk, tp, &now);
	record->state = now.state;
	record->received = now.received;
	record->sent = now.sent;
	record->retransmits = tp->total_retrans;
	record->acked = now.acked;
	return 0;
}

/* The process that now holds the socket, for its record, and for what a listener accepts. */
static __always_inline u64 process_of_socket(struct sock *sk, struct task_struct *task,
					     bool is_listening)
{
	u64 id = process_id(task), *inherited;

	if (!OWNER_PER_PROCESS || task->flags & TASK_KERNEL)
		return 0;
	if (is_listening) {
		inherited = bpf_sk_storage_get(&listener_processes, sk, &id,
					       BPF_SK_STORAGE_GET_F_CREATE);
		if (inherited)
			*inherited = id;
	}
	process_remember(task, id);
	return id;
}

/*
 * A socket connects, listens, or is accepted. Still in its old state, an accepted one is a copy of
 * its listener.
 */
static __always_inline void record_open(struct socket_record *record, struct sock *sk,
					int from, int to)
{
	u64 *inherited;

	record->acked = 0;
	record->state = from;
	record->established_ns = to == STATE_LISTEN ? 0 : bpf_ktime_get_ns();
	record->role = to == STATE_SYN_SENT ? TCP_ROLE_CLIENT : to == STATE_LISTEN ? TCP_ROLE_NONE :
		       TCP_ROLE_SERVER;
	if (!OWNER_PER_PROCESS)
		return;
	if (to == STATE_SYN_RECEIVED) {
		inherited = bpf_sk_storage_get(&listener_processes, sk, NULL, 0);
		record->owner.process = inherited ? *inherited : 0;
	} else {
		record->owner.process = process_of_socket(sk, bpf_get_current_task_btf(),
							  to == STATE_LISTEN);
	}
}

/*
 * The record of a socket that changes its state, made if there was none. NULL: no memory; a later
 * change catches up.
 */
static __always_inline struct socket_record *record_at_change(struct sock *sk, struct tcp_sock *tp,
							      struct socket_record *record,
							      int from, int to)
{
	bool is_opening = to == STATE_SYN_SENT || to == STATE_LISTEN ||
			  (from == STATE_LISTEN && to == STATE_SYN_RECEIVED);
	struct socket_record fresh = {};

	if (record && !is_opening)
		return record;
	record_fill(&fresh, sk, tp, !is_opening && socket_is_young(sk));
	if (is_opening)
		record_open(&fresh, sk, from, to);
	if (!record)
		return bpf_sk_storage_get(&socket_records, sk, &fresh, BPF_SK_STORAGE_GET_F_CREATE);
	*record = fresh;
	return record;
}

/* The record of a socket whose opening was not seen; NULL: it is closed. */
static __always_inline struct socket_record *record_of_old(struct sock *sk, struct tcp_sock *tp)
{
	struct socket_record *record = bpf_sk_storage_get(&socket_records, sk, NULL, 0), fresh = {};

	if (record || sk->__sk_common.skc_state == STATE_CLOSED)
		return record;
	record_fill(&fresh, sk, tp, socket_is_young(sk));
	return bpf_sk_storage_get(&socket_records, sk, &fresh, BPF_SK_STORAGE_GET_F_CREATE);
}

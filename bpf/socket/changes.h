/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * The changes of state of a socket, each counted once. A record knows the last state that was seen.
 * If the socket is found in another one, it changed its state unseen. There is one usual way to
 * each state, so what lies between is known, and is counted then. At the end of a socket, its flags
 * tell how it ended.
 */

#include "connections.h"
#include "states.h"

#define LONGEST_WAY 6 /* over LISTEN to LAST_ACK */

#define AFTER(before, state) ((u64)(before) << 4 * (state))
#define WAYS(to_established)                                                                \
	(AFTER(STATE_CLOSED, STATE_SYN_SENT) | AFTER(STATE_CLOSED, STATE_LISTEN) |          \
	 AFTER(STATE_LISTEN, STATE_SYN_RECEIVED) | AFTER(to_established, STATE_ESTABLISHED) |\
	 AFTER(STATE_ESTABLISHED, STATE_FIN_WAIT_1) | AFTER(STATE_ESTABLISHED, STATE_CLOSE_WAIT) |\
	 AFTER(STATE_FIN_WAIT_1, STATE_FIN_WAIT_2) | AFTER(STATE_FIN_WAIT_1, STATE_CLOSING) |\
	 AFTER(STATE_CLOSE_WAIT, STATE_LAST_ACK))

/* A number and no branches, so the verifier need not follow each way. 0: nothing was seen yet. */
static __always_inline u32 state_before(u32 state, enum tcp_role role)
{
	u64 ways = role == TCP_ROLE_SERVER ? WAYS(STATE_SYN_RECEIVED) : WAYS(STATE_SYN_SENT);

	return ways >> 4 * (state & 15) & 15;
}

/* error: of a connection that was never established, or 0 */
static __always_inline void change_count(struct socket_record *record, u32 type, u32 from,
					 u32 to, u32 error, const struct peer *peer)
{
	bool is_opening = from == STATE_SYN_SENT || from == STATE_SYN_RECEIVED;

	if (tcpstate_on)
		transition_count(record, from, to);
	if (!is_opening || (to != STATE_ESTABLISHED && !error))
		return;
	if (network_on)
		connection_count(record, type, from, error);
	if (tcppeer_on)
		peer_connection_count(record, from, error, peer);
}

/*
 * Counts the way from last, which the record held before the socket's state was read, to that
 * state. A change is seen before the socket has its new state, so a record may be ahead of its
 * socket. Then nothing is counted. Two CPUs may do this at once, so a compare-and-exchange decides
 * which of them counts.
 */
__noinline int changes_catch_up(struct socket_record *record, u32 type, u32 last, u32 to,
				const struct peer *peer)
{
	u32 at = to, before;

	if (!record || !peer || last == to)
		return 0;
	for (int i = 0; i < LONGEST_WAY && at != last; i++)
		at = state_before(at, record->role);
	if (at != last || __sync_val_compare_and_swap(&record->state, last, to) != last)
		return 0;
	for (int i = 0; i < LONGEST_WAY && to != last; i++) {
		before = state_before(to, record->role);
		if (!before)
			break;
		if (network_on && to == STATE_ESTABLISHED && !record->established_ns)
			record->established_ns = bpf_ktime_get_ns();
		change_count(record, type, before, to, 0, peer);
		to = before;
	}
	return 0;
}

static __always_inline void change_follow(struct sock *sk, struct tcp_sock *tp,
					  struct socket_record *record, u32 from, u32 to)
{
	bool is_opening = from == STATE_SYN_SENT || from == STATE_SYN_RECEIVED;
	u32 type = socket_type(&sk->__sk_common), error = 0;
	struct peer peer = {};
	struct tcp_sums now;

	if (tcppeer_on)
		peer_read(&sk->__sk_common, local_port_of(sk), &peer);
	/* First, because catching up may not know when a connection was established. */
	if (network_on && to == STATE_CLOSED && !is_opening)
		connection_end(record);
	changes_catch_up(record, type, record->state, from, &peer);
	record->state = to;
	if (from == STATE_SYN_RECEIVED && record->role == TCP_ROLE_SERVER)
		record->retransmits = tp->total_retrans;
	if (is_opening && to == STATE_CLOSED)
		error = connection_error(sk, tp, from);
	if (is_opening && to == STATE_ESTABLISHED)
		record->established_ns = bpf_ktime_get_ns();
	change_count(record, type, from, to, error, &peer);
	if ((network_on || tcppeer_on) && from != STATE_CLOSED) {
		tcp_read(sk, tp, &now);
		if (to != STATE_CLOSED)
			now.rtt_ns = 0; /* it is sampled once */
		tcp_account(record, &now, &peer);
	}
}

/* The state in which a socket was closed, from the one that was seen last. */
static __always_inline u32 state_at_end(struct sock *sk, struct tcp_sock *tp,
					const struct socket_record *record)
{
	bool has_peers_fin = sk->__sk_common.skc_flags & SOCKET_FLAG_DONE;
	u32 last = record->state;

	if (!last || last == STATE_SYN_SENT)
		last = tp->rcv_nxt ? STATE_ESTABLISHED : STATE_SYN_SENT;
	else if (last == STATE_SYN_RECEIVED ||
		 (last == STATE_LISTEN && record->role == TCP_ROLE_SERVER))
		last = STATE_ESTABLISHED;
	if (last == STATE_FIN_WAIT_1 && has_peers_fin)
		return STATE_FIN_WAIT_2;
	if ((last == STATE_ESTABLISHED || last == STATE_CLOSE_WAIT) && has_peers_fin && !sk->sk_err)
		return STATE_LAST_ACK;
	return last;
}

/* A socket is destroyed. Mostly its last change has been seen, or it was never used. */
static __always_inline void change_end(struct sock *sk, struct tcp_sock *tp)
{
	struct socket_record *record = bpf_sk_storage_get(&socket_records, sk, NULL, 0), fresh = {};

	if (!record && (tp->segs_out || tp->rcv_nxt) && socket_is_young(sk)) {
		record_fill(&fresh, sk, tp, true);
		record = bpf_sk_storage_get(&socket_records, sk, &fresh,
					    BPF_SK_STORAGE_GET_F_CREATE);
	}
	if (record && record->state != STATE_CLOSED)
		change_follow(sk, tp, record, state_at_end(sk, tp, record), STATE_CLOSED);
}

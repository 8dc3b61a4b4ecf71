/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * TCP traffic by owner. Nothing is counted when a message is sent or received. The kernel itself
 * counts each socket's bytes, retransmitted segments and round trip. They are read when the socket
 * changes its state, and at each collection from all open sockets. The socket's record holds what
 * has been counted, so each byte counts once, whatever reads first. The last change would be
 * enough, but the kernel may skip the program then, and nothing of a closed socket can be read
 * later. The program that closes a socket makes a change before, when most of the bytes have been
 * sent. A sent byte counts when it is first transmitted, a received byte when it has arrived in
 * order, whether or not the program ever reads it.
 */

#include "hist.h"
#include "peers.h"
#include "record.h"
#include "table.h"

struct tcp_key {
	struct owner owner;
	enum network_type type;
	u32 unused;
};

struct tcp_traffic {
	u64 received;
	u64 sent;
	u64 retransmits;
};

struct time_key {
	struct owner owner;
	enum tcp_role role;
	u32 unused;
};

struct time_value {
	struct hist_time rtt;
	struct hist_time duration;
};

TABLE(tcp, struct tcp_key, struct tcp_traffic, 2);
TABLE(times, struct time_key, struct time_value, 2);

static __always_inline struct time_value *time_value(const struct socket_record *record)
{
	struct time_key key = {};

	key.owner = owner_for(&record->owner, network_per_process);
	key.role = record->role;
	return times_at(&key);
}

/*
 * The growth from what has been counted to `now`, which becomes the new mark. A close and a
 * collection may look at the same socket on two CPUs at once, so a compare-and-exchange decides
 * which of them counts.
 */
__noinline u64 record_claim(u64 *counted, u64 now)
{
	u64 before;

	if (!counted) /* never, but the verifier wants to see it */
		return 0;
#pragma unroll
	for (int i = 0; i < 3; i++) {
		before = *(volatile u64 *)counted;
		if (now <= before || now - before > 1ull << 62)
			return 0;
		if (__sync_val_compare_and_swap(counted, before, now) == before)
			return now - before;
	}
	return 0;
}

static __always_inline void rtt_sample(struct socket_record *record, const struct tcp_sums *now)
{
	struct time_value *value;

	if (!now->rtt_ns || !record_claim(&record->acked, now->acked))
		return;
	value = time_value(record);
	if (value)
		hist_time_add_atomic(&value->rtt, now->rtt_ns);
}

static __always_inline void traffic_add(const struct socket_record *record, u32 type,
					const struct peer_value *grown)
{
	struct tcp_traffic *value;
	struct tcp_key key = {};

	key.owner = owner_for(&record->owner, network_per_process);
	key.type = type;
	value = tcp_at(&key);
	if (!value)
		return;
	table_add(&value->received, grown->received);
	table_add(&value->sent, grown->sent);
	table_add(&value->retransmits, grown->retransmits);
}

/* Global, as are others here: the verifier looks at it once, not on each path that leads to it. */
__noinline int tcp_account(struct socket_record *record, const struct tcp_sums *now,
			   const struct peer *peer)
{
	struct peer_value grown = {};

	if (!record || !now || !peer) /* never, but the verifier wants to see it */
		return 0;
	grown.received = record_claim(&record->received, now->received);
	grown.sent = record_claim(&record->sent, now->sent);
	grown.retransmits = record_claim(&record->retransmits, now->retransmits);
	if (grown.received | grown.sent | grown.retransmits) {
		if (network_on)
			traffic_add(record, now->type, &grown);
		if (tcppeer_on)
			peer_add(&record->owner, record->role, peer, &grown);
	}
	if (network_on)
		rtt_sample(record, now);
	return 0;
}

/* There may never be a connection for a SYN/ACK, so it counts for the listener. */
static __always_inline void synack_count(struct sock *listener, const struct sock_common *request)
{
	struct socket_record *record = bpf_sk_storage_get(&socket_records, listener, NULL, 0);
	struct peer_value grown = { .retransmits = 1 };
	struct tcp_key key = {};
	struct peer peer = {};
	struct owner owner = {};

	if (record)
		owner = record->owner;
	else
		owner.cgroup = socket_cgroup_read(listener);
	if (tcppeer_on) {
		peer_read(request, request->skc_num, &peer);
		peer_add(&owner, TCP_ROLE_SERVER, &peer, &grown);
	}
	if (!network_on)
		return;
	key.owner = owner_for(&owner, network_per_process);
	key.type = socket_type(request);
	table_add_to(tcp, &key, retransmits, 1);
}

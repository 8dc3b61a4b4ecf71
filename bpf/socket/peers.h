/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * TCP by the peer's address and the service's port: that of the listener, or the one that was
 * connected to. The other port is new for each connection, so it makes no key. IPv4 addresses are
 * mapped to IPv6, as the kernel has them in IPv6 sockets.
 */

#include "record.h"
#include "table.h"

struct peer {
	lbl_ipv6 address;
	u32 local_port;
	u32 remote_port;
};

struct peer_key {
	struct owner owner;
	lbl_ipv6 address;
	enum tcp_role role;
	u32 port;
};

struct peer_value {
	u64 connections;
	u64 received;
	u64 sent;
	u64 retransmits;
};

struct peer_failure_key {
	struct peer_key peer;
	lbl_errno error;
	u32 unused;
};

struct peer_failure {
	u64 count;
};

TABLE(peers, struct peer_key, struct peer_value, 16);
TABLE(peer_failures, struct peer_failure_key, struct peer_failure, 4);

/* socket: of a socket, or of a half-open connection */
static __always_inline void peer_read(const struct sock_common *socket, u32 local_port,
				      struct peer *ret_peer)
{
	u32 *word = (u32 *)&ret_peer->address;

	ret_peer->local_port = local_port;
	ret_peer->remote_port = __builtin_bswap16(socket->skc_dport);
	for (int i = 0; i < 4; i++)
		word[i] = socket->skc_v6_daddr.in6_u.u6_addr32[i];
	if (socket->skc_family == AF_INET6)
		return;
	word[0] = word[1] = 0;
	word[2] = __builtin_bswap32(0xffff);
	word[3] = socket->skc_daddr;
}

static __always_inline void peer_key_fill(struct peer_key *key, const struct owner *owner, u32 role,
					  const struct peer *peer)
{
	key->owner = owner_for(owner, tcppeer_per_process);
	key->address = peer->address;
	key->role = role;
	key->port = role == TCP_ROLE_SERVER ? peer->local_port : peer->remote_port;
}

/* grown: what all of it has grown by */
static __always_inline void peer_add(const struct owner *owner, u32 role, const struct peer *peer,
				     const struct peer_value *grown)
{
	struct peer_value *value;
	struct peer_key key = {};

	peer_key_fill(&key, owner, role, peer);
	value = peers_at(&key);
	if (!value)
		return;
	table_add(&value->connections, grown->connections);
	table_add(&value->received, grown->received);
	table_add(&value->sent, grown->sent);
	table_add(&value->retransmits, grown->retransmits);
}

static __always_inline void peer_fail(const struct owner *owner, u32 role,
				      const struct peer *peer, u32 error)
{
	struct peer_failure_key key = {};

	peer_key_fill(&key.peer, owner, role, peer);
	key.error = error;
	table_add_to(peer_failures, &key, count, 1);
}

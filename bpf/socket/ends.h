/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * For events about a TCP connection: its two ends, and the process that opened it. IPv4 addresses
 * are mapped to IPv6, as the kernel has them in IPv6 sockets.
 */

#include "tcp.h"

#define THREAD_NAME_BYTES 16

struct ends {
	enum network_type type;
	lbl_ipv6 local;
	u32 local_port;
	lbl_ipv6 peer;
	u32 peer_port;
};

struct caller {
	lbl_tgid pid; /* 0: not known */
	char thread[THREAD_NAME_BYTES];
};

static __always_inline void address_map(lbl_ipv6 *address, u32 ipv4)
{
	u32 *word = (u32 *)address;

	word[0] = word[1] = 0;
	word[2] = __builtin_bswap32(0xffff);
	word[3] = ipv4;
}

/* socket: of a socket, or of a half-open connection; in any context, of any pointer */
static __always_inline void ends_read(struct ends *ends, const struct sock_common *socket,
				      u32 local_port)
{
	ends->local_port = local_port;
	ends->peer_port = __builtin_bswap16(BPF_CORE_READ(socket, skc_dport));
	ends->type = NETWORK_TYPE_IPV4;
	if (BPF_CORE_READ(socket, skc_family) == AF_INET6) {
		const u32 *word = (const u32 *)&ends->peer;

		BPF_CORE_READ_INTO(&ends->local, socket, skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&ends->peer, socket, skc_v6_daddr);
		if (word[0] || word[1] || word[2] != __builtin_bswap32(0xffff))
			ends->type = NETWORK_TYPE_IPV6;
		return;
	}
	address_map(&ends->local, BPF_CORE_READ(socket, skc_rcv_saddr));
	address_map(&ends->peer, BPF_CORE_READ(socket, skc_daddr));
}

static __always_inline void caller_read(struct caller *caller)
{
	caller->pid = bpf_get_current_pid_tgid() >> 32;
	bpf_get_current_comm(caller->thread, sizeof(caller->thread));
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * Sockets: their types, their states by the names of OpenTelemetry, and their cgroups.
 *
 * The cgroup of a socket is the one that the kernel keeps in it: the cgroup that made the socket,
 * or the listener's for an accepted one. It never changes, and it is right in every context. Most
 * events of a socket happen in softirq context, on whatever task is running.
 */

#include "kernel.h"

#define AF_INET 2
#define AF_INET6 10
#define SOCKET_PROTOCOL_TCP 6
#define SOCKET_PROTOCOL_UDP 17
/* SOCK_DONE of enum sock_flags: the peer's FIN has been taken */
#define SOCKET_FLAG_DONE (1ul << 1)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

#ifndef __VMLINUX_H__
struct in6_addr {
	union {
		u32 u6_addr32[4];
	} in6_u;
};

struct sock;

struct net;

typedef struct {
	struct net *net;
} possible_net_t;

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport;
	u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	possible_net_t skc_net;
	unsigned long skc_flags;
};

struct sock_cgroup_data {
	struct cgroup *cgroup; /* 5.15 */
};

struct sock {
	struct sock_common __sk_common;
	u16 sk_protocol;
	int sk_err;
	u8 sk_shutdown;
	struct sock_cgroup_data sk_cgrp_data;
};

struct socket {
	struct sock *sk;
};

struct bpf_iter_meta;

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	u32 fd;
	struct file *file;
};
#endif

struct sock_cgroup_data___tagged {
	/* until 5.14: bit 0 means that it is not a pointer, bit 1 that it holds no reference */
	u64 val;
};

#pragma clang attribute pop

/* The kernel's numbers, the names of network.connection.state. */
enum connection_state {
	STATE_ESTABLISHED = 1,
	STATE_SYN_SENT,
	STATE_SYN_RECEIVED,
	STATE_FIN_WAIT_1,
	STATE_FIN_WAIT_2,
	STATE_TIME_WAIT,
	STATE_CLOSED,
	STATE_CLOSE_WAIT,
	STATE_LAST_ACK,
	STATE_LISTEN,
	STATE_CLOSING,
};

/*
 * The protocol on the wire, not the socket's: an IPv6 socket with an IPv4 peer (::ffff:a.b.c.d) is
 * ipv4.
 */
enum network_type { NETWORK_TYPE_IPV4, NETWORK_TYPE_IPV6 };

static __always_inline enum network_type socket_type(const struct sock_common *socket)
{
	const u32 *word = socket->skc_v6_daddr.in6_u.u6_addr32;

	if (socket->skc_family != AF_INET6)
		return NETWORK_TYPE_IPV4;
	if (!word[0] && !word[1] && word[2] == __builtin_bswap32(0xffff))
		return NETWORK_TYPE_IPV4;
	return NETWORK_TYPE_IPV6;
}

/*
 * For a pointer that the verifier does not trust, and for programs that seldom run: see
 * owner_of_task_seldom().
 */
static __always_inline u64 socket_cgroup_read(const struct sock *sk)
{
	const struct sock_cgroup_data___tagged *tagged = (void *)&sk->sk_cgrp_data;
	struct cgroup *cgroup = NULL;
	u64 word = 0;

	if (bpf_core_field_exists(sk->sk_cgrp_data.cgroup)) {
		bpf_core_read(&cgroup, sizeof(cgroup), &sk->sk_cgrp_data.cgroup);
	} else {
		bpf_core_read(&word, sizeof(word), &tagged->val);
		cgroup = word & 1 ? NULL : (struct cgroup *)(word & ~3ull);
	}
	return BPF_CORE_READ(cgroup, kn, id);
}

static __always_inline u64 socket_cgroup(const struct sock *sk)
{
	if (bpf_core_field_exists(sk->sk_cgrp_data.cgroup))
		return sk->sk_cgrp_data.cgroup->kn->id;
	return socket_cgroup_read(sk);
}

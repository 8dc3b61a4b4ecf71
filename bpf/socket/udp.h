/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * UDP traffic by owner. The kernel keeps no sums in a UDP socket, so each call is counted when it
 * returns. The hook also sees calls on other sockets, and returns at once. Bytes are what the call
 * returned. A datagram is what UdpInDatagrams and UdpOutDatagrams count: a segmented send
 * (UDP_SEGMENT) or a coalesced receive (UDP_GRO) is one. A datagram that is sent by clearing
 * UDP_CORK is not seen. An unconnected IPv6 socket counts as ipv6 even if its peer has an IPv4
 * address, because the hook cannot see the peer.
 */

#include "function.h"
#include "owner.h"
#include "socket.h"
#include "table.h"

#define MSG_PEEK 0x2
#define MSG_ERRQUEUE 0x2000
#define SHUTDOWN_RECEIVE 1

struct udp_sock {
	int pending;
} __attribute__((preserve_access_index));

struct udp_key {
	struct owner owner;
	enum network_type type;
	u32 unused;
};

struct udp_traffic {
	u64 received;
	u64 sent;
	u64 received_datagrams;
	u64 sent_datagrams;
};

TABLE_PERCPU(udp, struct udp_key, struct udp_traffic, 2);

static __always_inline struct udp_traffic *udp_value(struct sock *sk)
{
	struct udp_key key = {};
	bool is_own; /* by no means: sending and receiving are two programs */

	key.owner.cgroup = socket_cgroup(sk);
	if (network_per_process) {
		struct task_struct *task = bpf_get_current_task_btf();

		key.owner.process = process_id(task);
		process_remember(task, key.owner.process);
	}
	key.type = socket_type(&sk->__sk_common);
	return udp_at(&key, &is_own);
}

/* While a datagram is being assembled (UDP_CORK, MSG_MORE), it has not been sent. */
static __always_inline void udp_count_sent(struct sock *sk, int bytes)
{
	struct udp_traffic *value;

	if (bytes < 0)
		return;
	value = udp_value(sk);
	if (!value)
		return;
	table_add(&value->sent, bytes);
	if (!BPF_CORE_READ((struct udp_sock *)sk, pending))
		table_add(&value->sent_datagrams, 1);
}

/* A datagram may be empty, but 0 can also mean that the socket was shut down for receiving. */
static __always_inline void udp_count_received(struct sock *sk, int bytes, int flags)
{
	struct udp_traffic *value;

	if (bytes < 0 || flags & (MSG_PEEK | MSG_ERRQUEUE))
		return;
	if (!bytes && sk->sk_shutdown & SHUTDOWN_RECEIVE)
		return;
	value = udp_value(sk);
	if (!value)
		return;
	table_add(&value->received, bytes);
	table_add(&value->received_datagrams, 1);
}

static __always_inline bool socket_is_udp(struct sock *sk)
{
	return sk->sk_protocol == SOCKET_PROTOCOL_UDP &&
	       (sk->__sk_common.skc_family == AF_INET || sk->__sk_common.skc_family == AF_INET6);
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(udp_send__btf, struct sock *sk, int bytes)
{
	if (socket_is_udp(sk))
		udp_count_sent(sk, bytes);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(udp_receive__btf, struct sock *sk, int bytes, int flags)
{
	if (socket_is_udp(sk))
		udp_count_received(sk, bytes, flags);
	return 0;
}

/*
 * Kernels that preempt these programs skip events, so they have others: see task.bpf.c and
 * function.h.
 */
struct trace_event_raw_sock_msg_length {
	const void *sk;
	int ret, flags;
} __attribute__((preserve_access_index)); /* what all events begin with is longer on some kernels */

static __always_inline int udp_send(const void *address, int bytes)
{
	struct sock *sk = cast_to(struct sock, address);

	if (socket_is_udp(sk))
		udp_count_sent(sk, bytes);
	return 0;
}

static __always_inline int udp_receive(const void *address, int bytes, int flags)
{
	struct sock *sk = cast_to(struct sock, address);

	if (socket_is_udp(sk))
		udp_count_received(sk, bytes, flags);
	return 0;
}

SEC("tp/sock/sock_send_length")
int udp_send__tp(struct trace_event_raw_sock_msg_length *ctx)
{
	return udp_send(ctx->sk, ctx->ret);
}

SEC("tp/sock/sock_recv_length")
int udp_receive__tp(struct trace_event_raw_sock_msg_length *ctx)
{
	return udp_receive(ctx->sk, ctx->ret, ctx->flags);
}

AT_TRACEPOINT(udp_send, sock_send_length)
{
	return udp_send((void *)function_argument_2(ctx), function_argument_3(ctx));
}

AT_TRACEPOINT(udp_receive, sock_recv_length)
{
	return udp_receive((void *)function_argument_2(ctx), function_argument_3(ctx),
			   function_argument_4(ctx));
}

/*
 * For kernels before 6.3. For an IPv4 peer, the IPv6 functions call the IPv4 ones: each counts its
 * own sockets.
 */
SEC("fexit/udp_sendmsg")
int BPF_PROG(udp_send__fexit__ipv4, struct sock *sk, void *msg, u64 size, int bytes)
{
	if (sk->__sk_common.skc_family == AF_INET)
		udp_count_sent(sk, bytes);
	return 0;
}

SEC("fexit/udpv6_sendmsg")
int BPF_PROG(udp_send__fexit__ipv6, struct sock *sk, void *msg, u64 size, int bytes)
{
	if (sk->__sk_common.skc_family == AF_INET6)
		udp_count_sent(sk, bytes);
	return 0;
}

/*
 * The arguments of *_recvmsg changed. Until 5.18 they are (sk, msg, size, noblock, flags, address
 * length); then `noblock` was removed, and later the address length. Since 5.17 a program can ask
 * how many there are.
 */
static __always_inline void udp_exit_received(u64 *ctx, u16 family)
{
	struct sock *sk = (struct sock *)ctx[0];
	u64 flags = 0, bytes = 0;

	if (sk->__sk_common.skc_family != family)
		return;
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_func_ret)) {
		bpf_get_func_arg(ctx, bpf_get_func_arg_cnt(ctx) > 5 ? 4 : 3, &flags);
		bpf_get_func_ret(ctx, &bytes);
	} else {
		flags = ctx[4];
		bytes = ctx[6];
	}
	udp_count_received(sk, (int)bytes, (int)flags);
}

SEC("fexit/udp_recvmsg")
int udp_receive__fexit__ipv4(u64 *ctx)
{
	udp_exit_received(ctx, AF_INET);
	return 0;
}

SEC("fexit/udpv6_recvmsg")
int udp_receive__fexit__ipv6(u64 *ctx)
{
	udp_exit_received(ctx, AF_INET6);
	return 0;
}

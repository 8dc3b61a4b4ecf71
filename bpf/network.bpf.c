/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Network traffic by owner.
 *
 * TCP: nothing is counted when a message is sent or received. The kernel itself counts each socket's
 * bytes, retransmitted segments and round trip. This program reads them when the socket closes, and at
 * each collection from all open sockets. The socket's storage holds what has been counted, so each byte
 * counts once, whoever reads first. A sent byte counts when it is first transmitted, a received byte when
 * it has arrived in order, whether or not the program ever reads it.
 *
 * A socket that was open before the programs attached is counted from then on.
 *
 * UDP: the kernel keeps no such sums in a socket, so each call is counted when it returns. The hook also
 * sees calls on other sockets, and returns at once. Bytes are what the call returned. A datagram is what
 * UdpInDatagrams and UdpOutDatagrams count: a segmented send (UDP_SEGMENT) or a coalesced receive
 * (UDP_GRO) is one. A datagram that is sent by clearing UDP_CORK is not seen. An unconnected IPv6 socket
 * counts as ipv6 even if its peer has an IPv4 address, because the hook cannot see the peer.
 */
#include "socket.h"
#include "hist.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define MSG_PEEK 0x2
#define MSG_ERRQUEUE 0x2000
#define SHUTDOWN_RECEIVE 1
#define EADDRNOTAVAIL 99
#define ECANCELED 125

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct tcp_sock {
	u64 bytes_sent;
	u64 bytes_retrans;
	u64 bytes_received;
	u64 bytes_acked;
	u32 snd_nxt;
	u32 snd_una;
	u32 segs_out;
	u32 srtt_us; /* eight times the smoothed round-trip time */
	u32 total_retrans;
};

struct udp_sock {
	int pending;
};

struct request_sock {
	struct sock_common __req_common;
};

struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	struct sock *sk;
	void *value;
};

#pragma clang attribute pop

enum tcp_role { TCP_ROLE_NONE, TCP_ROLE_CLIENT, TCP_ROLE_SERVER };

struct traffic_key {
	struct owner owner;
	enum network_type type;
	u32 unused;
};

struct tcp_traffic {
	u64 received;
	u64 sent;
	u64 retransmits;
};

struct udp_traffic {
	u64 received;
	u64 sent;
	u64 received_datagrams;
	u64 sent_datagrams;
};

struct connection_key {
	struct owner owner;
	enum network_type type;
	enum tcp_role role;
	lbl_errno error;
	u32 unused;
};

struct connection_value {
	u64 count;
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

TABLE(tcp, struct traffic_key, struct tcp_traffic, 512);
TABLE(udp, struct traffic_key, struct udp_traffic, 512);
TABLE(connections, struct connection_key, struct connection_value, 512);
TABLE(times, struct time_key, struct time_value, 256);

/* What has been counted for a socket. */
struct progress {
	u64 received;
	u64 sent;
	u64 retransmits;
	u64 acked; /* bytes acknowledged when the round trip was last read, plus 1 */
	u64 established_ns; /* 0: before the programs were attached, or never */
	enum tcp_role role;
} __attribute__((aligned(8)));

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct progress);
} progresses SEC(".maps");

/* In what the kernel counts as received, a FIN is one byte. */
static __always_inline u64 tcp_received(struct sock *sk, struct tcp_sock *tp)
{
	u64 bytes = tp->bytes_received;

	return bytes && sk->__sk_common.skc_flags & SOCKET_FLAG_DONE ? bytes - 1 : bytes;
}

/* Retransmitted is read first: bytes retransmitted in between look sent now, and are subtracted next time. */
static __always_inline u64 tcp_sent(struct tcp_sock *tp)
{
	u64 again = *(volatile u64 *)&tp->bytes_retrans;

	return *(volatile u64 *)&tp->bytes_sent - again;
}

/*
 * The growth from what has been counted to `now`, which becomes the new mark. A close and a collection may
 * look at the same socket on two CPUs at once, so a compare-and-exchange decides which of them counts.
 */
static __always_inline u64 progress_claim(u64 *counted, u64 now)
{
	u64 before;

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

static __always_inline void progress_start(struct progress *progress, struct sock *sk, struct tcp_sock *tp)
{
	progress->received = tcp_received(sk, tp);
	progress->sent = tcp_sent(tp);
	progress->retransmits = tp->total_retrans;
	progress->acked = tp->bytes_acked + 1;
}

static __always_inline void rtt_sample(struct sock *sk, struct tcp_sock *tp, struct progress *progress)
{
	u64 rtt_ns = tp->srtt_us * 1000ull / 8;
	struct time_value *value;
	struct time_key key = {};

	if (!rtt_ns || !progress_claim(&progress->acked, tp->bytes_acked + 1))
		return;
	owner_of_socket_seldom(&key.owner, sk);
	key.role = progress->role;
	value = times_at(&key);
	if (value)
		hist_time_add_atomic(&value->rtt, rtt_ns);
}

static __noinline int tcp_account(struct sock *sk, struct tcp_sock *tp, struct progress *progress)
{
	u64 received, sent, retransmits = 0;
	struct traffic_key key = {};
	struct tcp_traffic *value;

	received = progress_claim(&progress->received, tcp_received(sk, tp));
	sent = progress_claim(&progress->sent, tcp_sent(tp));
	/* Until then it counts the SYN/ACKs, which are counted when they are sent. */
	if (sk->__sk_common.skc_state != STATE_SYN_RECEIVED)
		retransmits = progress_claim(&progress->retransmits, tp->total_retrans);
	if (received | sent | retransmits) {
		owner_of_socket_seldom(&key.owner, sk);
		key.type = socket_type(&sk->__sk_common);
		value = tcp_at(&key);
		if (value) {
			table_add(&value->received, received);
			table_add(&value->sent, sent);
			table_add(&value->retransmits, retransmits);
		}
	}
	rtt_sample(sk, tp, progress);
	return 0;
}

static __always_inline void connection_count(struct sock *sk, enum tcp_role role, u32 error)
{
	struct connection_key key = {};
	struct connection_value *value;

	owner_of_socket_seldom(&key.owner, sk);
	key.type = socket_type(&sk->__sk_common);
	key.role = role;
	key.error = error;
	value = connections_at(&key);
	if (value)
		value->count++;
}

/*
 * A connection that was never established. If the kernel has no error, either no port was free, so
 * nothing was sent, or the program gave up first.
 */
static __always_inline void connection_fail(struct sock *sk, struct tcp_sock *tp, enum tcp_role role)
{
	u32 error = sk->sk_err;

	if (!error && role == TCP_ROLE_CLIENT)
		error = tp->segs_out ? ECANCELED : EADDRNOTAVAIL;
	if (error)
		connection_count(sk, role, error);
}

static __always_inline void connection_end(struct sock *sk, struct progress *progress)
{
	struct time_value *value;
	struct time_key key = {};
	u64 duration_ns;

	if (!progress->established_ns)
		return;
	duration_ns = bpf_ktime_get_ns() - progress->established_ns;
	progress->established_ns = 0;
	owner_of_socket_seldom(&key.owner, sk);
	key.role = progress->role;
	value = times_at(&key);
	if (value)
		hist_time_add_atomic(&value->duration, duration_ns);
}

static __always_inline void connection_open(struct sock *sk, struct tcp_sock *tp, enum tcp_role role)
{
	struct progress fresh = {}, *progress;

	progress = bpf_sk_storage_get(&progresses, sk, &fresh, BPF_SK_STORAGE_GET_F_CREATE);
	if (!progress)
		return;
	/* Here an accepted socket is still a copy of its listener, which has not carried any data. */
	*progress = fresh;
	if (role == TCP_ROLE_CLIENT)
		progress_start(progress, sk, tp);
	progress->acked = 0;
	progress->role = role;
}

static __always_inline enum tcp_role role_opening(struct progress *progress, int from)
{
	if (progress && progress->role)
		return progress->role;
	if (from == STATE_SYN_SENT)
		return TCP_ROLE_CLIENT;
	return TCP_ROLE_SERVER;
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(state_change, struct sock *sk, int from, int to)
{
	bool opening = from == STATE_SYN_SENT || from == STATE_SYN_RECEIVED;
	struct progress *progress;
	struct tcp_sock *tp;

	if (sk->sk_protocol != SOCKET_PROTOCOL_TCP)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	socket_process_follow(sk, to);
	if (to == STATE_SYN_SENT || (from == STATE_LISTEN && to == STATE_SYN_RECEIVED)) {
		connection_open(sk, tp, to == STATE_SYN_SENT ? TCP_ROLE_CLIENT : TCP_ROLE_SERVER);
		return 0;
	}
	if (!opening && to != STATE_CLOSED)
		return 0;
	progress = bpf_sk_storage_get(&progresses, sk, NULL, 0);
	if (progress && from == STATE_SYN_RECEIVED && progress->role == TCP_ROLE_SERVER)
		progress->retransmits = tp->total_retrans;
	if (opening && to == STATE_ESTABLISHED) {
		connection_count(sk, role_opening(progress, from), 0);
		if (progress)
			progress->established_ns = bpf_ktime_get_ns();
	}
	if (to == STATE_CLOSED) {
		if (opening)
			connection_fail(sk, tp, role_opening(progress, from));
		if (progress) {
			tcp_account(sk, tp, progress);
			connection_end(sk, progress);
		}
	}
	return 0;
}

/* There may never be a connection for a SYN/ACK, so it counts for the listener. */
SEC("tp_btf/tcp_retransmit_synack")
int BPF_PROG(synack_retransmit, struct sock *sk, struct request_sock *request)
{
	struct traffic_key key = {};
	struct tcp_traffic *value;

	owner_of_socket_seldom(&key.owner, sk);
	key.type = socket_type(&request->__req_common);
	value = tcp_at(&key);
	if (value)
		table_add(&value->retransmits, 1);
	return 0;
}

/*
 * Which side connected, for a connection that existed before: the SYN counts as an acknowledged byte on
 * the side that sent it first, and not on the other (tcp_create_openreq_child() starts after it).
 */
static __always_inline enum tcp_role role_guess(struct sock *sk, struct tcp_sock *tp)
{
	u8 state = sk->__sk_common.skc_state;
	u64 beyond;

	if (state == STATE_SYN_SENT)
		return TCP_ROLE_CLIENT;
	if (state != STATE_ESTABLISHED && state != STATE_CLOSE_WAIT)
		return TCP_ROLE_NONE;
	beyond = tp->bytes_acked + (u32)(tp->snd_nxt - tp->snd_una) - tcp_sent(tp);
	return beyond == 1 ? TCP_ROLE_CLIENT : !beyond ? TCP_ROLE_SERVER : TCP_ROLE_NONE;
}

/*
 * Gives a starting point to sockets that existed before, in any network namespace. The first walk does
 * this for all of them. Later walks find sockets that no process held at that time, because they were not
 * yet accepted or were being passed between processes. That is so rare that not every walk looks.
 */
#define WALKS_PER_LOOK 16

u32 walks;

SEC("iter/task_file")
int socket_seed(struct bpf_iter__task_file *ctx)
{
	struct progress fresh = {};
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct socket *socket;
	struct tcp_sock *tp;
	struct sock *sk;

	if (!file)
		walks++;
	if (!task || !file || walks % WALKS_PER_LOOK)
		return 0;
	socket = bpf_sock_from_file(file);
	sk = socket ? socket->sk : NULL;
	if (!sk || sk->sk_protocol != SOCKET_PROTOCOL_TCP)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	if (per_process && !bpf_sk_storage_get(&socket_processes, sk, NULL, 0))
		socket_process_set(sk, task);
	if (sk->__sk_common.skc_state == STATE_LISTEN || sk->__sk_common.skc_state == STATE_CLOSED)
		return 0;
	if (bpf_sk_storage_get(&progresses, sk, NULL, 0))
		return 0;
	progress_start(&fresh, sk, tp);
	fresh.role = role_guess(sk, tp);
	bpf_sk_storage_get(&progresses, sk, &fresh, BPF_SK_STORAGE_GET_F_CREATE);
	return 0;
}

/* Visits every socket that has a starting point, in every network namespace, held by a process or not. */
SEC("iter/bpf_sk_storage_map")
int socket_account(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct progress *progress;
	struct sock *sk = ctx->sk;
	struct tcp_sock *tp;

	if (!sk)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	progress = bpf_sk_storage_get(&progresses, sk, NULL, 0);
	if (progress)
		tcp_account(sk, tp, progress);
	return 0;
}

static __always_inline struct udp_traffic *udp_find(struct sock *sk)
{
	struct traffic_key key = {};

	key.owner.cgroup = socket_cgroup(sk);
	if (per_process) {
		struct task_struct *task = bpf_get_current_task_btf();

		key.owner.process = process_id(task);
		process_remember(task, key.owner.process);
	}
	key.type = socket_type(&sk->__sk_common);
	return udp_at(&key);
}

/* While a datagram is being assembled (UDP_CORK, MSG_MORE), it has not been sent. */
static __always_inline void udp_count_sent(struct sock *sk, int bytes)
{
	struct udp_traffic *value;

	if (bytes < 0)
		return;
	value = udp_find(sk);
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
	value = udp_find(sk);
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

/* For kernels before 6.3. For an IPv4 peer, the IPv6 functions call the IPv4 ones: each counts its own sockets. */
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
 * The arguments of *_recvmsg changed. Until 5.18 they are (sk, msg, size, noblock, flags, address length);
 * then `noblock` was removed, and later the address length. Since 5.17 a program can ask how many there are.
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

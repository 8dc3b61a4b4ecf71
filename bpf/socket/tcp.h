/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/* What the kernel keeps in a TCP socket, for all objects that look at TCP. */

#include "socket.h"

#define EADDRNOTAVAIL 99
#define ECANCELED 125

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct inet_sock {
	u16 inet_sport;
};

struct tcp_sock {
	u64 bytes_sent;
	u64 bytes_retrans;
	u64 bytes_received;
	u64 bytes_acked;
	u32 snd_nxt;
	u32 snd_una;
	u32 write_seq;
	u32 rcv_nxt;
	u32 segs_out;
	u32 srtt_us; /* eight times the smoothed round-trip time */
	u32 total_retrans;
};

struct request_sock {
	struct sock_common __req_common;
};

#pragma clang attribute pop

enum tcp_role { TCP_ROLE_NONE, TCP_ROLE_CLIENT, TCP_ROLE_SERVER };

/* The one in sock_common is 0 again when the socket is closed. */
static __always_inline u32 local_port_of(const struct sock *sk)
{
	return __builtin_bswap16(BPF_CORE_READ((const struct inet_sock *)sk, inet_sport));
}

/*
 * Retransmitted is read first: bytes retransmitted in between look sent now, and are subtracted
 * next time.
 */
static __always_inline u64 tcp_sent(struct tcp_sock *tp)
{
	u64 again = *(volatile u64 *)&tp->bytes_retrans;

	return *(volatile u64 *)&tp->bytes_sent - again;
}

/*
 * A connection that was never established. If the kernel has no error, either no port was free, so
 * nothing was sent, or the program gave up first.
 */
static __always_inline u32 connection_error(struct sock *sk, struct tcp_sock *tp, u32 from)
{
	u32 error = sk->sk_err;

	if (!error && from == STATE_SYN_SENT)
		error = tp->segs_out ? ECANCELED : EADDRNOTAVAIL;
	return error;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * TCP states: transitions are counted when they happen, sockets at each collection.
 *
 * Transitions are the kernel's. TIME_WAIT and the half-open connections of a listener are separate
 * small objects there, so a socket that goes to TIME_WAIT is seen to change to closed.
 *
 * The gauge counts sockets as the walk over them meets them, so no missed event can make it wrong
 * for long. A listener says how many half-open connections wait for it. The network namespace says
 * how many TIME_WAIT it has. Some of them are in FIN_WAIT_2, because after a while the kernel keeps
 * a socket in that state as such a small object too. They have no owner: nothing in them says whose
 * they were.
 */

#include "record.h"
#include "table.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct atomic {
	int counter;
};

struct refcount_struct {
	struct atomic refs;
};

struct request_sock_queue {
	struct atomic qlen;
};

struct inet_connection_sock {
	struct request_sock_queue icsk_accept_queue;
};

struct inet_timewait_death_row {
	struct refcount_struct tw_refcount; /* one more than there are */
};

struct netns_ipv4 {
	struct inet_timewait_death_row tcp_death_row;
};

struct net {
	struct netns_ipv4 ipv4;
};

struct netns_ipv4___5_18 { /* until 6.0 */
	struct inet_timewait_death_row *tcp_death_row;
};

struct net___5_18 {
	struct netns_ipv4___5_18 ipv4;
};

struct inet_timewait_death_row___5_13 { /* until 5.17 */
	struct atomic tw_count;
};

struct netns_ipv4___5_13 {
	struct inet_timewait_death_row___5_13 tcp_death_row;
};

struct net___5_13 {
	struct netns_ipv4___5_13 ipv4;
};

#pragma clang attribute pop

struct transition_key {
	struct owner owner;
	enum connection_state from;
	enum connection_state to;
};

struct transition_value {
	u64 count;
};

struct state_key {
	struct owner owner;
	enum connection_state state;
	u32 unused;
};

struct state_value {
	val_tally count;
};

TABLE(transitions, struct transition_key, struct transition_value, 12);
TABLE(states, struct state_key, struct state_value, 6);

__noinline int transition_count(const struct socket_record *record, u32 from, u32 to)
{
	struct transition_key key = {};

	if (!record)
		return 0;
	key.owner = owner_for(&record->owner, tcpstate_per_process);
	key.from = from;
	key.to = to;
	table_add_to(transitions, &key, count, 1);
	return 0;
}

__noinline int state_add(const struct owner *owner, u32 state, u64 n)
{
	struct state_key key = {};

	if (!owner)
		return 0;
	key.owner = owner_for(owner, tcpstate_per_process);
	key.state = state;
	table_add_to(states, &key, count, n);
	return 0;
}

static __always_inline int half_open_of(struct sock *listener)
{
	return BPF_CORE_READ((struct inet_connection_sock *)listener,
			     icsk_accept_queue.qlen.counter);
}

static __always_inline int time_wait_of(const struct net *net)
{
	const struct net___5_18 *net_5_18 = (const void *)net;
	const struct net___5_13 *net_5_13 = (const void *)net;

	if (bpf_core_field_exists(net->ipv4.tcp_death_row.tw_refcount))
		return BPF_CORE_READ(net, ipv4.tcp_death_row.tw_refcount.refs.counter) - 1;
	if (bpf_core_field_exists(net_5_13->ipv4.tcp_death_row.tw_count))
		return BPF_CORE_READ(net_5_13, ipv4.tcp_death_row.tw_count.counter);
	return BPF_CORE_READ(net_5_18, ipv4.tcp_death_row, tw_refcount.refs.counter) - 1;
}

/* At the end of a walk, which the agent makes: its network namespace. */
static __always_inline void time_wait_tally(void)
{
	int waiting = time_wait_of(net_of_agent());
	struct owner nobody = {};

	if (waiting > 0)
		state_add(&nobody, STATE_TIME_WAIT, waiting);
}

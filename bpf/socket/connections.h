/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/* TCP connections by owner: opened, accepted or failed, and how long they lived. */

#include "traffic.h"

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

TABLE(connections, struct connection_key, struct connection_value, 6);

__noinline int connection_count(const struct socket_record *record, u32 type, u32 from, u32 error)
{
	struct connection_key key = {};

	if (!record)
		return 0;
	key.owner = owner_for(&record->owner, network_per_process);
	key.type = type;
	key.role = record->role ?: from == STATE_SYN_SENT ? TCP_ROLE_CLIENT : TCP_ROLE_SERVER;
	key.error = error;
	table_add_to(connections, &key, count, 1);
	return 0;
}

__noinline int peer_connection_count(const struct socket_record *record, u32 from, u32 error,
				     const struct peer *peer)
{
	struct peer_value grown = { .connections = 1 };
	u32 role;

	if (!record || !peer)
		return 0;
	role = record->role ?: from == STATE_SYN_SENT ? TCP_ROLE_CLIENT : TCP_ROLE_SERVER;
	if (error)
		peer_fail(&record->owner, role, peer, error);
	else
		peer_add(&record->owner, role, peer, &grown);
	return 0;
}

__noinline int connection_end(struct socket_record *record)
{
	struct time_value *value;
	u64 duration_ns;

	if (!record || !record->established_ns)
		return 0;
	duration_ns = bpf_ktime_get_ns() - record->established_ns;
	record->established_ns = 0;
	value = time_value(record);
	if (value)
		hist_time_add_atomic(&value->duration, duration_ns);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "hist.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define TIMER_DEFERRABLE 0x00080000
#define TIMER_PINNED	 0x00100000

extern unsigned int CONFIG_HZ __kconfig;
const volatile bool pending = true;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct timer_list {
	unsigned long expires;
	void (*function)(struct timer_list *timer);
	u32 flags;
};
#pragma clang attribute pop

enum timer_kind { TIMER_KIND_PLAIN, TIMER_KIND_DEFERRABLE, TIMER_KIND_PINNED };

struct start_key {
	lbl_ksym function;
	enum timer_kind kind;
	u32 unused;
};

struct start_value {
	u64 count;
	struct hist_time delay;
};

struct armed_key {
	lbl_ksym function;
};

struct armed_value {
	s64 pending;
};

TABLE(starts, struct start_key, struct start_value, 4);
TABLE(armed, struct armed_key, struct armed_value, 4);

/* Which timers were started since the attaching: others' cancellations are not ours to subtract. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, u8);
} known SEC(".maps");

SEC("tp_btf/timer_start")
int BPF_PROG(timer_start, struct timer_list *timer)
{
	struct start_key key = {};
	struct start_value *value;
	u64 now = bpf_jiffies64();
	long ahead = timer->expires - now;

	key.function = (u64)BPF_CORE_READ(timer, function);
	if (timer->flags & TIMER_DEFERRABLE)
		key.kind = TIMER_KIND_DEFERRABLE;
	else if (timer->flags & TIMER_PINNED)
		key.kind = TIMER_KIND_PINNED;
	value = starts_at(&key);
	if (!value)
		return 0;
	table_add(&value->count, 1);
	hist_time_add_atomic(&value->delay, ahead > 0 ? (u64)ahead * (NSEC_PER_SEC / CONFIG_HZ) : 0);
	return 0;
}

SEC("tp_btf/timer_start")
int BPF_PROG(timer_arm, struct timer_list *timer)
{
	struct armed_key key = { .function = (u64)BPF_CORE_READ(timer, function) };
	struct armed_value *value;
	u64 id = (u64)timer;
	u8 one = 1;

	if (bpf_map_update_elem(&known, &id, &one, BPF_NOEXIST))
		return 0;
	value = armed_at(&key);
	if (value)
		table_add(&value->pending, 1);
	return 0;
}

SEC("tp_btf/timer_cancel")
int BPF_PROG(timer_cancel, struct timer_list *timer)
{
	struct armed_key key = { .function = (u64)BPF_CORE_READ(timer, function) };
	struct armed_value *value;
	u64 id = (u64)timer;

	if (bpf_map_delete_elem(&known, &id))
		return 0;
	value = armed_at(&key);
	if (value)
		table_add(&value->pending, -1);
	return 0;
}

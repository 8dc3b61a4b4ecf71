/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/* What is measured, and by what. */

#include "hist.h"
#include "read.h"
#include "table.h"
#ifdef PROBE_EVENTS
#include "event.h"
#endif

enum probe_measure {
	PROBE_MEASURE_COUNT,
	PROBE_MEASURE_LATENCY,
	PROBE_MEASURE_SUM,
	PROBE_MEASURE_HISTOGRAM,
	PROBE_MEASURE_EVENT,
};

/* How a number compares with only_bound, if it is wanted. */
enum probe_only {
	PROBE_ONLY_ANY,
	PROBE_ONLY_LESS,
	PROBE_ONLY_AT_MOST,
	PROBE_ONLY_GREATER,
	PROBE_ONLY_AT_LEAST,
	PROBE_ONLY_EQUAL,
	PROBE_ONLY_OTHER,
};

const volatile enum probe_measure measure = PROBE_MEASURE_COUNT;
/* begins where the function is entered, ends where it returns */
const volatile bool is_paired = false;
const volatile bool by_unit = false;
const volatile bool by_errno = false;
const volatile bool by_cpu = false;
const volatile bool by_comm = false;
const volatile enum probe_only only = PROBE_ONLY_ANY;
const volatile s64 only_bound = 0;
const volatile bool only_latency = false; /* that is compared; else the value */
PROBE_READ(value);
PROBE_READ(by0);
PROBE_READ(by1);
PROBE_READ(by2);

#ifdef PROBE_TEXT_BYTES
PROBE_READ(text);
PROBE_READ(address);
const volatile enum probe_text text_is = PROBE_TEXT_POINTER;
#endif

/* What is known of a call when it begins. */
struct probe_call {
	u64 stack; /* the stack pointer */
	u64 start_ns;
	s64 by0, by1, by2, value;
#ifdef PROBE_TEXT_BYTES
	char text[PROBE_TEXT_BYTES];
	u8 address[16];
#endif
};

/* An unused member is an attribute if the agent gives it a name. */
struct probe_key {
	struct owner owner;
	s64 unused_by0, unused_by1, unused_by2;
	lbl_errno error;
	u32 unused_cpu;
	char unused_comm[16];
#ifdef PROBE_TEXT_BYTES
	char unused_text[PROBE_TEXT_BYTES];
	lbl_ipv6 unused_address;
#endif
};

#ifdef PROBE_EVENTS
struct probe_event {
	val_boot_ns time;
	val_ns unused_duration; /* of a call */
	struct probe_key of;
};

EVENTS(events);
const struct probe_event *probe_event__unused; /* so that the compiler keeps the type */
#else
TABLE(numbers, struct probe_key, u64, 4);
TABLE(times, struct probe_key, struct hist_time, 4);
TABLE(values, struct probe_key, struct hist_value, 4);
#endif

struct lost_key {
	u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, struct lost_key);
	__type(value, u64);
} lost SEC(".maps");

static __always_inline void probe_lose(u32 n)
{
	struct lost_key key = {};
	u64 *count = n ? bpf_map_lookup_elem(&lost, &key) : NULL;

	if (count)
		__sync_fetch_and_add(count, n);
}

#ifdef PROBE_TEXT_BYTES
/* Is the result known there, or what else the hook has? */
static __always_inline bool probe_is_known(enum probe_from from, enum probe_place place)
{
	if (from == PROBE_FROM_RET)
		return place == PROBE_LEAVE_KERNEL || place == PROBE_LEAVE_USER;
	return from != PROBE_FROM_NOTHING;
}

static __always_inline void probe_copy(char *to, const void *from, u32 bytes)
{
	if ((s64)(u64)from < 0)
		bpf_probe_read_kernel_str(to, bytes, from);
	else
		bpf_probe_read_user_str(to, bytes, from);
}

/* A field is the address; all else points to it. */
static __always_inline void probe_address(void *ctx, enum probe_place place, u8 *to)
{
	u64 from;

	if (address_from == PROBE_FROM_FIELD) {
		bpf_probe_read_kernel(to, 16, ctx + address_offset);
		return;
	}
	from = probe_number(ctx, place, probe_read_of(address));
	if ((s64)from < 0)
		bpf_probe_read_kernel(to, 16, (const void *)from);
	else
		bpf_probe_read_user(to, 16, (const void *)from);
}

static __always_inline void probe_text(void *ctx, enum probe_place place, char *to)
{
	u32 bytes = text_bytes & (2 * PROBE_TEXT_BYTES - 1);
	u64 value;

	/* what follows the end of the text tells keys apart */
	__builtin_memset(to, 0, PROBE_TEXT_BYTES);
	if (text_from == PROBE_FROM_FIELD && text_is == PROBE_TEXT_ARRAY) {
		bpf_probe_read_kernel_str(to, bytes < PROBE_TEXT_BYTES ? bytes : PROBE_TEXT_BYTES,
					  ctx + text_offset);
		return;
	}
	value = probe_number(ctx, place, probe_read_of(text));
	if (text_from == PROBE_FROM_FIELD && text_is == PROBE_TEXT_LOCATION)
		bpf_probe_read_kernel_str(to, PROBE_TEXT_BYTES, ctx + (value & 0xffff));
	else if (text_from == PROBE_FROM_FIELD && text_is == PROBE_TEXT_RELATIVE)
		bpf_probe_read_kernel_str(to, PROBE_TEXT_BYTES,
					  ctx + text_offset + 4 + (value & 0xffff));
	else
		probe_copy(to, (const void *)value, PROBE_TEXT_BYTES);
}
#endif

/* What there is to know where a function is entered, or elsewhere. */
static __always_inline void probe_look(void *ctx, enum probe_place place, struct probe_call *call)
{
	call->by0 = probe_number(ctx, place, probe_read_of(by0));
	call->by1 = probe_number(ctx, place, probe_read_of(by1));
	call->by2 = probe_number(ctx, place, probe_read_of(by2));
	call->value = probe_number(ctx, place, probe_read_of(value));
#ifdef PROBE_TEXT_BYTES
	if (probe_is_known(text_from, place))
		probe_text(ctx, place, call->text);
	if (probe_is_known(address_from, place))
		probe_address(ctx, place, call->address);
#endif
}

/* If a call began elsewhere, only its result is to be looked for where it ends. */
#define probe_result_(ctx, place, NAME, known)                                                     \
	(NAME##_from == PROBE_FROM_RET ? probe_number(ctx, place, probe_read_of(NAME)) : (known))

static __always_inline void probe_who(struct probe_key *key)
{
	struct task_struct *task;

	if (by_unit)
		key->owner.cgroup = bpf_get_current_cgroup_id();
	if (per_process) {
		task = (struct task_struct *)bpf_get_current_task();
		key->owner.process = BPF_CORE_READ(task, group_leader, start_boottime) >> 20 << 22 |
				     (u32)BPF_CORE_READ(task, tgid);
		process_remember(task, key->owner.process);
	}
	if (by_cpu)
		key->unused_cpu = bpf_get_smp_processor_id();
	if (by_comm)
		bpf_get_current_comm(key->unused_comm, sizeof(key->unused_comm));
}

static __always_inline bool probe_is_wanted(s64 number)
{
	switch (only) {
	case PROBE_ONLY_LESS: return number < only_bound;
	case PROBE_ONLY_AT_MOST: return number <= only_bound;
	case PROBE_ONLY_GREATER: return number > only_bound;
	case PROBE_ONLY_AT_LEAST: return number >= only_bound;
	case PROBE_ONLY_EQUAL: return number == only_bound;
	case PROBE_ONLY_OTHER: return number != only_bound;
	default: return true;
	}
}

/*
 * What is to be counted: the value of count, sum and histogram, the duration of latency and event.
 * False: nothing.
 */
static __always_inline bool probe_measure(void *ctx, enum probe_place place,
					  const struct probe_call *here, s64 *ret_value)
{
	bool is_return = place == PROBE_LEAVE_KERNEL || place == PROBE_LEAVE_USER;
	bool is_timed = is_paired && (measure == PROBE_MEASURE_LATENCY ||
				      measure == PROBE_MEASURE_EVENT || only_latency);
	u64 ns = is_timed ? bpf_ktime_get_ns() - here->start_ns : 0;
	s64 value = probe_result_(ctx, place, value, here->value);

	if (!probe_is_wanted(only_latency ? (s64)ns : value))
		return false;
	if (measure == PROBE_MEASURE_LATENCY || measure == PROBE_MEASURE_EVENT) {
		*ret_value = ns;
		return true;
	}
	*ret_value = place == PROBE_SAMPLE ?
			     ((struct bpf_perf_event_data *)ctx)->sample_period : 1;
	if (measure == PROBE_MEASURE_COUNT || place == PROBE_SAMPLE)
		return true;
	/* What failed has no size, and a sum only grows. */
	if (value_from == PROBE_FROM_RET && is_return &&
	    probe_error(PT_REGS_RC((struct pt_regs *)ctx)))
		return false;
	probe_lose(value < 0 && !value_signed); /* 2^63 or more */
	*ret_value = value;
	return value >= 0;
}

#ifndef PROBE_EVENTS
static __always_inline void probe_add(const struct probe_key *key, u64 value)
{
	struct hist_value *of_values;
	u64 *number;

	if (measure == PROBE_MEASURE_LATENCY) {
		hist_time_add_to(times, key, value);
	} else if (measure == PROBE_MEASURE_HISTOGRAM) {
		of_values = values_at(key);
		if (of_values)
			hist_value_add_atomic(of_values, value);
	} else {
		number = numbers_at(key);
		if (number)
			table_add(number, value);
	}
}
#endif

/* here: what is known of the call; has_begun: all but its result is from when it began */
static __always_inline void probe_fill(void *ctx, enum probe_place place, struct probe_call *here,
				       bool has_begun, struct probe_key *key)
{
	bool is_return = place == PROBE_LEAVE_KERNEL || place == PROBE_LEAVE_USER;
	u64 result = is_return ? PT_REGS_RC((struct pt_regs *)ctx) : 0;

	probe_who(key);
	key->unused_by0 = probe_result_(ctx, place, by0, here->by0);
	key->unused_by1 = probe_result_(ctx, place, by1, here->by1);
	key->unused_by2 = probe_result_(ctx, place, by2, here->by2);
	if (by_errno)
		key->error = probe_error(result);
#ifdef PROBE_TEXT_BYTES
	if (has_begun && text_from == PROBE_FROM_RET)
		probe_text(ctx, place, here->text);
	if (text_from != PROBE_FROM_NOTHING)
		__builtin_memcpy(key->unused_text, here->text, sizeof(key->unused_text));
	if (has_begun && address_from == PROBE_FROM_RET)
		probe_address(ctx, place, here->address);
	if (address_from != PROBE_FROM_NOTHING)
		__builtin_memcpy(&key->unused_address, here->address, sizeof(key->unused_address));
#endif
}

/* began: what was known of the call when it began; NULL: all is known here. */
static __always_inline int probe_count(void *ctx, enum probe_place place,
				       const struct probe_call *began)
{
	struct probe_call here = {};
	s64 value;

	if (began)
		__builtin_memcpy(&here, began, sizeof(here));
	else
		probe_look(ctx, place, &here);
	if (!probe_measure(ctx, place, &here, &value))
		return 0;
#ifdef PROBE_EVENTS
	struct probe_event *event = event_is_admitted(events) ?
					    event_reserve(events, sizeof(*event)) : NULL;

	if (!event)
		return 0;
	__builtin_memset(event, 0, sizeof(*event));
	event->time = bpf_ktime_get_boot_ns();
	event->unused_duration = value;
	probe_fill(ctx, place, &here, began, &event->of);
	bpf_ringbuf_submit(event, 0);
#else
	struct probe_key key = {};

	probe_fill(ctx, place, &here, began, &key);
	probe_add(&key, value);
#endif
	return 0;
}

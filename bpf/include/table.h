/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * Flat tables: counting without a helper call, reading without a system call.
 *
 * An mmapable ARRAY map of {state, key, value} slots, one slice of NAME_slots for each possible CPU,
 * probed by the program itself (array lookups are inlined by the verifier on every kernel of our range).
 * The agent sees from the value's shape that a map is a flat table, gives it slots x CPUs entries when it
 * loads it, maps it into its memory and walks it. NAME_slots is a setting like any other.
 *
 *     TABLE(calls, struct call_key, struct call_value, 1024);
 *     struct call_value *value = calls_at(&key);
 *     if (value)
 *             value->count++;
 *
 * - The key's size is a multiple of 8, and the key has no padding: zero all of it before filling
 *   it.
 * - Slot 0 of a slice never belongs to a key. It counts for all keys that found no place within
 *   TABLE_PROBES slots, and is reported with otel.metric.overflow. So _at() returns NULL only to
 *   please the verifier.
 * - Values: use "++" if only one program writes the table (a program does not interrupt itself on a
 *   CPU), and table_add() if several do. A slice is per CPU, so an atomic add meets no contention.
 * - A slot is claimed by compare-and-exchange of its state, so any number of programs may insert
 *   (5.12). A program that meets a slot that is being filled goes on to the next. A key may get two
 *   slots in this way; the reader adds them up.
 * - Only the agent removes: it zeroes a value and sets the state to TABLE_REMOVED once the owner is gone.
 */

#include "kernel.h"

enum table_state { TABLE_FREE, TABLE_FILLING, TABLE_LIVE, TABLE_REMOVED };

#define TABLE_PROBES 8

#define table_add(where, what) ((void)__sync_fetch_and_add((where), (what)))

static __always_inline u32 table_hash(const u64 *word, u32 n_words)
{
	u64 hash = 0x9e3779b97f4a7c15ull;

#pragma unroll
	for (u32 i = 0; i < n_words; i++) {
		hash = (hash ^ word[i]) * 0x9fb21c651e98df25ull;
		hash ^= hash >> 29;
	}
	return hash >> 32;
}

static __always_inline bool table_equal(const u64 *left, const u64 *right, u32 n_words)
{
	u64 difference = 0;

#pragma unroll
	for (u32 i = 0; i < n_words; i++)
		difference |= left[i] ^ right[i];
	return !difference;
}

/* Keeps the compiler from moving arithmetic on a looked-up pointer above its NULL check. */
#define table_barrier(pointer) asm volatile("" : "+r"(pointer))

#define TABLE(NAME, KEY, VALUE, SLOTS)                                                             \
	struct NAME##_slot {                                                                       \
		u64 state; /* enum table_state */                                                  \
		KEY key;                                                                           \
		VALUE value;                                                                       \
	} __attribute__((aligned(8)));                                                             \
	const volatile u32 NAME##_slots = (SLOTS); /* per CPU, a power of two */                   \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                  \
		__uint(map_flags, BPF_F_MMAPABLE);                                                 \
		__uint(max_entries, 1);                                                            \
		__type(key, u32);                                                                  \
		__type(value, struct NAME##_slot);                                                 \
	} NAME SEC(".maps");                                                                       \
	_Static_assert(sizeof(KEY) % 8 == 0, "a table's key is a multiple of 8 bytes");            \
                                                                                                   \
	static __always_inline struct NAME##_slot *NAME##_slot_at(u32 index)                       \
	{                                                                                          \
		struct NAME##_slot *slot = bpf_map_lookup_elem(&NAME, &index);                     \
                                                                                                   \
		table_barrier(slot);                                                               \
		return slot;                                                                       \
	}                                                                                          \
                                                                                                   \
	/* The key's own slot was not at its first place: look on, else take a place. */           \
	static __noinline VALUE *NAME##_seek(const KEY *key, u32 base, u32 at)                     \
	{                                                                                          \
		const u32 n_words = sizeof(KEY) / 8;                                               \
		u32 mask = NAME##_slots - 1;                                                       \
		struct NAME##_slot *slot;                                                          \
		u64 state;                                                                         \
                                                                                                   \
		/* Slot 0 is passed by: it is free as long as nothing overflows, and ends no chain. */    \
		for (u32 i = 0; i < TABLE_PROBES; i++) {                                           \
			if (!((at + i) & mask))                                                    \
				continue;                                                          \
			slot = NAME##_slot_at(base + ((at + i) & mask));                           \
			if (!slot)                                                                 \
				return NULL;                                                       \
			state = *(volatile u64 *)&slot->state;                                     \
			if (state == TABLE_FREE)                                                   \
				break;                                                             \
			if (state == TABLE_LIVE &&                                                 \
			    table_equal((const u64 *)&slot->key, (const u64 *)key, n_words))       \
				return &slot->value;                                               \
		}                                                                                  \
		for (u32 i = 0; i < TABLE_PROBES; i++) {                                           \
			if (!((at + i) & mask))                                                    \
				continue;                                                          \
			slot = NAME##_slot_at(base + ((at + i) & mask));                           \
			if (!slot)                                                                 \
				return NULL;                                                       \
			state = *(volatile u64 *)&slot->state;                                     \
			if (state != TABLE_FREE && state != TABLE_REMOVED)                         \
				continue;                                                          \
			if (__sync_val_compare_and_swap(&slot->state, state, TABLE_FILLING) !=     \
			    state)                                                                 \
				continue;                                                          \
			slot->key = *key;                                                          \
			__sync_lock_test_and_set(&slot->state, TABLE_LIVE);                        \
			return &slot->value;                                                       \
		}                                                                                  \
		slot = NAME##_slot_at(base);                                                       \
		if (!slot)                                                                         \
			return NULL;                                                               \
		slot->state = TABLE_LIVE;                                                          \
		return &slot->value;                                                               \
	}                                                                                          \
                                                                                                   \
	static __always_inline VALUE *NAME##_at(const KEY *key)                                    \
	{                                                                                          \
		u32 slots = NAME##_slots, base = bpf_get_smp_processor_id() * slots;               \
		u32 at = table_hash((const u64 *)key, sizeof(KEY) / 8) & (slots - 1);              \
		struct NAME##_slot *slot = NAME##_slot_at(base + at);                              \
                                                                                                   \
		if (!slot)                                                                         \
			return NULL;                                                               \
		if (at && *(volatile u64 *)&slot->state == TABLE_LIVE &&                           \
		    table_equal((const u64 *)&slot->key, (const u64 *)key, sizeof(KEY) / 8))       \
			return &slot->value;                                                       \
		return NAME##_seek(key, base, at);                                                 \
	}                                                                                          \
	_Static_assert(1, "")

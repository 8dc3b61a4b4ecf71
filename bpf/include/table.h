/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * Flat tables: counting without a helper call, reading without a system call.
 *
 *     TABLE(opens, struct open_key, struct open_value, 4);        for what is rare
 *     struct open_value *value = opens_at(&key);
 *     if (value)
 *             table_add(&value->count, 1);        or all in one: table_add_to(opens, &key, count,
 *                                                 1);
 *
 *     TABLE_PERCPU(calls, struct call_key, struct call_value, 44);    for what is hot
 *     bool is_own;
 *     struct call_value *value = calls_at(&key, &is_own);
 *     if (value)
 *             table_count(&value->count, 1, is_own);
 *
 * - The last argument is the number of keys that one unit typically has. The agent knows for how
 *   many units and CPUs there is memory, and sizes the table.
 * - is_own: no other program writes there, so table_count() need not be atomic. It may be true only
 *   if one program writes the table.
 * - The key's size is a multiple of 8, and the key has no padding: zero all of it before filling
 *   it.
 * - _at() returns NULL only to please the verifier.
 * - No program that may sleep (uprobe.s, fentry.s) counts in a table: the agent would not wait for
 *   it before it gives a place to another key.
 *
 * A table is a number of places. Each has a word and a key, and values in columns: TABLE has one
 * column for all CPUs, TABLE_PERCPU one for each CPU that was online at the start, and a shared one
 * for the others. The word holds the state of the place and 61 bits of its key's hash, which stand
 * for the key. So programs compare no keys, and of two CPUs that insert a key at once, the later
 * finds the place of the earlier one.
 *
 * - A place is looked for from the key's home on, in TABLE_PROBES places. If all of them are taken,
 *   it is looked for from the key's second home on, in as many. If these are taken too, the key
 *   goes to a hash map (NAME_more). If that is full too, place 0 counts: it belongs to no key, and
 *   is reported with otel.metric.overflow.
 * - At first only a part of the table is used, so that few keys need little memory in the agent and
 *   in caches. The first key that finds no place there opens the rest. Then the homes of most keys
 *   are elsewhere, and they get second places. The agent adds up by key. The first part stays
 *   crowded, so second homes are in the upper half.
 * - The hash map is for keys beyond that: to read it, the agent makes bpf() calls, and while these
 *   run, the kernel skips classic tracepoints and kprobes on that CPU.
 * - Only the agent removes. It makes a place RETIRED, which programs no longer find, waits until no
 *   program can be writing there, takes its last number and makes it RESERVED. When it has noted
 *   down that this number is no longer in the place, it zeroes it and makes it REMOVED. A place
 *   never becomes FREE again, because that ends the search for a key.
 */

#include "kernel.h"

/* The low bits of a word. Those that are odd are taken. */
enum table_state {
	TABLE_FREE = 0,
	TABLE_LIVE = 1,
	TABLE_REMOVED = 2,
	TABLE_FILLING = 3,
	TABLE_RETIRED = 5,
	TABLE_RESERVED = 7, /* place 0, and one that is out until it is zeroed */
};

#define TABLE_STATE  7ull
#define TABLE_SPILLED 8ull /* in word 0: NAME_more has been written */
#define TABLE_PROBES 32
#define TABLE_NEW    (1u << 31) /* with a place: it is vacant no more, but has no key yet */

#define table_add(where, what) ((void)__sync_fetch_and_add((where), (what)))
/* Adds to a key's value: NAME_at(key)->member += what. */
#define table_add_to(NAME, key, member, what)                                                      \
	do {                                                                                       \
		__typeof__(NAME##_at(key)) found_ = NAME##_at(key);                                \
                                                                                                   \
		if (found_)                                                                        \
			table_add(&found_->member, what);                                          \
	} while (0)
#define table_count(where, what, is_own)                                                           \
	do {                                                                                       \
		if (is_own)                                                                        \
			*(where) += (what);                                                        \
		else                                                                               \
			table_add(where, what);                                                    \
	} while (0)

/* Keeps the compiler from moving arithmetic on a looked-up pointer above its NULL check. */
#define table_barrier(pointer) asm volatile("" : "+r"(pointer))

/* Set by the agent: a random number, so that keys with the same home cannot be prepared. */
const volatile u64 table_seed SEC(".rodata.table");

static __always_inline u64 table_hash(const u64 *word, u32 n_words)
{
	u64 hash = table_seed ^ 0x9e3779b97f4a7c15ull;

#pragma unroll
	for (u32 i = 0; i < n_words; i++) {
		hash = (hash ^ word[i]) * 0x9fb21c651e98df25ull;
		hash ^= hash >> 29;
	}
	return hash;
}

#define TABLE_ARRAY(NAME, VALUE)                                                                   \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                  \
		__uint(map_flags, BPF_F_MMAPABLE);                                                 \
		__uint(max_entries, 1);                                                            \
		__type(key, u32);                                                                  \
		__type(value, VALUE);                                                              \
	} NAME SEC(".maps")

/* The words of all tables of the object. */
TABLE_ARRAY(table_words, u64);

static __always_inline u64 *table_word(u32 index)
{
	u64 *word = bpf_map_lookup_elem(&table_words, &index);

	table_barrier(word);
	return word;
}

/*
 * The place of a key that was not at home, or with TABLE_NEW one that was vacant and is its own
 * now: the caller puts the key there. 0: all are taken; TABLE_NEW alone: another key was faster.
 *
 * The verifier follows each turn of the loop, in each program. So it is global (followed once), one
 * for all tables, and has few branches. vacant is 0, but if the verifier knew, it would follow
 * more.
 */
__noinline u32 table_seek(u64 hash, u32 home, u32 base, u32 mask, u32 vacant)
{
	u64 live = (hash & ~TABLE_STATE) | TABLE_LIVE;
	u32 at;
	u64 state, seen, *word;

	_Pragma("clang loop unroll(disable)")
	for (u32 i = 0; i < TABLE_PROBES; i++) {
		at = (home + i) & mask;
		word = table_word(base + at);
		if (!word)
			return 0;
		state = *(volatile u64 *)word;
		if ((state & ~2ull) == live) /* or filling */
			return at;
		/* The first that is not taken. */
		vacant |= (at | TABLE_NEW) & ((u32)((state | vacant >> 31) & 1) - 1);
		if (state == TABLE_FREE)
			break;
	}
	word = table_word(base + (vacant & ~TABLE_NEW));
	if (!vacant || !word)
		return 0;
	state = *(volatile u64 *)word;
	seen = state & 1 ? state : __sync_val_compare_and_swap(word, state, live | TABLE_FILLING);
	if (seen == state && !(state & 1))
		return vacant;
	return (seen & ~2ull) == live ? vacant & ~TABLE_NEW : TABLE_NEW;
}

#define TABLE_STORE(NAME, KEY, VALUE, KEYS)                                                        \
	TABLE_ARRAY(NAME##_keys, KEY);                                                             \
	TABLE_ARRAY(NAME, VALUE);                                                                  \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_HASH);                                                   \
		__uint(max_entries, 1);                                                            \
		__type(key, KEY);                                                                  \
		__type(value, VALUE);                                                              \
	} NAME##_more SEC(".maps");                                                                \
	const volatile u32 NAME##_per_unit SEC(".rodata.table") = KEYS;                            \
	const volatile u32 NAME##_base SEC(".rodata.table") = 0;     /* set by the agent */        \
	const volatile u32 NAME##_capacity SEC(".rodata.table") = 1; /* set by the agent */        \
	const VALUE NAME##_nothing SEC(".rodata.table");                                           \
	volatile u32 NAME##_mask SEC(".data.table") = 0; /* of the places in use */                \
	_Static_assert(sizeof(KEY) % 8 == 0, "a table's key is a multiple of 8 bytes");            \
                                                                                                   \
	/* The key was not at home. Its place, or 0. */                                            \
	__noinline u32 NAME##_seek(const KEY *key, u64 hash)                                       \
	{                                                                                          \
		u32 mask = NAME##_mask, full = NAME##_capacity - 1;                                \
		u32 at = table_seek(hash, hash >> 32, NAME##_base, mask, 0);                       \
		u64 *word;                                                                         \
		KEY *to;                                                                           \
                                                                                                   \
		if (!key)                                                                          \
			return 0;                                                                  \
		if (!at && mask != full) {                                                         \
			NAME##_mask = mask = full;                                                 \
			at = TABLE_NEW;                                                            \
		}                                                                                  \
		if (at == TABLE_NEW)                                                               \
			at = table_seek(hash, hash >> 32, NAME##_base, mask, 0);                   \
		if (!at) /* its second home */                                                     \
			at = table_seek(hash, (u32)hash >> 3 | NAME##_capacity / 2, NAME##_base,   \
					mask, 0);                                                  \
		if (!(at & TABLE_NEW))                                                             \
			return at;                                                                 \
		at ^= TABLE_NEW;                                                                   \
		word = table_word(NAME##_base + at);                                               \
		to = bpf_map_lookup_elem(&NAME##_keys, &at);                                       \
		if (!at || !word || !to)                                                           \
			return 0;                                                                  \
		*to = *key;                                                                        \
		__sync_lock_test_and_set(word, (hash & ~TABLE_STATE) | TABLE_LIVE);                \
		return at;                                                                         \
	}                                                                                          \
                                                                                                   \
	static __always_inline u32 NAME##_place(const KEY *key)                                    \
	{                                                                                          \
		u64 hash = table_hash((const u64 *)key, sizeof(KEY) / 8);                          \
		u32 at = hash >> 32 & NAME##_mask;                                                 \
		u64 *word = table_word(NAME##_base + at);                                          \
                                                                                                   \
		if (!word)                                                                         \
			return 0;                                                                  \
		if (*(volatile u64 *)word == ((hash & ~TABLE_STATE) | TABLE_LIVE))                 \
			return at;                                                                 \
		return NAME##_seek(key, hash);                                                     \
	}                                                                                          \
                                                                                                   \
	static __noinline VALUE *NAME##_spill(const KEY *key)                                      \
	{                                                                                          \
		VALUE *value = bpf_map_lookup_elem(&NAME##_more, key);                             \
		u64 *word;                                                                         \
                                                                                                   \
		if (value)                                                                         \
			return value;                                                              \
		bpf_map_update_elem(&NAME##_more, key, &NAME##_nothing, BPF_NOEXIST);              \
		word = table_word(NAME##_base);                                                    \
		if (word)                                                                          \
			__sync_fetch_and_or(word, TABLE_SPILLED);                                  \
		return bpf_map_lookup_elem(&NAME##_more, key);                                     \
	}                                                                                          \
                                                                                                   \
	static __always_inline VALUE *NAME##_value_at(u32 index)                                   \
	{                                                                                          \
		VALUE *value = bpf_map_lookup_elem(&NAME, &index);                                 \
                                                                                                   \
		table_barrier(value);                                                              \
		return value;                                                                      \
	}                                                                                          \
	_Static_assert(1, "")

#define TABLE(NAME, KEY, VALUE, KEYS)                                                              \
	TABLE_STORE(NAME, KEY, VALUE, KEYS);                                                       \
	static __always_inline VALUE *NAME##_at(const KEY *key)                                    \
	{                                                                                          \
		u32 at = NAME##_place(key);                                                        \
		VALUE *value = at ? NULL : NAME##_spill(key);                                      \
                                                                                                   \
		return value ? value : NAME##_value_at(at);                                        \
	}                                                                                          \
	_Static_assert(1, "")

#define TABLE_PERCPU(NAME, KEY, VALUE, KEYS)                                                       \
	TABLE_STORE(NAME, KEY, VALUE, KEYS);                                                       \
	const volatile u32 NAME##_columns SEC(".rodata.table") = 1; /* set by the agent */         \
	static __always_inline VALUE *NAME##_at(const KEY *key, bool *ret_is_own)                  \
	{                                                                                          \
		u32 at = NAME##_place(key), shared = NAME##_columns - 1;                           \
		u32 column = bpf_get_smp_processor_id();                                           \
		VALUE *value = at ? NULL : NAME##_spill(key);                                      \
                                                                                                   \
		*ret_is_own = false;                                                               \
		if (value)                                                                         \
			return value;                                                              \
		if (column < shared)                                                               \
			*ret_is_own = true;                                                        \
		else                                                                               \
			column = shared;                                                           \
		return NAME##_value_at(at + column * NAME##_capacity);                             \
	}                                                                                          \
	_Static_assert(1, "")

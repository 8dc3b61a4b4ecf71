/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * Events: a record of a ring buffer for each thing that happens, which [event NAME] or [span NAME]
 * of the descriptor describes. A record is a structure. Give it a member of type val_boot_ns, its
 * time.
 *
 *     EVENTS(execs);
 *     const struct exec_event *exec_event; // so that the compiler keeps the type
 *
 *     if (!event_is_admitted_of(execs, bpf_get_current_cgroup_id()))
 *             return 0;
 *     …
 *     event_send(execs, &event, sizeof(event));
 *
 * A flood costs a read for each event above the limit. Those are counted, and so are those that
 * found no room; the agent reports both.
 */

#include "label.h"

/*
 * At most so many events of each ring in each second, of the whole machine; 0: any number. An
 * object of several collectors has NAME_rate_limit instead, and defines this before it includes
 * this header.
 */
#ifndef EVENT_RATE_LIMIT
const volatile u64 rate_limit = 1000;
#define EVENT_RATE_LIMIT rate_limit
#endif

/* bpfpush sets it where events of some cgroups are not wanted. */
const volatile bool events_choose = false;

struct event_losses {
	u64 limited;
	u64 full;
};

/* In one number, so that a CPU that begins a second does not meet another one that does. */
struct event_second {
	u64 second_and_n; /* since boot, above 32 bits of how many events it had */
};

#define EVENT_SECOND_SHIFT 32

/* The ring has room for 1 MiB of events that the agent has not read yet. */
#define EVENTS(ring)                                                                               \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_RINGBUF);                                                \
		__uint(max_entries, 1 << 20);                                                      \
	} ring SEC(".maps");                                                                       \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);                                           \
		__uint(max_entries, 1);                                                            \
		__type(key, u32);                                                                  \
		__type(value, struct event_losses);                                                \
	} ring##_losses SEC(".maps");                                                              \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_HASH);                                                   \
		__uint(max_entries, 1024);                                                         \
		__type(key, u64);                                                                  \
		__type(value, u8);                                                                 \
	} ring##_unwanted SEC(".maps");                                                            \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                  \
		__uint(max_entries, 1);                                                            \
		__type(key, u32);                                                                  \
		__type(value, struct event_second);                                                \
	} ring##_second SEC(".maps")

/* Without a limit nothing is shared. Once a second is full, CPUs only read what they share. */
static __always_inline bool event_take_turn(struct event_second *of)
{
	u64 now = bpf_ktime_get_boot_ns() / 1000000000 << EVENT_SECOND_SHIFT;
	u64 seen = *(volatile u64 *)&of->second_and_n;

	if (seen < now && __sync_val_compare_and_swap(&of->second_and_n, seen, now + 1) == seen)
		return true;
	/* Another CPU has begun it, or a second that follows. */
	seen = *(volatile u64 *)&of->second_and_n;
	if ((u32)seen >= EVENT_RATE_LIMIT)
		return false;
	return (u32)__sync_fetch_and_add(&of->second_and_n, 1) < EVENT_RATE_LIMIT;
}

static __always_inline bool event_admit(void *second, void *losses)
{
	u32 zero = 0;
	struct event_losses *lost;
	struct event_second *of;

	if (!EVENT_RATE_LIMIT)
		return true;
	of = bpf_map_lookup_elem(second, &zero);
	if (of && event_take_turn(of))
		return true;
	lost = bpf_map_lookup_elem(losses, &zero);
	if (lost)
		__sync_fetch_and_add(&lost->limited, 1);
	return false;
}

static __always_inline void event_count_full(void *losses)
{
	u32 zero = 0;
	struct event_losses *lost = bpf_map_lookup_elem(losses, &zero);

	if (lost)
		__sync_fetch_and_add(&lost->full, 1);
}

static __always_inline void event_put(void *ring, void *losses, void *event, u64 bytes)
{
	if (bpf_ringbuf_output(ring, event, bytes, 0))
		event_count_full(losses);
}

static __always_inline bool event_is_wanted(void *unwanted, u64 cgroup)
{
	return !bpf_map_lookup_elem(unwanted, &cgroup);
}

/* Is the event within the limit? Call it before what costs something, once for each event. */
#define event_is_admitted(ring) event_admit(&ring##_second, &ring##_losses)
/*
 * The same for an event whose record has this cgroup as its lbl_cgroup. Once bpfpush has seen that
 * events of it are not wanted, they are left out here, and are neither counted nor limited.
 */
#define event_is_admitted_of(ring, cgroup)                                                         \
	((!events_choose || event_is_wanted(&ring##_unwanted, cgroup)) && event_is_admitted(ring))
/* bytes: of the structure, or fewer if its last member is an array that is not full. */
#define event_send(ring, event, bytes) event_put(&ring, &ring##_losses, event, bytes)
/*
 * For an event that is too large for the stack: room in the ring, which is not cleared, for
 * bpf_ringbuf_submit(event, 0). NULL: there is none, which is counted.
 */
#define event_reserve(ring, bytes)                                                                 \
	({                                                                                         \
		void *event_ = bpf_ringbuf_reserve(&ring, bytes, 0);                               \
		if (!event_)                                                                       \
			event_count_full(&ring##_losses);                                          \
		event_;                                                                            \
	})

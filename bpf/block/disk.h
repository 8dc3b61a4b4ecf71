/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/* The collector disk: an event for each operation that takes at least disk_min_duration. */

#include "event.h"

const volatile prm_ns disk_min_duration = 10 * 1000 * 1000;

struct disk_event {
	val_boot_ns time;
	struct disk_key of;
	u64 sector;
	u64 bytes;
	val_ns duration; /* from the driver's start to the end */
	val_ns queue;	 /* before that */
};

#define NO_SECTOR ~0ull /* of a flush */

EVENTS(disk_operations);
const struct disk_event *disk_event__unused; /* so that the compiler keeps the type */

static __always_inline void disk_report(const struct disk_key *key, const struct started *started,
					u64 queue_ns, u64 bytes)
{
	struct disk_event event = { .of = *key };

	event.duration = bpf_ktime_get_ns() - started->start_ns;
	event.queue = queue_ns;
	if (event.duration + queue_ns < disk_min_duration || !event_is_admitted(disk_operations))
		return;
	event.time = bpf_ktime_get_boot_ns();
	event.sector = started->sector == NO_SECTOR ? 0 : started->sector;
	event.bytes = bytes;
	event_send(disk_operations, &event, sizeof(event));
}

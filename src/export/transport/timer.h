/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A timer on the event loop, by the monotonic clock, that expires once each time it is armed. It
 * may expire up to half a millisecond late, so that the loop can join wake-ups.
 */

#include <stdint.h>

struct sd_event;
struct sd_event_source;

typedef void timer_fn(void *user);

struct timer {
	struct sd_event *event; /* borrowed; outlives the timer */
	timer_fn *expired;	/* called from the loop; may arm the timer again, or end it */
	void *user;
	struct sd_event_source *source; /* for timer.c only */
};

void timer_init(struct timer *timer, struct sd_event *event, timer_fn *expired, void *user);
/* Replaces an earlier time. -ENOMEM: the timer is not armed. */
int timer_arm(struct timer *timer, uint64_t delay_ns);
/* Both also take a timer that is not armed or all zero. */
void timer_disarm(struct timer *timer);
void timer_done(struct timer *timer);

/* Time of the loop's turn, ns: CLOCK_MONOTONIC, and CLOCK_BOOTTIME, which goes on in a suspend. */
uint64_t timer_now_ns(struct sd_event *event);
uint64_t timer_boottime_ns(struct sd_event *event);

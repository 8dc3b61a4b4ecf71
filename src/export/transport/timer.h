/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A timer on the event loop, by the monotonic clock, that expires once each time it is armed. It
 * may expire up to half a millisecond late, so that the loop can join wake-ups.
 */

#include <stdint.h>
#include <time.h>

struct sd_event;

typedef void timer_fn(void *user);

/* Its user sets the first three. */
struct timer {
	struct sd_event *event; /* borrowed; outlives the timer */
	timer_fn *expired;	/* called from the loop; may arm the timer again, or end it */
	void *user;
	struct sd_event_source *source; /* for timer.c only */
};

/*
 * How long to wait before another attempt: exponential with full jitter, so that many agents do not
 * come back at the same moment; longer if the receiver asks for it, by up to half more than that.
 */
struct backoff {
	uint64_t initial_ns; /* the first delay is somewhere in [0, initial_ns] */
	uint64_t max_ns;     /* a delay is longer only if the receiver asks for it */
	uint64_t limit_ns;   /* of the next delay; 0: initial_ns, as after a success */
};

/* Replaces an earlier time. -ENOMEM: the timer is not armed. */
int timer_arm(struct timer *timer, uint64_t delay_ns);
/*
 * The next delay. retry_after_ns: what the receiver asked for, or 0. random: evenly spread over its
 * type.
 */
uint64_t backoff_next(struct backoff *backoff, uint32_t random, uint64_t retry_after_ns);
uint64_t backoff_draw(struct backoff *backoff, uint64_t retry_after_ns); /* at random */
/* Both also take a timer that is not armed or all zero. */
void timer_disarm(struct timer *timer);
void timer_done(struct timer *timer);

/* Time of the loop's turn, ns: CLOCK_MONOTONIC, and CLOCK_BOOTTIME, which goes on in a suspend. */
#define timer_now_ns(event)	 timer_turn_ns(event, CLOCK_MONOTONIC)
#define timer_boottime_ns(event) timer_turn_ns(event, CLOCK_BOOTTIME)
uint64_t timer_turn_ns(struct sd_event *event, clockid_t clock);

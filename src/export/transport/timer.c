/* SPDX-License-Identifier: Apache-2.0 */
#include "export/transport/timer.h"

#include <sys/random.h>
#include <systemd/sd-event.h>

#include "util/duration.h"

#define ACCURACY_US 500

static int on_time(sd_event_source *source, uint64_t usec, void *user)
{
	struct timer *timer = user;

	timer->expired(timer->user);
	return 0;
}

int timer_arm(struct timer *timer, uint64_t delay_ns)
{
	uint64_t delay_us = delay_ns / NS_PER_US;
	int r = timer->source ? sd_event_source_set_time_relative(timer->source, delay_us) :
				sd_event_add_time_relative(timer->event, &timer->source,
							   CLOCK_MONOTONIC, delay_us,
							   ACCURACY_US, on_time, timer);

	if (r >= 0)
		r = sd_event_source_set_enabled(timer->source, SD_EVENT_ONESHOT);
	return r < 0 ? r : 0;
}

uint64_t backoff_next(struct backoff *backoff, uint32_t random, uint64_t retry_after_ns)
{
	uint64_t limit_ns = backoff->limit_ns ? backoff->limit_ns : backoff->initial_ns, delay_ns;

	if (limit_ns > backoff->max_ns)
		limit_ns = backoff->max_ns;
	backoff->limit_ns = limit_ns > backoff->max_ns / 2 ? backoff->max_ns : limit_ns * 2;
	delay_ns = (uint64_t)((unsigned __int128)limit_ns * random >> 32);
	retry_after_ns += (uint64_t)((unsigned __int128)retry_after_ns * random >> 33);
	return delay_ns > retry_after_ns ? delay_ns : retry_after_ns;
}

uint64_t backoff_draw(struct backoff *backoff, uint64_t retry_after_ns)
{
	uint32_t random = UINT32_MAX;

	(void)!getrandom(&random, sizeof(random), GRND_NONBLOCK);
	return backoff_next(backoff, random, retry_after_ns);
}

void timer_disarm(struct timer *timer)
{
	if (timer->source)
		(void)sd_event_source_set_enabled(timer->source, SD_EVENT_OFF);
}

void timer_done(struct timer *timer)
{
	timer->source = sd_event_source_disable_unref(timer->source);
}

uint64_t timer_turn_ns(struct sd_event *event, clockid_t clock)
{
	uint64_t now_us = 0;

	(void)sd_event_now(event, clock, &now_us);
	return now_us * NS_PER_US;
}

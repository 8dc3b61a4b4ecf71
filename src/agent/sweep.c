/* SPDX-License-Identifier: Apache-2.0 */
/* Keys are removed after a collection, in turns that leave the loop free for exporters in between. */
#include "agent/internal.h"

#define TURN_NS	 (2 * NS_PER_MS)
#define ACCURACY (10 * NS_PER_MS / NS_PER_US)

static int on_sweep(sd_event_source *source, uint64_t usec, void *user)
{
	const struct collector_set *set = ((struct agent *)user)->options.set;
	uint64_t now_ns = clock_ns(CLOCK_BOOTTIME), soonest_ns = UINT64_MAX;
	int64_t left_ns = TURN_NS;

	for (size_t i = 0; i < set->n; i++) {
		uint64_t wait_ns = collector_sweep(set->items[i], now_ns, &left_ns);

		soonest_ns = wait_ns < soonest_ns ? wait_ns : soonest_ns;
	}
	if (soonest_ns == UINT64_MAX)
		return 0;
	sd_event_source_set_time(source, (now_ns + soonest_ns) / NS_PER_US);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

int agent_add_sweep(struct agent *agent)
{
	int err = sd_event_add_time(agent->event, &agent->sweep, CLOCK_BOOTTIME, 0, ACCURACY, on_sweep, agent);

	return err < 0 ? err : sd_event_source_set_priority(agent->sweep, SD_EVENT_PRIORITY_IDLE) ?:
			       sd_event_source_set_enabled(agent->sweep, SD_EVENT_OFF);
}

void agent_sweep(struct agent *agent)
{
	sd_event_source_set_time(agent->sweep, 0);
	sd_event_source_set_enabled(agent->sweep, SD_EVENT_ONESHOT);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What is logged about collections: each state once, when it begins. */
#include "agent/internal.h"

#include <inttypes.h>
#include <string.h>

#include "util/plural.h"

/* A failure is logged once, until a collection succeeds. */
void agent_report_reading(const struct agent *agent, const char *collector, int err)
{
	if (err && !agent->is_read_failing)
		log_error("collector %s: its maps could not be read: %s; a later collection will catch up",
			  collector, strerror(-err));
}

/* Said once for all; the overflow series itself is exported. */
static void report_overflow(struct agent *agent)
{
	for (size_t i = 0; i < agent->batch.n_metrics && !agent->is_overflow_known; i++) {
		const struct metric *metric = agent->batch.metrics[i];

		if (metric->n_series < metric->limit)
			continue;
		agent->is_overflow_known = true;
		log_event(LOG_LEVEL_WARNING, LOG_ID_MAP_FULL, NULL,
			  "metric %s has reached the limit of %zu series: the rest is counted together under "
			  "otel.metric.overflow; to raise the limit, set series_limit in [agent]",
			  metric->name, metric->limit);
	}
}

/* Said once for each collector; how full tables are is exported. */
static void report_full(struct agent *agent)
{
	for (size_t i = 0; i < agent->options.set->n; i++) {
		const struct collector *collector = agent->options.set->items[i];
		const char *table = agent->is_full_known[i] ? NULL : collector_full_table(collector);
		const struct log_field fields[] = { { "BPFPUSH_COLLECTOR", collector->name },
						    { "BPFPUSH_MAP", table },
						    { NULL, NULL } };

		if (!table)
			continue;
		agent->is_full_known[i] = true;
		log_event(LOG_LEVEL_WARNING, LOG_ID_MAP_FULL, fields,
			  "collector %s: table %s is full: further keys are counted together under otel.metric.overflow; "
			  "set %s_slots in [collector %s] to a larger power of two",
			  collector->name, table, table, collector->name);
	}
}

/* Programs that the kernel skips miss events: said once, counted always. */
static void report_misses(struct agent *agent)
{
	uint64_t misses = 0;

	for (size_t i = 0; i < agent->options.set->n; i++) {
		const struct programs *programs = &agent->options.set->items[i]->programs;

		for (uint32_t j = 0; j < programs->n; j++)
			misses += programs->items[j].missed;
	}
	if (misses && !agent->n_misses)
		log_warning("the kernel skipped %" PRIu64 " event%s because their program had been preempted on that CPU; "
			    "bpfpush.bpf.program.missed counts them",
			    misses, plural(misses));
	agent->n_misses = misses;
}

void agent_report(struct agent *agent)
{
	report_misses(agent);
	report_full(agent);
	report_overflow(agent);
}

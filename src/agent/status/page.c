/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/status/page.h"

#include <inttypes.h>
#include <string.h>

#include "agent/internal.h"
#include "agent/status/health.h"
#include "build-config.h"
#include "util/array.h"

#define MIB (1 << 20)

/* The same, twice. */
struct page {
	struct buf text, json;
	uint64_t now_ns;
};

/* since_ns: 0: it is left out */
static void append_age(struct page *page, const char *name, uint64_t since_ns)
{
	if (since_ns)
		buf_printf(&page->json, "\"%s\":%.3f,", name, (double)(page->now_ns - since_ns) / 1e9);
}

static void append_agent(struct page *page, const struct agent *agent)
{
	const struct budget *budget = agent->options.set->budget;
	uint64_t bytes = budget->series_bytes + budget->table_bytes;
	_cleanup_(buf_done) struct buf problems = BUF_INIT;

	buf_printf(&page->text, "bpfpush %s, process %d\ncollection every %g s, ", VERSION, (int)getpid(),
		   (double)agent->options.interval_ns / 1e9);
	if (agent->n_collections) {
		health_append_age(&page->text, "the last one ", page->now_ns - agent->boottime_ns, " ago");
		buf_printf(&page->text, " in %.1f ms", (double)agent->collection_ns / 1e6);
	} else {
		buf_append_text(&page->text, "none yet");
	}
	buf_printf(&page->text, "\n%" PRIu64 " of %" PRIu64 " series, %.1f of %.1f MiB for tables and series\n",
		   budget->n_series, budget->limit_series, (double)bytes / MIB, (double)budget->limit_bytes / MIB);
	health_append_problems(agent, "", "\n", &problems);
	buf_append_text(&page->text, buf_text(&problems));
	buf_printf(&page->json,
		   "{\"version\":\"%s\",\"pid\":%d,\"interval_s\":%.9g,\"collection_age_s\":%.3f,\"collection_s\":%.6f,"
		   "\"series\":%" PRIu64 ",\"series_limit\":%" PRIu64 ",\"memory\":%" PRIu64
		   ",\"memory_limit\":%" PRIu64 ",",
		   VERSION, (int)getpid(), (double)agent->options.interval_ns / 1e9,
		   (double)(page->now_ns - agent->boottime_ns) / 1e9, (double)agent->collection_ns / 1e9,
		   budget->n_series, budget->limit_series, bytes, budget->limit_bytes);
	buf_append_member(&page->json, "problems", buf_text(&problems));
	buf_append_text(&page->json, "\"exporters\":[");
}

static void append_exporter(struct page *page, const struct exporter *exporter)
{
	const struct exporter_stats *stats = &exporter->stats;
	struct exporter_waiting waiting = exporter_waiting(exporter);
	_cleanup_(buf_done) struct buf place = BUF_INIT, state = BUF_INIT;

	health_append_place(exporter, &place);
	health_append(exporter, page->now_ns, &state);
	buf_printf(&page->text, "\nexporter %s (%s) to %s\n  %s\n ", exporter->name, exporter->ops->type, buf_text(&place),
		   buf_text(&state));
	buf_append_byte(&page->json, '{');
	buf_append_member(&page->json, "name", exporter->name);
	buf_append_member(&page->json, "type", exporter->ops->type);
	buf_append_member(&page->json, "endpoint", buf_text(&place));
	buf_append_member(&page->json, "state",
			   stats->is_failing ? "failing" : stats->delivered_ns ? "delivered" : "waiting");
	buf_append_member(&page->json, "problem", stats->problem);
	for (enum points fate = 0; fate < N_POINTS; fate++) {
		const char *name = fate == POINTS_PUSHED ? "pushed" : points_error_type[fate] ?: "delivered";

		if (stats->points[fate] || fate <= POINTS_DELIVERED)
			buf_printf(&page->text, " %" PRIu64 " %s,", stats->points[fate], name);
		buf_printf(&page->json, "\"%s\":%" PRIu64 ",", name, stats->points[fate]);
	}
	buf_printf(&page->text, " %" PRIu64 " waiting\n", waiting.n_points);
	append_age(page, "delivered_age_s", stats->delivered_ns);
	append_age(page, "failing_s", stats->failing_ns);
	append_age(page, "no_answer_s", stats->asked_ns);
	buf_printf(&page->json, "\"waiting\":%" PRIu64 ",\"queue\":%" PRIu64 "},", waiting.n_points, waiting.n_bytes);
}

static void append_collector(struct page *page, const struct collector *collector)
{
	const struct programs *programs = &collector->object->programs;
	size_t n_attached = 0, n_hooks = 0, n_series = 0, n_overflows = 0;
	uint64_t missed = 0;

	array_for_each (program, programs->items, programs->n) {
		if (!collector_uses(collector, program) || (program->state != PROGRAM_ATTACHED &&
							    (program->state != PROGRAM_REFUSED ||
							     programs_is_hook_attached(programs, program->hook))))
			continue;
		n_hooks++;
		n_attached += program->state == PROGRAM_ATTACHED;
		missed += program->missed;
	}
	for (size_t i = 0; i < collector->n_metrics; i++) {
		const struct metric *metric = collector->metrics[i];

		for (size_t j = 0; j < metric->n_series; j++) {
			bool is_overflow = series_is_overflow(metric->series[j]);

			n_overflows += is_overflow;
			n_series += !is_overflow && metric->series[j]->n_sources;
		}
	}
	buf_printf(&page->text, "%-24s %3zu of %-3zu %9zu %9" PRIu64 "  %s\n", collector->name, n_attached, n_hooks, n_series,
		   missed, n_overflows ? "yes" : "no");
	buf_append_byte(&page->json, '{');
	buf_append_member(&page->json, "name", collector->name);
	buf_printf(&page->json, "\"attached\":%zu,\"hooks\":%zu,\"series\":%zu,\"missed\":%" PRIu64 ",\"overflow\":%s},",
		   n_attached, n_hooks, n_series, missed, n_overflows ? "true" : "false");
}

void page_append(const struct agent *agent, uint64_t now_ns, struct buf *out)
{
	const struct collector_set *set = agent->options.set;
	bool is_failing = agent->is_read_failing || agent->is_reload_refused;
	struct page page = { .now_ns = now_ns };

	append_agent(&page, agent);
	for (size_t i = 0; i < agent->n_exporters; i++) {
		append_exporter(&page, agent->exporters[i]);
		is_failing |= agent->exporters[i]->stats.is_failing;
	}
	buf_end_list(&page.json, "],\"collectors\":[");
	buf_printf(&page.text, "\n%-24s %-10s %9s %9s  %s\n", "collector", "attached", "series", "missed", "overflow");
	for (size_t i = 0; i < set->n; i++)
		append_collector(&page, set->items[i]);
	buf_end_list(&page.json, "]}\n");
	out->error = buf_error(&page.text) ?: buf_error(&page.json);
	buf_append_byte(out, is_failing ? '1' : '0');
	buf_append(out, page.text.data, page.text.size);
	buf_append_byte(out, '\0');
	buf_append(out, page.json.data, page.json.size);
	buf_done(&page.text);
	buf_done(&page.json);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/status/page.h"

#include <inttypes.h>
#include <string.h>

#include "agent/internal.h"
#include "build-config.h"
#include "collector/kernel/kernel.h"
#include "collector/label/cgroup.h"
#include "export/transport/url.h"
#include "util/array.h"

#define MIB (1 << 20)

/* In words */

/* "40 s", "3 min" */
static void append_age_in_words(struct buf *out, const char *before, uint64_t age_ns,
				const char *after)
{
	uint64_t age_s = age_ns / NS_PER_S;

	if (age_s < 120)
		buf_printf(out, "%s%" PRIu64 " s%s", before, age_s, after);
	else if (age_s < 7200)
		buf_printf(out, "%s%" PRIu64 " min%s", before, age_s / 60, after);
	else
		buf_printf(out, "%s%" PRIu64 " h%s", before, age_s / 3600, after);
}

void page_append_health(const struct exporter *exporter, uint64_t now_ns, struct buf *out)
{
	const struct exporter_stats *stats = &exporter->stats;
	uint64_t wait_bytes = exporter_waiting(exporter).n_bytes;

	if (stats->is_failing)
		append_age_in_words(out, "failing for ", now_ns - stats->failing_ns, "");
	else if (stats->delivered_ns)
		append_age_in_words(out, "delivered ", now_ns - stats->delivered_ns, " ago");
	else
		buf_append_text(out, "not delivered yet");
	if (!stats->is_failing && stats->asked_ns && now_ns - stats->asked_ns >= NS_PER_S)
		append_age_in_words(out, ", no answer for ", now_ns - stats->asked_ns, "");
	if (wait_bytes)
		buf_printf(out, ", %" PRIu64 " KiB waiting", (wait_bytes + 1023) / 1024);
	if (stats->is_failing)
		buf_printf(out, ": %.*s", exporter_problem_bytes(exporter), stats->problem);
}

void page_append_problems(const struct agent *agent, const char *before, const char *after,
			  struct buf *out)
{
	const char *hidden = cgroups_complaint(agent->options.set->labels->cgroups);

	if (agent->is_read_failing)
		buf_printf(out, "%sthe last collection could not read all maps%s", before, after);
	if (agent->is_tracing_off)
		buf_printf(out, "%s" NO_TRACED_FUNCTIONS "%s", before, after);
	if (agent->is_reload_refused)
		buf_printf(out, "%sthe configuration has mistakes, and the old one goes on%s", before, after);
	if (agent->options.set->missing.size)
		buf_printf(out, "%scannot run: %s%s", before, buf_text(&agent->options.set->missing), after);
	if (agent->too_low.size)
		buf_printf(out, "%snumbers are too low: %.*s%s", before, (int)agent->too_low.size, agent->too_low.data, after);
	if (*hidden)
		buf_printf(out, "%s%s%s", before, hidden, after);
}

void page_append_place(const struct exporter *exporter, struct buf *out)
{
	static const char *const wholes[SIGNALS] = { "metrics_endpoint", "logs_endpoint",
						     "traces_endpoint" };
	const char *const keys[] = {
		wholes[signal_index(exporter->ops->takes)], "endpoint", "path",
	};
	_cleanup_(freep) char *shown = NULL;
	const char *text = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(keys) && !text; i++) {
		const struct setting_row *row =
			setting_table_find(exporter->ops->settings, keys[i]);

		if (row)
			text = *(char *const *)((const char *)exporter->options + row->offset);
	}
	if (!text)
		return;
	shown = strstr(text, "://") ? url_public(text) : strdup(text);
	buf_append_text(out, shown ?: "");
}

/* The page */

/* The same page as text and as JSON. */
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
		append_age_in_words(&page->text, "the last one ", page->now_ns - agent->boottime_ns, " ago");
		buf_printf(&page->text, " in %.1f ms", (double)agent->collection_ns / 1e6);
	} else {
		buf_append_text(&page->text, "none yet");
	}
	buf_printf(&page->text, "\n%" PRIu64 " of %" PRIu64 " series, %.1f of %.1f MiB for tables and series\n",
		   budget->n_series, budget->limit_series, (double)bytes / MIB,
		   (double)budget->limit_bytes / MIB);
	page_append_problems(agent, "", "\n", &problems);
	buf_append_text(&page->text, buf_text(&problems));
	buf_begin_object(&page->json, "version", VERSION, "problems", buf_text(&problems));
	buf_printf(&page->json,
		   "\"pid\":%d,\"interval_s\":%.9g,\"collection_age_s\":%.3f,\"collection_s\":%.6f,"
		   "\"series\":%" PRIu64 ",\"series_limit\":%" PRIu64 ",\"memory\":%" PRIu64
		   ",\"memory_limit\":%" PRIu64 ",\"exporters\":[",
		   (int)getpid(), (double)agent->options.interval_ns / 1e9,
		   (double)(page->now_ns - agent->boottime_ns) / 1e9,
		   (double)agent->collection_ns / 1e9,
		   budget->n_series, budget->limit_series, bytes, budget->limit_bytes);
}

static void append_exporter(struct page *page, const struct exporter *exporter)
{
	const struct exporter_stats *stats = &exporter->stats;
	struct exporter_waiting waiting = exporter_waiting(exporter);
	const char *state = stats->delivered_ns ? "delivered" : "waiting";
	const char *proxy = exporter->proxy ?: "";
	_cleanup_(buf_done) struct buf place = BUF_INIT;

	page_append_place(exporter, &place);
	buf_printf(&page->text, "\nexporter %s (%s) to %s", exporter->name, exporter->ops->type, buf_text(&place));
	if (*proxy)
		buf_printf(&page->text, " through the proxy %s", proxy);
	buf_append_text(&page->text, "\n  ");
	page_append_health(exporter, page->now_ns, &page->text);
	buf_append_text(&page->text, "\n ");
	buf_begin_object(&page->json, "name", exporter->name, "type", exporter->ops->type, "endpoint",
			 buf_text(&place), "proxy", proxy,
			 "problem", stats->problem, "state", stats->is_failing ? "failing" : state);
	for (enum points fate = 0; fate < N_POINTS; fate++) {
		const char *other = fate == POINTS_PUSHED ? "pushed" : "delivered";
		const char *name = points_error_type[fate] ?: other;

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

static void append_refusal(const struct collector *collector, const char *programs,
			   const char *error, void *user)
{
	struct page *page = user;

	buf_printf(&page->text, "  without %s: %s\n", programs, error);
	buf_append_json(&page->json, error);
	buf_append_byte(&page->json, ',');
}

static void append_collector(struct page *page, const struct collector *collector)
{
	const struct programs *programs = &collector->object->programs;
	size_t n_attached = 0, n_hooks = 0, n_series = 0, n_overflows = 0;
	uint64_t missed = 0;

	array_for_each (program, programs->items, programs->n) {
		if (!collector_uses(collector, program) || (program->state != PROGRAM_ATTACHED &&
							    (program->state != PROGRAM_REFUSED ||
							     programs_find(programs, program->hook,
									   PROGRAM_ATTACHED))))
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
	buf_begin_object(&page->json, "name", collector->name);
	buf_printf(&page->json, "\"attached\":%zu,\"hooks\":%zu,\"series\":%zu,\"missed\":%" PRIu64 ",\"overflow\":%s,\"refused\":[",
		   n_attached, n_hooks, n_series, missed, n_overflows ? "true" : "false");
	collector_each_refusal(collector, append_refusal, page);
	buf_end_list(&page->json, "]},");
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/status/health.h"

#include <inttypes.h>
#include <string.h>

#include "agent/internal.h"

void health_append_age(struct buf *out, const char *before, uint64_t age_ns, const char *after)
{
	uint64_t age_s = age_ns / NS_PER_S, unit_s = age_s < 120 ? 1 : age_s < 7200 ? 60 : 3600;

	buf_printf(out, "%s%" PRIu64 " %s%s", before, age_s / unit_s, unit_s == 1 ? "s" : unit_s == 60 ? "min" : "h", after);
}

void health_append(const struct exporter *exporter, uint64_t now_ns, struct buf *out)
{
	const struct exporter_stats *stats = &exporter->stats;
	uint64_t wait_bytes = exporter_waiting(exporter).n_bytes;
	const char *advice = strstr(stats->problem, "; ");

	if (stats->is_failing)
		health_append_age(out, "failing for ", now_ns - stats->failing_ns, "");
	else if (stats->delivered_ns)
		health_append_age(out, "delivered ", now_ns - stats->delivered_ns, " ago");
	else
		buf_append_text(out, "not delivered yet");
	if (!stats->is_failing && stats->asked_ns && now_ns - stats->asked_ns >= NS_PER_S)
		health_append_age(out, ", no answer for ", now_ns - stats->asked_ns, "");
	if (wait_bytes)
		buf_printf(out, ", %" PRIu64 " KiB waiting", (wait_bytes + 1023) / 1024);
	if (stats->is_failing)
		buf_printf(out, ": %.*s", advice ? (int)(advice - stats->problem) : -1, stats->problem);
}

void health_append_problems(const struct agent *agent, const char *before, const char *after, struct buf *out)
{
	if (agent->is_read_failing)
		buf_printf(out, "%sthe last collection could not read all maps%s", before, after);
	if (agent->is_reload_refused)
		buf_printf(out, "%sthe configuration has mistakes, and the old one goes on%s", before, after);
	if (agent->too_low.size)
		buf_printf(out, "%snumbers are too low: %.*s%s", before, (int)agent->too_low.size, agent->too_low.data, after);
}

void health_append_place(const struct exporter *exporter, struct buf *out)
{
	static const char *const keys[] = { "metrics_endpoint", "endpoint", "path" };
	const char *text = NULL, *scheme, *at;

	for (size_t i = 0; i < ARRAY_SIZE(keys) && !text; i++) {
		const struct setting_row *row = setting_table_find(exporter->ops->settings, keys[i]);

		if (row)
			text = *(char *const *)((const char *)exporter->options + row->offset);
	}
	if (!text)
		return;
	scheme = strstr(text, "://");
	at = scheme ? memrchr(scheme + 3, '@', strcspn(scheme + 3, "/?#")) : NULL;
	if (at)
		buf_append(out, text, (size_t)(scheme + 3 - text));
	buf_append(out, at ? at + 1 : text, strcspn(at ? at + 1 : text, scheme ? "?#" : ""));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/status/health.h"

#include <inttypes.h>
#include <string.h>

#include "util/duration.h"

bool health_note(struct health *health, const struct exporter *exporter, uint64_t now_ns)
{
	const struct exporter_stats *stats = &exporter->stats;
	bool has_delivered = stats->points[POINTS_DELIVERED] != health->n_delivered;
	bool is_news = has_delivered || stats->n_changes != health->n_changes;

	if (has_delivered)
		health->delivered_ns = now_ns;
	if (!stats->is_failing || !health->failing_ns)
		health->failing_ns = stats->is_failing ? now_ns : 0;
	health->n_delivered = stats->points[POINTS_DELIVERED];
	health->n_changes = stats->n_changes;
	return is_news;
}

void health_append_age(struct buf *out, uint64_t age_ns)
{
	uint64_t age_s = age_ns / NS_PER_S, unit_s = age_s < 120 ? 1 : age_s < 7200 ? 60 : 3600;

	buf_printf(out, "%" PRIu64 " %s", age_s / unit_s, unit_s == 1 ? "s" : unit_s == 60 ? "min" : "h");
}

void health_append(const struct health *health, const struct exporter *exporter, uint64_t now_ns, struct buf *out)
{
	const struct exporter_stats *stats = &exporter->stats;
	uint64_t wait_bytes = exporter_waiting(exporter).n_bytes;
	const char *advice = strstr(stats->problem, "; ");

	buf_append_text(out, stats->is_failing ? "failing for " : health->delivered_ns ? "delivered " : "not delivered yet");
	if (stats->is_failing || health->delivered_ns)
		health_append_age(out, now_ns - (stats->is_failing ? health->failing_ns : health->delivered_ns));
	if (!stats->is_failing && health->delivered_ns)
		buf_append_text(out, " ago");
	if (wait_bytes)
		buf_printf(out, ", %" PRIu64 " KiB waiting", (wait_bytes + 1023) / 1024);
	if (stats->is_failing)
		buf_printf(out, ": %.*s", advice ? (int)(advice - stats->problem) : -1, stats->problem);
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

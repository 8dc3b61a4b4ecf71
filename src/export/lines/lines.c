/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all series of a metric share (the unit, the texts of buckets) is worked out with the first
 * batch. What all points of a series share (its name) is worked out with its first point, kept with
 * the series and freed with it. After that, a line is two copies and a number.
 */
#include "export/lines/lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/lines/point.h"
#include "util/array.h"

static const struct unit {
	uint64_t per_second;
	const char *suffix;
} units[] = {
	[LINES_SECONDS] = { 1, "" },
	[LINES_MILLISECONDS] = { 1000, "_ms" },
	[LINES_MICROSECONDS] = { 1000000, "_us" },
	[LINES_NANOSECONDS] = { 1000000000, "_ns" },
}, timer_unit = { 1000, "" }; /* a timer's type says its unit */

static void forget_metrics(struct lines *lines)
{
	for (size_t i = 0; i < lines->n_metrics; i++)
		free(lines->metrics[i].buckets);
	free(lines->metrics);
	lines->metrics = NULL;
	lines->n_metrics = 0;
}

void lines_done(struct lines *lines)
{
	forget_metrics(lines);
	buf_done(&lines->pack.buf);
}

/* Metrics */

static const struct unit *unit_of(const struct lines *lines, const struct metric *metric)
{
	if (strcmp(metric->unit, "s") || metric->kind == METRIC_GAUGE)
		return &units[LINES_SECONDS];
	if (metric->kind == METRIC_HISTOGRAM && lines->histogram == LINES_TIMER)
		return &timer_unit;
	return &units[lines->time_unit];
}

static const char *path_suffix(const struct lines *lines, const struct metric *metric)
{
	if (metric->kind != METRIC_SUM || !lines->naming.dialect->is_graphite)
		return "";
	return lines->is_cumulative ? ".total" : ".count";
}

/* A level that the lines of sums and histograms add. */
static bool is_line_level(const char *level)
{
	static const char *const levels[] = { "count", "sum", "bucket", "total" };
	/* one more than the longest: what is cut is none of them */
	char first[sizeof("bucket") + 1];

	snprintf(first, sizeof(first), "%.*s", (int)strcspn(level, "."), level);
	return array_find(levels, ARRAY_SIZE(levels), first);
}

/*
 * Could lines of the metric be taken for those of the other one, and does this metric get digits?
 * It does if its name is the other's followed by a dot and more ("app.requests.failed" next to
 * "app.requests"), or if both names are the same and its collector's name comes later.
 */
static bool is_shadowed_by(const struct naming *naming, const struct metric *metric,
		      const char *unit_suffix,
		      const struct metric *other, const char *other_unit_suffix)
{
	char name[256], beginning[256];
	size_t size;

	snprintf(name, sizeof(name), "%s%s", metric->name, unit_suffix);
	snprintf(beginning, sizeof(beginning), "%s%s", other->name, other_unit_suffix);
	size = strlen(beginning);
	if (strncmp(name, beginning, size))
		return false;
	if (!name[size])
		return (strcmp(metric->scope, other->scope) ?:
			strcmp(metric->name, other->name)) > 0;
	return name[size] == '.' &&
	       (naming->template.has_values_after_metric || is_line_level(name + size + 1));
}

static bool is_shadowed(const struct lines *lines, const struct batch *batch,
			const struct metric *metric)
{
	const char *suffix = unit_of(lines, metric)->suffix;

	for (size_t i = 0; i < batch->n_metrics; i++) {
		const struct metric *other = batch->metrics[i];

		if (!is_shadowed_by(&lines->naming, metric, suffix, other,
				      unit_of(lines, other)->suffix))
			continue;
		exporter_log(lines->exporter, LOG_LEVEL_WARNING, NULL,
			     "the lines of metric %s (collector %s) could be taken for those of metric %s (collector "
			     "%s), so eight digits are added to the names of its series; rename one of the two metrics",
			     metric->name, metric->scope, other->name, other->scope);
		return true;
	}
	return false;
}

static void line_metric_init(const struct lines *lines, const struct batch *batch,
			     const struct metric *metric, struct line_metric *result)
{
	const struct unit *unit = unit_of(lines, metric);
	const uint64_t per_second = unit->per_second;
	const char dot = lines->naming.dialect->tag_first ? '.' : '_';
	bool is_whole = metric->divisor % per_second == 0,
		has_buckets = metric->kind == METRIC_HISTOGRAM;
	bool is_counters = has_buckets && lines->histogram == LINES_COUNTERS;

	*result = (struct line_metric){
		.multiplier = is_whole ? 1 : per_second,
		.divisor = is_whole ? metric->divisor / per_second : metric->divisor,
		.buckets = has_buckets ? bucket_texts_new(metric, (double)per_second, dot) : NULL,
		.name = { .unit_suffix = unit->suffix,
			  .path_suffix = path_suffix(lines, metric),
			  .spare_bytes = is_counters ? NAME_SUFFIX_BYTES : 0,
			  .is_shadowed = is_shadowed(lines, batch, metric) },
	};
}

/* All batches have the same metrics. Without memory there are none. */
static void learn_metrics(struct lines *lines, const struct batch *batch)
{
	lines->metrics = calloc(batch->n_metrics + 1, sizeof(*lines->metrics));
	for (size_t i = 0; lines->metrics && i < batch->n_metrics; i++) {
		line_metric_init(lines, batch, batch->metrics[i],
				 &lines->metrics[lines->n_metrics++]);
		if (batch->metrics[i]->kind == METRIC_HISTOGRAM && !lines->metrics[i].buckets)
			forget_metrics(lines);
	}
}

/* Series */

/* NULL: no memory. */
static struct point_state *state_new(struct lines *lines, struct series *series,
				     const struct line_metric *metric)
{
	const uint32_t n_base = point_base_size(lines, series->metric);
	const size_t text_at = sizeof(struct point_state) + n_base * sizeof(uint64_t);
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	struct series_cache *cache;
	struct point_state *state;
	size_t path_size;

	name_append_path(&lines->naming, series, &metric->name, &text);
	path_size = text.size;
	name_append_tags(&lines->naming, series, &text);
	cache = buf_error(&text) ? NULL :
		series_cache_new(series, lines, NULL, text_at + text.size);
	if (!cache)
		return NULL;
	memcpy(cache->data + text_at, text.data, text.size);
	state = (struct point_state *)cache->data;
	state->name = (struct line_name){ .text = (const char *)cache->data + text_at,
					  .path_size = (uint16_t)path_size,
					  .tags_size = (uint16_t)(text.size - path_size) };
	state->n_base = n_base;
	return state;
}

/* Without memory, a point is lost if it has something new. */
static void lose_series(struct lines *lines, const struct series *series)
{
	bool has_changed = series->metric->kind == METRIC_GAUGE || series->delta.sum ||
			   series->delta.count;

	lines->pack.error = -ENOMEM;
	if (!has_changed && !lines->sends_unchanged)
		return;
	lines->n_pushed++;
	exporter_drop_no_memory(lines->exporter, 1);
}

static void push_series(struct lines *lines, const struct line_metric *metric,
			struct series *series)
{
	struct series_cache *cache = series_cache(series, lines);
	struct point_state *state = cache ? (struct point_state *)cache->data :
				    state_new(lines, series, metric);
	struct pack *pack = &lines->pack;
	bool is_expressed;

	if (!state) {
		lose_series(lines, series);
		return;
	}
	pack->failure = 0;
	pack->n_lines = 0;
	is_expressed = point_write(lines, metric, series, state);
	lines->n_pushed += !is_expressed || pack->failure || pack->n_lines;
	if (!is_expressed)
		exporter_drop(lines->exporter, POINTS_UNSUPPORTED, 1,
			      "points are dropped: StatsD has no gauges below 0, and its receivers misread counts above 2^63-1");
	else if (pack->failure == -EMSGSIZE)
		exporter_drop(lines->exporter, POINTS_TOO_LARGE, 1,
			      "points are dropped, because a line of theirs is longer than max_datagram_size; raise it");
	else if (pack->failure)
		exporter_drop_no_memory(lines->exporter, 1);
	else if (pack->n_lines)
		pack->n_points++;
}

/*
 * What has ended since would be missing in the window that is made again. Its lines stay, whatever
 * becomes of that.
 */
static void push_ended(struct lines *lines, const struct batch *batch)
{
	struct exporter *exporter = lines->exporter;
	struct series_cache *cache;

	exporter->queue.time_ns = 0;
	for (size_t i = 0; i < batch->n_metrics; i++)
		for (size_t j = 0; j < batch->metrics[i]->n_series; j++) {
			struct series *series = batch->metrics[i]->series[j];

			cache = series->is_ended ? series_cache(series, lines) : NULL;
			if (!cache || batch->metrics[i]->kind == METRIC_GAUGE)
				continue;
			push_series(lines, &lines->metrics[i], series);
			((struct point_state *)cache->data)->ended_s = lines->time_s ?: 1;
		}
	(void)pack_flush(&lines->pack);
	exporter->queue.time_ns = batch->time_ns;
}

/* False: what is in the queue is too useful, or on its way. */
static bool take_back(struct lines *lines)
{
	struct queue *queue = &lines->exporter->queue;
	/* A quarter of the room is for lines of series that end: another push would be too much. */
	bool is_filling = queue->budget && queue_is_near(queue, queue->budget->limit_bytes / 4 +
								lines->pack.n_bytes);
	size_t n_points = queue->n_points;

	if (!lines->pack.n_pieces || (lines->naming.dialect->is_graphite && !is_filling) ||
	    !queue_take_back(queue, lines->window_ns, lines->pack.n_pieces))
		return false;
	exporter_account(lines->exporter, POINTS_PUSHED, queue->n_points - n_points);
	lines->exporter->n_losses++;
	return true;
}

static void begin_window(struct lines *lines, const struct batch *batch, uint64_t time_s)
{
	bool is_graphite = lines->naming.dialect->is_graphite,
		is_same = is_graphite && time_s == lines->time_s;

	lines->time_s = is_graphite ? time_s : 0;
	if (is_same)
		return;
	/*
	 * If the clock was set back, all series began again, and know nothing of the window before.
	 */
	if (lines->metrics && batch->previous_ns == lines->window_ns && take_back(lines))
		push_ended(lines, batch);
	else
		lines->window++;
	lines->pack.n_pieces = lines->pack.n_bytes = 0;
	lines->window_ns = batch->time_ns;
}

int lines_push(struct lines *lines, const struct batch *batch, uint64_t time_s)
{
	struct pack *pack = &lines->pack;
	struct series *series;

	pack->dialect = lines->naming.dialect;
	snprintf(pack->time, sizeof(pack->time), " %" PRIu64 "\n", time_s);
	lines->n_pushed = 0;
	begin_window(lines, batch, time_s);
	if (!lines->metrics)
		learn_metrics(lines, batch);
	if (!lines->metrics)
		pack->error = -ENOMEM;
	for (size_t i = 0; i < batch->n_metrics; i++) {
		metric_for_each_series(series, batch->metrics[i]) {
			if (lines->metrics)
				push_series(lines, &lines->metrics[i], series);
			else
				lose_series(lines, series);
		}
	}
	exporter_account(lines->exporter, POINTS_PUSHED, lines->n_pushed);
	return pack_flush(pack);
}

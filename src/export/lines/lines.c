/* SPDX-License-Identifier: Apache-2.0 */
#include "export/lines/lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/lines/line-render.h"
#include "util/log.h"

static const struct {
	uint64_t per_second;
	const char *suffix;
} units[] = {
	[LINES_SECONDS] = { 1, "" },
	[LINES_MILLISECONDS] = { 1000, "_ms" },
	[LINES_MICROSECONDS] = { 1000000, "_us" },
	[LINES_NANOSECONDS] = { 1000000000, "_ns" },
};

/* Behind the path of what is a total. */
#define TOTAL ".total"

struct lines {
	struct lines_options options;
	struct exporter *exporter;
	struct line_names names;
	struct line_bounds *bounds; /* of the histograms seen so far */
	size_t n_bounds;
	struct pack pack;
	struct line_writer writer;
	bool has_told_refused, has_told_taken;
	int err; /* of the push: 0 or -ENOMEM */
};

int lines_new(const struct lines_options *options, struct exporter *exporter, struct lines **ret_lines)
{
	struct lines *lines = calloc(1, sizeof(*lines));

	if (!lines)
		return -ENOMEM;
	lines->options = *options;
	lines->exporter = exporter;
	lines->names.naming = &lines->options.naming;
	lines->names.histogram_ending = options->naming.dialect->is_graphite && options->is_cumulative ? TOTAL : "";
	lines->pack = options->pack;
	lines->writer = (struct line_writer){ .options = &lines->options,
					      .histogram_ending = lines->names.histogram_ending,
					      .pack = &lines->pack };
	*ret_lines = lines;
	return 0;
}

struct lines *lines_free(struct lines *lines)
{
	if (!lines)
		return NULL;
	for (size_t i = 0; i < lines->n_bounds; i++)
		line_bounds_done(&lines->bounds[i]);
	free(lines->bounds);
	line_names_done(&lines->names);
	pack_done(&lines->pack);
	free(lines);
	return NULL;
}

static bool is_time(const struct metric *metric)
{
	return !strcmp(metric->unit, "s");
}

static enum lines_unit unit_of(const struct lines *lines, const struct metric *metric)
{
	if (!is_time(metric))
		return LINES_SECONDS;
	/* The type says the unit. */
	if (metric->kind == METRIC_HISTOGRAM && lines->options.histogram == LINES_TIMER)
		return LINES_MILLISECONDS;
	return lines->options.time_unit;
}

static struct line_scale scale_of(const struct lines *lines, const struct metric *metric)
{
	enum lines_unit unit = unit_of(lines, metric);
	bool is_timer = metric->kind == METRIC_HISTOGRAM && lines->options.histogram == LINES_TIMER;
	struct line_scale scale = { units[unit].per_second, metric->divisor, is_timer ? "" : units[unit].suffix };

	if (scale.divisor % scale.multiplier == 0) {
		scale.divisor /= scale.multiplier;
		scale.multiplier = 1;
	}
	return scale;
}

/* NULL: no memory. */
static const struct line_bounds *bounds_get(struct lines *lines, const struct metric *metric)
{
	struct line_bounds *bounds;

	for (size_t i = 0; i < lines->n_bounds; i++)
		if (lines->bounds[i].metric == metric)
			return &lines->bounds[i];
	bounds = reallocarray(lines->bounds, lines->n_bounds + 1, sizeof(*bounds));
	if (!bounds)
		return NULL;
	lines->bounds = bounds;
	if (line_bounds_init(&bounds[lines->n_bounds], metric, (double)units[unit_of(lines, metric)].per_second) < 0)
		return NULL;
	return &bounds[lines->n_bounds++];
}

static int metric_begin(struct lines *lines, const struct metric *metric, struct line_metric *ret_metric)
{
	const struct lines_options *options = &lines->options;
	struct line_metric result = { .scale = scale_of(lines, metric), .kind.path_suffix = "" };
	bool has_base = options->naming.dialect->is_graphite && !options->is_cumulative;

	switch (metric->kind) {
	case METRIC_SUM:
		if (options->naming.dialect->is_graphite)
			result.kind.path_suffix = options->is_cumulative ? TOTAL : ".count";
		result.kind.n_base = has_base ? BASE_SUM + 1 : 0;
		break;
	case METRIC_GAUGE:
		result.scale = (struct line_scale){ 1, metric->divisor, "" };
		break;
	case METRIC_HISTOGRAM:
		result.bounds = bounds_get(lines, metric);
		if (!result.bounds)
			return -ENOMEM;
		if (options->histogram == LINES_COUNTERS)
			result.kind.bounds = result.bounds;
		result.kind.n_base = has_base ? BASE_BUCKETS + metric->layout.n_buckets : 0;
		break;
	}
	result.kind.metric_suffix = result.scale.suffix;
	*ret_metric = result;
	return 0;
}

static void lose_point(struct lines *lines, enum points fate)
{
	exporter_account(lines->exporter, POINTS_PUSHED, 1);
	exporter_account(lines->exporter, fate, 1);
}

/* Without memory: has it something new to say? */
static void lose_series(struct lines *lines, const struct series *series)
{
	bool has_changed = series->metric->kind == METRIC_GAUGE || series->delta.sum || series->delta.count;

	if (has_changed || lines->options.sends_unchanged)
		lose_point(lines, POINTS_NOT_SENT);
	lines->err = -ENOMEM;
}

static void push_series(struct lines *lines, const struct line_metric *metric, struct series *series)
{
	struct line_name *name = line_name_get(&lines->names, series, &metric->kind);

	if (!name) {
		lose_series(lines, series);
		return;
	}
	lines->writer.failure = 0;
	lines->writer.n_lines = 0;
	if (!line_render(&lines->writer, metric, series, name)) {
		lose_point(lines, POINTS_UNSUPPORTED);
	} else if (lines->writer.failure) {
		lose_point(lines, lines->writer.failure == -EMSGSIZE ? POINTS_TOO_LARGE : POINTS_NOT_SENT);
	} else if (lines->writer.n_lines) {
		exporter_account(lines->exporter, POINTS_PUSHED, 1);
		pack_point_end(&lines->pack);
	}
	if (lines->writer.failure == -ENOMEM)
		lines->err = -ENOMEM;
}

int lines_push(struct lines *lines, const struct batch *batch, uint64_t time_s, unsigned int losses)
{
	struct line_metric here;
	struct metric *metric;
	struct series *series;

	lines->err = 0;
	lines->writer.losses = losses;
	lines->writer.time_s = time_s;
	lines->writer.time_size = (size_t)snprintf(lines->writer.time, sizeof(lines->writer.time), " %" PRIu64, time_s);
	batch_for_each_metric(metric, batch) {
		if (metric->n_series && metric_begin(lines, metric, &here) < 0) {
			metric_for_each_series(series, metric)
				lose_series(lines, series);
			continue;
		}
		metric_for_each_series(series, metric)
			push_series(lines, &here, series);
	}
	line_names_sweep(&lines->names, batch);
	lines->exporter->stats.name_collisions = lines->names.n_collisions;
	return pack_flush(&lines->pack) ?: lines->err;
}

void lines_complain(struct lines *lines, const char *exporter_name, int err)
{
	const struct exporter_stats *stats = &lines->exporter->stats;

	if (err)
		log_error("exporter %s: could not write all lines: %s", exporter_name, strerror(-err));
	if (stats->points[POINTS_UNSUPPORTED] + stats->points[POINTS_TOO_LARGE] && !lines->has_told_refused) {
		lines->has_told_refused = true;
		log_warning("exporter %s: points that cannot be said in a line are left out and counted: a gauge below 0 in "
			    "StatsD, or a line longer than max_datagram_size",
			    exporter_name);
	}
	if (stats->name_collisions && !lines->has_told_taken) {
		lines->has_told_taken = true;
		log_warning("exporter %s: series whose names were taken already have eight digits added to them: a template "
			    "with {attributes}, or a dialect with tags, tells them apart better",
			    exporter_name);
	}
}

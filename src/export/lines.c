/* SPDX-License-Identifier: Apache-2.0 */
#include "export/lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/decimal.h"
#include "export/line-name.h"
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

/* How the numbers of one metric are shown: raw * multiplier / divisor. */
struct scale {
	uint64_t multiplier, divisor;
	const char *suffix; /* of the metric's name */
};

struct lines {
	struct lines_options options;
	struct exporter_stats *stats;
	struct line_names names;
	struct line_bounds *bounds; /* of the histograms seen so far */
	size_t n_bounds;
	struct pack pack;
	unsigned int losses;
	uint64_t time_s;
	char time[24]; /* of Graphite's lines: " 1700000000" */
	size_t time_size;
	bool has_told_refused, has_told_taken;
	int err;	      /* of the push: 0 or -ENOMEM */
	int failure;	      /* of a line of the point at hand: 0 or -errno */
	unsigned int n_lines; /* of the point at hand */
};

/* What follows the path of one line, and what ends it. */
struct line {
	const struct line_name *name;
	const char *suffix; /* of the path */
	const char *level;  /* behind the suffix, with a dot before it; NULL: none */
	const char *ending; /* behind that */
	const char *upper;  /* one more tag; NULL: none */
};

int lines_new(const struct lines_options *options, struct exporter_stats *stats, struct lines **ret_lines)
{
	struct lines *lines = calloc(1, sizeof(*lines));

	if (!lines)
		return -ENOMEM;
	lines->options = *options;
	lines->stats = stats;
	lines->names.naming = &lines->options.naming;
	lines->names.histogram_ending = options->naming.dialect->is_graphite && options->is_cumulative ? TOTAL : "";
	lines->pack = options->pack;
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

static struct scale scale_of(const struct lines *lines, const struct metric *metric)
{
	enum lines_unit unit = unit_of(lines, metric);
	bool is_timer = metric->kind == METRIC_HISTOGRAM && lines->options.histogram == LINES_TIMER;
	struct scale scale = { units[unit].per_second, metric->divisor, is_timer ? "" : units[unit].suffix };

	if (scale.divisor % scale.multiplier == 0) {
		scale.divisor /= scale.multiplier;
		scale.multiplier = 1;
	}
	return scale;
}

/* --- one line ---------------------------------------------------------------------------------------- */

#define UPPER_BYTES	64 /* of a tag with a bound, a suffix with a level, a value and a type, each at most */

static char *put(char *at, const char *text)
{
	size_t size = strlen(text);

	memcpy(at, text, size);
	return at + size;
}

static char *put_tags(const struct lines *lines, char *at, const struct line *line)
{
	const struct dialect *dialect = lines->options.naming.dialect;
	const struct line_name *name = line->name;

	memcpy(at, name->text + name->path_size, name->tags_size);
	at += name->tags_size;
	if (!line->upper)
		return at;
	if (name->tags_size)
		*at++ = dialect->tag_next;
	else
		at = put(at, dialect->tag_first);
	at = put(at, NAME_TAG_UPPER);
	*at++ = dialect->tag_equals;
	return put(at, line->upper);
}

/* Up to where the value goes; NULL: no memory. */
static char *line_begin(struct lines *lines, const struct line *line)
{
	const struct dialect *dialect = lines->options.naming.dialect;
	const struct line_name *name = line->name;
	char *at = pack_line_begin(&lines->pack, (size_t)name->path_size + name->tags_size + 6 * UPPER_BYTES);

	if (!at) {
		lines->failure = -ENOMEM;
		return NULL;
	}
	memcpy(at, name->text, name->path_size);
	at = put(at + name->path_size, line->suffix);
	if (line->level) {
		*at++ = '.';
		at = put(at, line->level);
	}
	at = put(at, line->ending);
	if (!dialect->is_tags_last)
		at = put_tags(lines, at, line);
	*at++ = dialect->is_graphite ? ' ' : ':';
	return at;
}

static void line_end(struct lines *lines, const struct line *line, char *at, const char *type)
{
	int err;

	if (lines->options.naming.dialect->is_graphite) {
		memcpy(at, lines->time, lines->time_size);
		at += lines->time_size;
	} else {
		at = put(at, type);
		if (lines->options.naming.dialect->is_tags_last)
			at = put_tags(lines, at, line);
	}
	err = pack_line_end(&lines->pack, at);
	if (err)
		lines->failure = err;
	else
		lines->n_lines++;
}

static void line_quotient(struct lines *lines, const struct line *line, uint64_t raw, uint64_t divisor,
			  const char *type)
{
	char *at = line_begin(lines, line);

	if (at)
		line_end(lines, line, decimal_put(at, raw, divisor), type);
}

/* --- what the kinds become --------------------------------------------------------------------------- */

/* Nanoseconds of what is counted in seconds may take more than 64 bits. */
static unsigned __int128 scaled(const struct scale *scale, uint64_t raw)
{
	if (scale->multiplier == 1)
		return scale->divisor == 1 ? raw : raw / scale->divisor;
	return (unsigned __int128)raw * scale->multiplier / scale->divisor;
}

/* Grown from (total - delta) to total: a line of it, unless there is nothing to say. False: no line can say it. */
static bool line_sum(struct lines *lines, const struct line *line, const struct scale *scale, uint64_t total,
		     uint64_t delta)
{
	unsigned __int128 whole;

	if (lines->options.naming.dialect->is_graphite) {
		line_quotient(lines, line, lines->options.is_cumulative ? total : delta, scale->divisor, NULL);
		return true;
	}
	whole = scaled(scale, total) - scaled(scale, total - delta);
	if (whole > INT64_MAX)
		return false;
	if (whole || lines->options.sends_unchanged)
		line_quotient(lines, line, (uint64_t)whole, 1, "|c");
	return true;
}

/* Where a name's base has what. */
enum { BASE_SUM,
       BASE_COUNT,
       BASE_BUCKETS };

/*
 * Growth since the last push; of Graphite's lines, since the time before this one: pushes of one time have the
 * same lines, each with all that has grown so far, and what had no push of its own counts for the next.
 */
static uint64_t grown(const struct line_name *name, uint32_t i, uint64_t total, uint64_t delta)
{
	return i < name->n_base ? total - name->base[i] : delta;
}

static void begin_time(struct line_name *name, const struct series *series, uint64_t time_s)
{
	if (!name->n_base || name->time_s == time_s)
		return;
	if (name->time_s) {
		name->base[BASE_SUM] = series->total.sum - series->delta.sum;
		if (name->n_base > BASE_COUNT)
			name->base[BASE_COUNT] = series->total.count - series->delta.count;
		for (uint32_t i = BASE_BUCKETS; i < name->n_base; i++)
			name->base[i] = series->total.bucket[i - BASE_BUCKETS] - series->delta.bucket[i - BASE_BUCKETS];
	}
	name->time_s = time_s;
}

static bool render_sum(struct lines *lines, const struct series *series, struct line_name *name,
		       const struct scale *scale)
{
	const struct line line = { .name = name, .suffix = "", .ending = "" };
	uint64_t delta = grown(name, BASE_SUM, series->total.sum, series->delta.sum);

	if (!delta && !lines->options.sends_unchanged)
		return true;
	return line_sum(lines, &line, scale, series->total.sum, delta);
}

static bool render_gauge(struct lines *lines, const struct series *series, struct line_name *name,
			 const struct scale *scale)
{
	const struct line line = { .name = name, .suffix = "", .ending = "" };
	bool is_graphite = lines->options.naming.dialect->is_graphite;
	int64_t raw = (int64_t)series->total.sum;
	char *at;

	if (raw < 0 && !is_graphite)
		return false;
	/* In Graphite, one a time. */
	if (is_graphite ? name->time_s == lines->time_s :
			  name->is_sent && name->last_gauge == raw && name->losses == lines->losses &&
				  !lines->options.sends_unchanged)
		return true;
	at = line_begin(lines, &line);
	if (!at)
		return true;
	if (raw < 0)
		*at++ = '-';
	/* Gauges of seconds stay so: they are no counters that have to be whole. */
	at = decimal_put(at, raw < 0 ? 0 - (uint64_t)raw : (uint64_t)raw, scale->divisor);
	line_end(lines, &line, at, "|g");
	name->is_sent = !lines->failure;
	name->last_gauge = raw;
	name->losses = lines->losses;
	name->time_s = lines->time_s;
	return true;
}

static bool render_counters(struct lines *lines, const struct series *series, const struct line_name *name,
			    const struct scale *scale, const struct line_bounds *bounds)
{
	const struct scale plain = { 1, 1, "" };
	const struct numbers *total = &series->total, *delta = &series->delta;
	bool sends_unchanged = lines->options.sends_unchanged, is_tagged = lines->options.naming.dialect->tag_first;
	struct line line = { .name = name, .suffix = ".count", .ending = lines->names.histogram_ending };
	uint64_t n = grown(name, BASE_COUNT, total->count, delta->count);
	bool is_sound;

	if (!n && !sends_unchanged)
		return true;
	is_sound = line_sum(lines, &line, &plain, total->count, n);
	line.suffix = ".sum";
	is_sound &= line_sum(lines, &line, scale, total->sum, grown(name, BASE_SUM, total->sum, delta->sum));
	line.suffix = ".bucket";
	for (uint32_t i = 0; i < bounds->n; i++) {
		n = grown(name, BASE_BUCKETS + i, total->bucket[i], delta->bucket[i]);
		if (!n && !(sends_unchanged && total->bucket[i]))
			continue;
		line.upper = is_tagged ? bounds->text[i] : NULL;
		line.level = is_tagged ? NULL : bounds->level[i];
		is_sound &= line_sum(lines, &line, &plain, total->bucket[i], n);
	}
	return is_sound;
}

/* A value for each bucket, as often as the bucket counted. */
static bool render_values(struct lines *lines, const struct series *series, const struct line_name *name,
			  const struct line_bounds *bounds)
{
	const char *type = lines->options.histogram == LINES_TIMER ? "|ms" : "|d";
	const struct line line = { .name = name, .suffix = "", .ending = "" };

	for (uint32_t i = 0; i < bounds->n; i++) {
		uint64_t n = series->delta.bucket[i];
		char ending[DECIMAL_RATE_BYTES + 8], *end;
		char *at;

		if (!n)
			continue;
		end = put(ending, type);
		if (n > 1)
			end = decimal_put_rate(put(end, "|@"), n);
		*end = '\0';
		at = line_begin(lines, &line);
		if (at)
			line_end(lines, &line, put(at, bounds->middle[i]), ending);
	}
	return true;
}

/* --- a batch ----------------------------------------------------------------------------------------- */

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

/* What is the same for all series of a metric. */
struct metric_lines {
	struct scale scale;
	const struct line_bounds *bounds;
	struct line_kind kind;
};

static int metric_begin(struct lines *lines, const struct metric *metric, struct metric_lines *ret_metric)
{
	const struct lines_options *options = &lines->options;
	struct metric_lines result = { .scale = scale_of(lines, metric), .kind.path_suffix = "" };
	bool has_base = options->naming.dialect->is_graphite && !options->is_cumulative;

	switch (metric->kind) {
	case METRIC_SUM:
		if (options->naming.dialect->is_graphite)
			result.kind.path_suffix = options->is_cumulative ? TOTAL : ".count";
		result.kind.n_base = has_base ? BASE_SUM + 1 : 0;
		break;
	case METRIC_GAUGE:
		result.scale = (struct scale){ 1, metric->divisor, "" };
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

static bool render(struct lines *lines, const struct metric_lines *metric, const struct series *series,
		   struct line_name *name)
{
	switch (series->metric->kind) {
	case METRIC_SUM:
		return render_sum(lines, series, name, &metric->scale);
	case METRIC_GAUGE:
		return render_gauge(lines, series, name, &metric->scale);
	case METRIC_HISTOGRAM:
		if (lines->options.histogram == LINES_COUNTERS)
			return render_counters(lines, series, name, &metric->scale, metric->bounds);
		return render_values(lines, series, name, metric->bounds);
	}
	return true;
}

static void push_series(struct lines *lines, const struct metric_lines *metric, struct series *series)
{
	struct line_name *name = line_name_get(&lines->names, series, &metric->kind);

	if (name)
		begin_time(name, series, lines->time_s);
	lines->failure = name ? 0 : -ENOMEM;
	lines->n_lines = 0;
	if (name && !render(lines, metric, series, name))
		lines->stats->points_unsupported++;
	else if (lines->failure == -EMSGSIZE)
		lines->stats->points_dropped_size++;
	else if (lines->failure)
		lines->stats->points_dropped_error++;
	else if (lines->n_lines)
		pack_point_end(&lines->pack);
	if (lines->failure == -ENOMEM)
		lines->err = -ENOMEM;
}

int lines_push(struct lines *lines, const struct batch *batch, uint64_t time_s, unsigned int losses)
{
	struct metric_lines here;
	struct metric *metric;
	struct series *series;

	lines->err = 0;
	lines->losses = losses;
	lines->time_s = time_s;
	lines->time_size = (size_t)snprintf(lines->time, sizeof(lines->time), " %" PRIu64, time_s);
	batch_for_each_metric(metric, batch) {
		if (metric->n_series && metric_begin(lines, metric, &here) < 0) {
			lines->err = -ENOMEM;
			metric_for_each_series(series, metric)
				lines->stats->points_dropped_error++;
			continue;
		}
		metric_for_each_series(series, metric)
			push_series(lines, &here, series);
	}
	line_names_sweep(&lines->names, batch);
	lines->stats->name_collisions = lines->names.n_collisions;
	return pack_flush(&lines->pack) ?: lines->err;
}

void lines_complain(struct lines *lines, const char *exporter_name, int err)
{
	const struct exporter_stats *stats = lines->stats;

	if (err)
		log_error("exporter %s: could not write all lines: %s", exporter_name, strerror(-err));
	if (stats->points_unsupported + stats->points_dropped_size && !lines->has_told_refused) {
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

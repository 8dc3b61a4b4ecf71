/* SPDX-License-Identifier: Apache-2.0 */
#include "export/lines/line-render.h"

#include <errno.h>
#include <string.h>

#include "export/decimal.h"

/* What follows the path of one line, and what ends it. */
struct line {
	const struct line_name *name;
	const char *suffix; /* of the path */
	const char *level;  /* behind the suffix, with a dot before it; NULL: none */
	const char *ending; /* behind that */
	const char *upper;  /* one more tag; NULL: none */
};

#define UPPER_BYTES	64 /* of a tag with a bound, a suffix with a level, a value and a type, each at most */

static char *put(char *at, const char *text)
{
	size_t size = strlen(text);

	memcpy(at, text, size);
	return at + size;
}

static char *put_tags(const struct line_writer *writer, char *at, const struct line *line)
{
	const struct dialect *dialect = writer->options->naming.dialect;
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
static char *line_begin(struct line_writer *writer, const struct line *line)
{
	const struct dialect *dialect = writer->options->naming.dialect;
	const struct line_name *name = line->name;
	char *at = pack_line_begin(writer->pack, (size_t)name->path_size + name->tags_size + 6 * UPPER_BYTES);

	if (!at) {
		writer->failure = -ENOMEM;
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
		at = put_tags(writer, at, line);
	*at++ = dialect->is_graphite ? ' ' : ':';
	return at;
}

static void line_end(struct line_writer *writer, const struct line *line, char *at, const char *type)
{
	int err;

	if (writer->options->naming.dialect->is_graphite) {
		memcpy(at, writer->time, writer->time_size);
		at += writer->time_size;
	} else {
		at = put(at, type);
		if (writer->options->naming.dialect->is_tags_last)
			at = put_tags(writer, at, line);
	}
	err = pack_line_end(writer->pack, at);
	if (err)
		writer->failure = err;
	else
		writer->n_lines++;
}

static void line_quotient(struct line_writer *writer, const struct line *line, uint64_t raw, uint64_t divisor,
			  const char *type)
{
	char *at = line_begin(writer, line);

	if (at)
		line_end(writer, line, decimal_put(at, raw, divisor), type);
}

/* Nanoseconds of what is counted in seconds may take more than 64 bits. */
static unsigned __int128 scaled(const struct line_scale *scale, uint64_t raw)
{
	if (scale->multiplier == 1)
		return scale->divisor == 1 ? raw : raw / scale->divisor;
	return (unsigned __int128)raw * scale->multiplier / scale->divisor;
}

/* Grown from (total - delta) to total: a line of it, unless there is nothing to say. False: no line can say it. */
static bool line_sum(struct line_writer *writer, const struct line *line, const struct line_scale *scale,
		     uint64_t total, uint64_t delta)
{
	unsigned __int128 whole;

	if (writer->options->naming.dialect->is_graphite) {
		line_quotient(writer, line, writer->options->is_cumulative ? total : delta, scale->divisor, NULL);
		return true;
	}
	whole = scaled(scale, total) - scaled(scale, total - delta);
	if (whole > INT64_MAX)
		return false;
	if (whole || writer->options->sends_unchanged)
		line_quotient(writer, line, (uint64_t)whole, 1, "|c");
	return true;
}

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

static bool render_sum(struct line_writer *writer, const struct series *series, struct line_name *name,
		       const struct line_scale *scale)
{
	const struct line line = { .name = name, .suffix = "", .ending = "" };
	uint64_t delta = grown(name, BASE_SUM, series->total.sum, series->delta.sum);

	if (!delta && !writer->options->sends_unchanged)
		return true;
	return line_sum(writer, &line, scale, series->total.sum, delta);
}

static bool render_gauge(struct line_writer *writer, const struct series *series, struct line_name *name,
			 const struct line_scale *scale)
{
	const struct line line = { .name = name, .suffix = "", .ending = "" };
	bool is_graphite = writer->options->naming.dialect->is_graphite;
	int64_t raw = (int64_t)series->total.sum;
	char *at;

	if (raw < 0 && !is_graphite)
		return false;
	/* In Graphite, one a time. */
	if (is_graphite ? name->time_s == writer->time_s :
			  name->is_sent && name->last_gauge == raw && name->losses == writer->losses &&
				  !writer->options->sends_unchanged)
		return true;
	at = line_begin(writer, &line);
	if (!at)
		return true;
	if (raw < 0)
		*at++ = '-';
	/* Gauges of seconds stay so: they are no counters that have to be whole. */
	at = decimal_put(at, raw < 0 ? 0 - (uint64_t)raw : (uint64_t)raw, scale->divisor);
	line_end(writer, &line, at, "|g");
	name->is_sent = !writer->failure;
	name->last_gauge = raw;
	name->losses = writer->losses;
	name->time_s = writer->time_s;
	return true;
}

static bool render_counters(struct line_writer *writer, const struct series *series, const struct line_name *name,
			    const struct line_scale *scale, const struct line_bounds *bounds)
{
	const struct line_scale plain = { 1, 1, "" };
	const struct numbers *total = &series->total, *delta = &series->delta;
	bool sends_unchanged = writer->options->sends_unchanged, is_tagged = writer->options->naming.dialect->tag_first;
	struct line line = { .name = name, .suffix = ".count", .ending = writer->histogram_ending };
	uint64_t n = grown(name, BASE_COUNT, total->count, delta->count);
	bool is_sound;

	if (!n && !sends_unchanged)
		return true;
	is_sound = line_sum(writer, &line, &plain, total->count, n);
	line.suffix = ".sum";
	is_sound &= line_sum(writer, &line, scale, total->sum, grown(name, BASE_SUM, total->sum, delta->sum));
	line.suffix = ".bucket";
	for (uint32_t i = 0; i < bounds->n; i++) {
		n = grown(name, BASE_BUCKETS + i, total->bucket[i], delta->bucket[i]);
		if (!n && !(sends_unchanged && total->bucket[i]))
			continue;
		line.upper = is_tagged ? bounds->text[i] : NULL;
		line.level = is_tagged ? NULL : bounds->level[i];
		is_sound &= line_sum(writer, &line, &plain, total->bucket[i], n);
	}
	return is_sound;
}

/* A value for each bucket, as often as the bucket counted. */
static bool render_values(struct line_writer *writer, const struct series *series, const struct line_name *name,
			  const struct line_bounds *bounds)
{
	const char *type = writer->options->histogram == LINES_TIMER ? "|ms" : "|d";
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
		at = line_begin(writer, &line);
		if (at)
			line_end(writer, &line, put(at, bounds->middle[i]), ending);
	}
	return true;
}

bool line_render(struct line_writer *writer, const struct line_metric *metric, const struct series *series,
		 struct line_name *name)
{
	begin_time(name, series, writer->time_s);
	switch (series->metric->kind) {
	case METRIC_SUM:
		return render_sum(writer, series, name, &metric->scale);
	case METRIC_GAUGE:
		return render_gauge(writer, series, name, &metric->scale);
	case METRIC_HISTOGRAM:
		if (writer->options->histogram == LINES_COUNTERS)
			return render_counters(writer, series, name, &metric->scale, metric->bounds);
		return render_values(writer, series, name, metric->bounds);
	}
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "export/lines/point.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/bounds.h"
#include "export/decimal.h"

#define VALUE_MAX 1e30 /* above any number of 64 bits, in any unit */
#define WHOLE_MAX 1e23 /* has 24 digits, which NAME_SUFFIX_BYTES has room for */

/* Where base has what. */
enum { BASE_SUM,
       BASE_COUNT,
       BASE_BUCKETS };

uint32_t point_base_size(const struct lines *lines, const struct metric *metric)
{
	if (!lines->pack.dialect->is_graphite || lines->is_cumulative || metric->kind == METRIC_GAUGE)
		return 0;
	return metric->kind == METRIC_SUM ? BASE_SUM + 1 : BASE_BUCKETS + metric->layout.n_buckets;
}

static uint64_t number_at(const struct numbers *numbers, uint32_t i)
{
	if (i >= BASE_BUCKETS)
		return numbers->bucket[i - BASE_BUCKETS];
	return i == BASE_SUM ? numbers->sum : numbers->count;
}

/* Since the last push, or where there is a base, since the time before this one. */
static uint64_t grown(const struct series *series, const struct point_state *state, uint32_t i)
{
	return i < state->n_base ? number_at(&series->total, i) - state->base[i] : number_at(&series->delta, i);
}

/* Numbers */

static void put_number(struct lines *lines, const struct line *line, bool is_negative, uint64_t raw, uint64_t divisor,
		       const char *type)
{
	char text[1 + DECIMAL_BYTES + 1] = "-";

	*decimal_put(text + is_negative, raw, divisor) = '\0';
	pack_line(&lines->pack, line, text, type);
}

/* Seconds in nanoseconds may take more than 64 bits. */
static unsigned __int128 scaled(uint64_t raw, uint64_t multiplier, uint64_t divisor)
{
	if (multiplier == 1)
		return divisor == 1 ? raw : raw / divisor;
	return (unsigned __int128)raw * multiplier / divisor;
}

/* A line for the number at i, unless there is nothing to send. False: no line can hold it. */
static bool put_sum(struct lines *lines, const struct point_kind *kind, const struct series *series,
		    const struct point_state *state, uint32_t i, const struct line *line)
{
	const uint64_t multiplier = i == BASE_SUM ? kind->multiplier : 1, divisor = i == BASE_SUM ? kind->divisor : 1;
	const uint64_t total = number_at(&series->total, i), delta = grown(series, state, i);
	unsigned __int128 whole;

	if (lines->pack.dialect->is_graphite) {
		put_number(lines, line, false, lines->is_cumulative ? total : delta, divisor, NULL);
		return true;
	}
	whole = scaled(total, multiplier, divisor) - scaled(total - delta, multiplier, divisor);
	if (whole > INT64_MAX)
		return false;
	if (whole || lines->sends_unchanged)
		put_number(lines, line, false, (uint64_t)whole, 1, "|c");
	return true;
}

static bool write_sum(struct lines *lines, const struct point_kind *kind, const struct series *series,
		      const struct point_state *state)
{
	const struct line line = { .name = &state->name, .suffix = "", .ending = "" };

	if (!grown(series, state, BASE_SUM) && !lines->sends_unchanged)
		return true;
	return put_sum(lines, kind, series, state, BASE_SUM, &line);
}

static bool write_gauge(struct lines *lines, const struct point_kind *kind, const struct series *series,
		       struct point_state *state)
{
	const struct line line = { .name = &state->name, .suffix = "", .ending = "" };
	int64_t raw = (int64_t)series->total.sum;
	uint64_t size = raw < 0 ? 0 - (uint64_t)raw : (uint64_t)raw;

	if (raw < 0 && !lines->pack.dialect->is_graphite)
		return false;
	/* Graphite has one for each time. */
	if (lines->pack.dialect->is_graphite ? state->time_s == lines->time_s :
					       state->is_sent && state->last_gauge == raw && !lines->sends_unchanged &&
						       state->losses == lines->exporter->n_losses)
		return true;
	put_number(lines, &line, raw < 0, size, kind->divisor, "|g");
	state->is_sent = !lines->pack.failure;
	state->last_gauge = raw;
	state->losses = lines->exporter->n_losses;
	state->time_s = lines->time_s;
	return true;
}

static bool write_counters(struct lines *lines, const struct point_kind *kind, const struct series *series,
			   const struct point_state *state)
{
	struct line line = { .name = &state->name, .suffix = ".count", .ending = lines->is_cumulative ? ".total" : "" };
	bool is_complete;

	if (!grown(series, state, BASE_COUNT) && !lines->sends_unchanged)
		return true;
	is_complete = put_sum(lines, kind, series, state, BASE_COUNT, &line);
	line.suffix = ".sum";
	if (!series->metric->layout.has_no_sum)
		is_complete &= put_sum(lines, kind, series, state, BASE_SUM, &line);
	line.suffix = ".bucket";
	for (uint32_t i = 0; i < series->metric->layout.n_buckets; i++) {
		if (!grown(series, state, BASE_BUCKETS + i) && !(lines->sends_unchanged && series->total.bucket[i]))
			continue;
		line.bound = kind->buckets[i].bound;
		is_complete &= put_sum(lines, kind, series, state, BASE_BUCKETS + i, &line);
	}
	return is_complete;
}

/* For each bucket one value, with a sample rate that says how often. */
static void write_values(struct lines *lines, const struct point_kind *kind, const struct series *series,
			const struct point_state *state)
{
	const struct line line = { .name = &state->name, .suffix = "", .ending = "" };

	for (uint32_t i = 0; i < series->metric->layout.n_buckets; i++) {
		uint64_t n = series->delta.bucket[i];
		char type[DECIMAL_RATE_BYTES + 8], *end;

		if (!n)
			continue;
		end = stpcpy(type, lines->histogram == LINES_TIMER ? "|ms" : "|d");
		if (n > 1)
			*decimal_put_rate(stpcpy(end, "|@"), n) = '\0';
		pack_line(&lines->pack, &line, kind->buckets[i].middle, type);
	}
}

bool point_write(struct lines *lines, const struct point_kind *kind, const struct series *series,
		       struct point_state *state)
{
	if (state->n_base && state->time_s != lines->time_s) {
		for (uint32_t i = 0; i < state->n_base; i++)
			state->base[i] = number_at(&series->total, i) - number_at(&series->delta, i);
		state->time_s = lines->time_s;
	}
	switch (series->metric->kind) {
	case METRIC_SUM:
		return write_sum(lines, kind, series, state);
	case METRIC_GAUGE:
		return write_gauge(lines, kind, series, state);
	case METRIC_HISTOGRAM:
		if (lines->histogram == LINES_COUNTERS)
			return write_counters(lines, kind, series, state);
		write_values(lines, kind, series, state);
	}
	return true;
}

/* Buckets */

/* Very small numbers and those above WHOLE_MAX have an exponent, but without "+", which names do not keep. */
static void print_bound(double value, char text[32])
{
	char *plus;

	if (isinf(value) || (value >= 1 && value == floor(value) && value <= WHOLE_MAX)) {
		snprintf(text, 32, "%.0f", value);
		return;
	}
	decimal_print_double(text, value);
	plus = strchr(text, '+');
	if (plus)
		memmove(plus, plus + 1, strlen(plus));
}

/* A few digits and no exponent, which some receivers do not read. */
static void print_value(double value, char text[32])
{
	double shown = fmin(value, VALUE_MAX);
	int decimals = shown > 0 ? 5 - (int)floor(log10(shown)) : 0;

	snprintf(text, 32, "%.*f", decimals < 0 ? 0 : decimals > 25 ? 25 : decimals, shown);
}

struct bucket_text *bucket_texts_new(const struct metric *metric, double per_second, char dot)
{
	struct bucket_text *texts = calloc(metric->layout.n_buckets, sizeof(*texts));
	char *point;

	for (uint32_t i = 0; texts && i < metric->layout.n_buckets; i++) {
		print_bound(bounds_upper(metric, i) * per_second, texts[i].bound);
		print_value(bounds_middle(metric, i) * per_second, texts[i].middle);
		point = strchr(texts[i].bound, '.');
		if (point)
			*point = dot;
	}
	return texts;
}

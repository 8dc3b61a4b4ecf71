/* SPDX-License-Identifier: Apache-2.0 */
#include "export/lines/point.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metric/bounds.h"
#include "metric/decimal.h"

#define VALUE_MAX 1e30 /* above any number of 64 bits, in any unit */
#define WHOLE_MAX 1e23 /* has 24 digits, which NAME_SUFFIX_BYTES has room for */

/* Where base has what. */
enum { BASE_SUM,
       BASE_COUNT,
       BASE_BUCKETS };

uint32_t point_base_size(const struct lines *lines, const struct metric *metric)
{
	if (metric->kind == METRIC_GAUGE)
		return 0;
	if (metric->kind == METRIC_SUM)
		return BASE_SUM + 1;
	return BASE_BUCKETS +
	       (lines->histogram == LINES_COUNTERS ? bounds_explicit_n(metric) :
		metric->layout.n_buckets);
}

static uint64_t number_at(const struct lines *lines, const struct metric *metric,
			  const struct numbers *numbers, uint32_t i)
{
	if (i >= BASE_BUCKETS && lines->histogram != LINES_COUNTERS)
		return numbers->bucket[i - BASE_BUCKETS];
	if (i >= BASE_BUCKETS)
		return bounds_explicit_count(metric, numbers->bucket, i - BASE_BUCKETS);
	return i == BASE_SUM ? numbers->sum : numbers->count;
}

/* In the window. */
static uint64_t window_growth(const struct lines *lines, const struct series *series,
			      const struct point_state *state, uint32_t i)
{
	return number_at(lines, series->metric, &series->total, i) - state->base[i];
}

/* Numbers */

static void put_number(struct lines *lines, const struct line *line, bool is_negative, uint64_t raw,
		       uint64_t divisor, const char *type)
{
	char text[1 + DECIMAL_BYTES + 1] = "-";

	*decimal_put(text + is_negative, raw, divisor) = '\0';
	pack_line(&lines->pack, line, text, type);
}

/* Seconds in nanoseconds may take more than 64 bits. */
static unsigned __int128 scale_number(uint64_t raw, uint64_t multiplier, uint64_t divisor)
{
	if (multiplier == 1)
		return divisor == 1 ? raw : raw / divisor;
	return (unsigned __int128)raw * multiplier / divisor;
}

/* A line for the number at i, unless there is nothing to send. False: no line can hold it. */
static bool put_sum(struct lines *lines, const struct line_metric *kind,
		    const struct series *series,
		    const struct point_state *state, uint32_t i, const struct line *line)
{
	const uint64_t multiplier = i == BASE_SUM ? kind->multiplier : 1;
	const uint64_t divisor = i == BASE_SUM ? kind->divisor : 1;
	const uint64_t total = number_at(lines, series->metric, &series->total, i);
	const uint64_t delta = total - state->base[i];
	unsigned __int128 whole;

	if (lines->pack.dialect->is_graphite) {
		put_number(lines, line, false, lines->is_cumulative ? total : delta, divisor, NULL);
		return true;
	}
	whole = scale_number(total, multiplier, divisor);
	whole -= scale_number(total - delta, multiplier, divisor);
	if (whole > INT64_MAX)
		return false;
	if (whole || lines->sends_unchanged)
		put_number(lines, line, false, (uint64_t)whole, 1, "|c");
	return true;
}

static bool write_gauge(struct lines *lines, const struct line_metric *kind,
			const struct series *series,
		       struct point_state *state)
{
	const struct line line = { .name = &state->name, .suffix = "", .ending = "" };
	int64_t raw = (int64_t)series->total.sum;
	uint64_t size = raw < 0 ? 0 - (uint64_t)raw : (uint64_t)raw;

	if (raw < 0 && !lines->pack.dialect->is_graphite)
		return false;
	/* Graphite has one for each time. */
	if (state->losses == lines->exporter->n_losses &&
	    (lines->pack.dialect->is_graphite ? state->time_s == lines->time_s :
						state->is_sent && state->last_gauge == raw &&
	     !lines->sends_unchanged))
		return true;
	put_number(lines, &line, raw < 0, size, kind->divisor, "|g");
	state->is_sent = !lines->pack.failure;
	state->last_gauge = raw;
	state->losses = lines->exporter->n_losses;
	state->time_s = lines->time_s;
	return true;
}

static bool write_counters(struct lines *lines, const struct line_metric *kind,
			   const struct series *series, const struct point_state *state)
{
	const uint32_t first = series->metric->kind == METRIC_SUM ? BASE_SUM : BASE_COUNT;
	struct line line = { .name = &state->name, .suffix = first == BASE_SUM ? "" : ".count",
			     .ending = "" };
	bool is_complete;

	if (!window_growth(lines, series, state, first) && !lines->sends_unchanged)
		return true;
	if (lines->is_cumulative && first == BASE_COUNT)
		line.ending = ".total";
	is_complete = put_sum(lines, kind, series, state, first, &line);
	if (first == BASE_SUM)
		return is_complete;
	line.suffix = ".sum";
	if (!series->metric->layout.has_no_sum)
		is_complete &= put_sum(lines, kind, series, state, BASE_SUM, &line);
	line.suffix = ".bucket";
	for (uint32_t i = 0; i < bounds_explicit_n(series->metric); i++) {
		if (!window_growth(lines, series, state, BASE_BUCKETS + i) &&
		    !(lines->sends_unchanged &&
		      number_at(lines, series->metric, &series->total, BASE_BUCKETS + i)))
			continue;
		line.bound = kind->buckets[bounds_explicit_last(series->metric, i)].bound;
		is_complete &= put_sum(lines, kind, series, state, BASE_BUCKETS + i, &line);
	}
	return is_complete;
}

/* For each bucket one value, with a sample rate that says how often. */
static void write_values(struct lines *lines, const struct line_metric *kind,
			 const struct series *series,
			const struct point_state *state)
{
	const struct line line = { .name = &state->name, .suffix = "", .ending = "" };

	for (uint32_t i = 0; i < series->metric->layout.n_buckets; i++) {
		uint64_t n = window_growth(lines, series, state, BASE_BUCKETS + i);
		char type[DECIMAL_RATE_BYTES + 8], *end;

		if (!n)
			continue;
		end = stpcpy(type, lines->histogram == LINES_TIMER ? "|ms" : "|d");
		if (n > 1)
			*decimal_put_rate(stpcpy(end, "|@"), n) = '\0';
		pack_line(&lines->pack, &line, kind->buckets[i].middle, type);
	}
}

bool point_write(struct lines *lines, const struct line_metric *kind, const struct series *series,
		       struct point_state *state)
{
	if (state->window != lines->window || (state->ended_s && state->ended_s != lines->time_s)) {
		for (uint32_t i = 0; i < state->n_base; i++)
			state->base[i] = number_at(lines, series->metric, &series->total, i) -
					 number_at(lines, series->metric, &series->delta, i);
		state->window = lines->window;
	}
	state->ended_s = 0;
	if (series->metric->kind == METRIC_GAUGE)
		return write_gauge(lines, kind, series, state);
	if (series->metric->kind == METRIC_SUM || lines->histogram == LINES_COUNTERS)
		return write_counters(lines, kind, series, state);
	write_values(lines, kind, series, state);
	return true;
}

/* Buckets */

/*
 * Very small numbers and those above WHOLE_MAX have an exponent, but without "+", which names do
 * not keep.
 */
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

struct bucket_text *bucket_texts_new(const struct metric *metric, double per_second, char dot)
{
	struct bucket_text *texts = calloc(metric->layout.n_buckets, sizeof(*texts));
	char *point;

	for (uint32_t i = 0; texts && i < metric->layout.n_buckets; i++) {
		double middle = fmin(bounds_middle(metric, i) * per_second, VALUE_MAX);
		double decimals = middle > 0 ? 5 - floor(log10(middle)) : 0;

		print_bound(bounds_upper(metric, i) * per_second, texts[i].bound);
		/* A few digits and no exponent, which some receivers do not read. */
		snprintf(texts[i].middle, 32, "%.*f", (int)fmin(fmax(decimals, 0), 25), middle);
		point = strchr(texts[i].bound, '.');
		if (point)
			*point = dot;
	}
	return texts;
}

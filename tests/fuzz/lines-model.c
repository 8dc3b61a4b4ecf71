/* SPDX-License-Identifier: Apache-2.0 */
#include "lines-model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void model_assert(bool is_right, const char *what, struct grammar_text text)
{
	if (is_right)
		return;
	fprintf(stderr, "%s: %.*s\n", what, (int)text.size, text.at);
	abort();
}

/* --- what must be there ------------------------------------------------------------------------------ */

static bool is_graphite(const struct model *model)
{
	return model->dialect == DIALECT_DOTTED || model->dialect == DIALECT_TAGGED;
}

static bool is_tagged(const struct model *model)
{
	return model->dialect != DIALECT_PLAIN && model->dialect != DIALECT_DOTTED;
}

/* Of the time unit, in a second; 1 for what is no time. */
static uint64_t per_second(const struct model *model, const struct metric *metric)
{
	static const uint64_t units[] = { [LINES_SECONDS] = 1, [LINES_MILLISECONDS] = 1000,
					  [LINES_MICROSECONDS] = 1000000, [LINES_NANOSECONDS] = 1000000000 };

	if (strcmp(metric->unit, "s") || metric->kind == METRIC_GAUGE)
		return 1;
	if (metric->kind == METRIC_HISTOGRAM && model->options->histogram == LINES_TIMER)
		return 1000;
	return units[model->options->time_unit];
}

/* How much more of a sum there is to say than was said. */
static unsigned __int128 grown(const struct model *model, struct model_series *series)
{
	const struct metric *metric = series->series->metric;
	unsigned __int128 units = per_second(model, metric), all, result;

	all = series->series->total.sum * units / metric->divisor;
	result = all - series->said;
	series->said = all;
	return result;
}

struct list {
	struct expected *lines;
	size_t n;
	bool is_refused;
};

static void add_counter(const struct model *model, struct list *list, unsigned int role, unsigned __int128 whole)
{
	if (whole > INT64_MAX)
		list->is_refused = true;
	else if (whole || model->options->sends_unchanged)
		list->lines[list->n++] =
			(struct expected){ .role = role, .is_counter = true, .raw = (uint64_t)whole, .divisor = 1 };
}

/* A number of Graphite's, of which it takes every one. */
static void add_number(const struct model *model, struct list *list, unsigned int role, uint64_t total, uint64_t before,
		       uint64_t divisor)
{
	list->lines[list->n++] = (struct expected){ .role = role, .divisor = divisor,
						    .raw = model->options->is_cumulative ? total : total - before };
}

/* A sum, whose growth in this batch is delta and in that of all batches of this time total - before. */
static void expect_sum(const struct model *model, struct model_series *series, unsigned int role, struct list *list)
{
	const struct series *now = series->series;

	if (is_graphite(model))
		add_number(model, list, role, now->total.sum, series->before.sum, now->metric->divisor);
	else
		add_counter(model, list, role, grown(model, series));
}

static void expect_count(const struct model *model, unsigned int role, uint64_t total, uint64_t before, uint64_t delta,
			 struct list *list)
{
	if (is_graphite(model))
		add_number(model, list, role, total, before, 1);
	else
		add_counter(model, list, role, delta);
}

static void expect_gauge(const struct model *model, const struct model_series *series, struct list *list)
{
	int64_t value = (int64_t)series->series->total.sum;

	if (value < 0 && !is_graphite(model)) {
		list->is_refused = true;
		return;
	}
	list->lines[list->n++] = (struct expected){ .role = ROLE_ONLY, .is_negative = value < 0,
						    .raw = value < 0 ? -(uint64_t)value : (uint64_t)value,
						    .divisor = series->series->metric->divisor };
}

static void expect_samples(const struct series *series, struct list *list)
{
	for (uint32_t i = 0; i < series->metric->layout.n_buckets; i++)
		if (series->delta.bucket[i])
			list->lines[list->n++] = (struct expected){ .role = ROLE_BUCKET + i, .is_sample = true,
								    .n = series->delta.bucket[i] };
}

static void expect_histogram(const struct model *model, struct model_series *series, struct list *list)
{
	const struct numbers *total = &series->series->total, *delta = &series->series->delta;
	const struct model_totals *before = &series->before;

	expect_count(model, ROLE_COUNT, total->count, before->count, delta->count, list);
	expect_sum(model, series, ROLE_SUM, list);
	for (uint32_t i = 0; i < series->series->metric->layout.n_buckets; i++)
		if (total->bucket[i] != before->bucket[i] || (model->options->sends_unchanged && total->bucket[i]))
			expect_count(model, ROLE_BUCKET + i, total->bucket[i], before->bucket[i], delta->bucket[i],
				     list);
}

/* StatsD and totals know no time: each batch is after the one before. */
static void begin_time(const struct model *model, struct model_series *series)
{
	if (!is_graphite(model) || model->options->is_cumulative || series->time_s != model->time_s)
		series->before = series->last;
	series->time_s = model->time_s;
}

static void end_time(struct model_series *series)
{
	const struct numbers *total = &series->series->total;

	series->last.sum = total->sum;
	series->last.count = total->count;
	if (total->bucket)
		memcpy(series->last.bucket, total->bucket,
		       series->series->metric->layout.n_buckets * sizeof(*total->bucket));
}

size_t model_expect(const struct model *model, struct model_series *series, struct expected lines[EXPECTED_MAX],
		    bool *ret_is_refused)
{
	const struct numbers *total = &series->series->total;
	struct list list = { .lines = lines };
	bool sends_all = model->options->sends_unchanged, is_same_time = series->time_s == model->time_s;

	begin_time(model, series);
	switch (series->series->metric->kind) {
	case METRIC_SUM:
		if (total->sum != series->before.sum || sends_all)
			expect_sum(model, series, ROLE_ONLY, &list);
		break;
	case METRIC_GAUGE: /* one a time in Graphite */
		if (!is_graphite(model) || !is_same_time)
			expect_gauge(model, series, &list);
		break;
	case METRIC_HISTOGRAM:
		if (model->options->histogram != LINES_COUNTERS)
			expect_samples(series->series, &list);
		else if (total->count != series->before.count || sends_all)
			expect_histogram(model, series, &list);
		break;
	}
	end_time(series);
	*ret_is_refused = list.is_refused;
	return list.n;
}

/* --- whether it is ----------------------------------------------------------------------------------- */

static double to_double(struct grammar_text text)
{
	char copy[512];

	model_assert(text.size < sizeof(copy), "a number longer than any", text);
	memcpy(copy, text.at, text.size);
	copy[text.size] = '\0';
	return strtod(copy, NULL);
}

/* Is text raw / divisor, exactly or, where that has no end, cut off after eighteen decimals? */
static bool is_quotient(struct grammar_text text, uint64_t raw, uint64_t divisor)
{
	struct grammar_text whole = grammar_cut(&text, '.');
	uint64_t rest = raw % divisor, number = 0;

	for (size_t i = 0; i < whole.size; i++)
		number = number * 10 + (uint64_t)(whole.at[i] - '0');
	if (number != raw / divisor || whole.size > 20)
		return false;
	for (size_t i = 0; i < text.size; i++) {
		unsigned __int128 more = (unsigned __int128)rest * 10;

		if (!rest || text.at[i] != '0' + (char)(more / divisor))
			return false;
		rest = (uint64_t)(more % divisor);
	}
	return !rest || text.size == 18;
}

/* Of bucket i, in the unit of the line. */
static double upper_of(const struct model *model, const struct metric *metric, uint32_t i)
{
	double base = exp2(exp2(-metric->layout.scale));

	return i ? pow(base, metric->layout.offset + (int)i) * (double)per_second(model, metric) : 0;
}

static bool is_about(double value, double other, double part)
{
	return fabs(value - other) <= part * fabs(other);
}

#define LARGEST 1e30 /* of samples; no number of 64 bits is in a bucket above */

static void check_sample(const struct model *model, const struct metric *metric, const struct expected *expected,
			 const struct grammar_line *line, struct grammar_text text)
{
	uint32_t bucket = expected->role - ROLE_BUCKET;
	double value = to_double(line->value), lower = bucket ? upper_of(model, metric, bucket - 1) : 0;
	double upper = upper_of(model, metric, bucket);
	double n = line->rate.size ? 1 / to_double(line->rate) : 1;

	model_assert(line->type == (model->options->histogram == LINES_TIMER ? GRAMMAR_TIMER : GRAMMAR_DISTRIBUTION),
		     "not the type of samples", text);
	if (!bucket)
		model_assert(value == 0, "a value that is not 0, of the bucket of zeros", text);
	else
		model_assert(value > fmin(lower, LARGEST) * 0.9999 && value < upper * 1.0001, "a value outside its bucket", text);
	model_assert(is_about(n, (double)expected->n, 1e-12) || fabs(n - (double)expected->n) < 1e-4,
		     "a rate that stands for another number", text);
	model_assert(expected->n > 1000000000 || (uint64_t)n == expected->n, "a rate that is cut off to another number",
		     text);
}

static bool is_bound(const struct model *model, const struct metric *metric, uint32_t i, struct grammar_text text)
{
	if (i + 1 == metric->layout.n_buckets)
		return grammar_is(text, "inf");
	return is_about(to_double(text), upper_of(model, metric, i), metric->layout.scale > 0 ? 1e-12 : 1e-15);
}

/* path without its last level, which goes to *ret_level with "_" as "." */
static struct grammar_text cut_level(struct grammar_text path, char level[64], struct grammar_text *ret_level)
{
	size_t size = path.size;

	while (size && path.at[size - 1] != '.')
		size--;
	*ret_level = (struct grammar_text){ level, path.size - size };
	model_assert(size && ret_level->size < 64, "a path without a level for the bound", path);
	for (size_t i = 0; i < ret_level->size; i++)
		level[i] = path.at[size + i] == '_' ? '.' : path.at[size + i];
	return (struct grammar_text){ path.at, size - 1 };
}

static bool is_hexadecimal(struct grammar_text text)
{
	for (size_t i = 0; i < text.size; i++)
		if (!strchr("0123456789abcdef", text.at[i]))
			return false;
	return text.size == 8;
}

static struct grammar_text cut_suffix(struct grammar_text path, const char *suffix)
{
	size_t size = strlen(suffix);

	model_assert(path.size > size && !memcmp(path.at + path.size - size, suffix, size), suffix, path);
	return (struct grammar_text){ path.at, path.size - size };
}

/* The path of the series itself, of the one of a line. */
static struct grammar_text stem_of(const struct model *model, const struct metric *metric,
				   const struct expected *expected, const struct grammar_line *line)
{
	struct grammar_text path = line->path, bound;
	char level[64];

	if (expected->is_sample)
		return path;
	if (metric->kind == METRIC_HISTOGRAM && is_graphite(model) && model->options->is_cumulative)
		path = cut_suffix(path, ".total");
	switch (expected->role) {
	case ROLE_ONLY:
		if (metric->kind == METRIC_GAUGE || !is_graphite(model))
			return path;
		return cut_suffix(path, model->options->is_cumulative ? ".total" : ".count");
	case ROLE_COUNT:
		return cut_suffix(path, ".count");
	case ROLE_SUM:
		return cut_suffix(path, ".sum");
	}
	if (is_tagged(model)) {
		model_assert(line->n_tags && grammar_is(line->tags[line->n_tags - 1].name, "upper"),
			     "no bound", path);
		bound = line->tags[line->n_tags - 1].value;
	} else {
		path = cut_level(path, level, &bound);
	}
	model_assert(is_bound(model, metric, expected->role - ROLE_BUCKET, bound), "another bound", line->path);
	return cut_suffix(path, ".bucket");
}

static void check_path(const struct model *model, const struct metric *metric, const struct expected *expected,
		       const struct grammar_line *line)
{
	static const char *const suffixes[] = { [LINES_MILLISECONDS] = "_ms", [LINES_MICROSECONDS] = "_us",
						[LINES_NANOSECONDS] = "_ns" };
	const char *unit = suffixes[model->options->time_unit];
	struct grammar_text stem = stem_of(model, metric, expected, line), rest = stem;
	size_t limit = model->options->naming.limit_bytes, more = is_tagged(model) ? 0 : strlen("_x01234567");

	model_assert(line->path.size <= limit, "a path that is too long", line->path);
	while (model->is_default_template && rest.size)
		model_assert(grammar_cut(&rest, '.').size <= NAME_LEVEL_BYTES + strlen("_us") + more,
			     "a level that is too long", stem);
	if (unit && per_second(model, metric) != 1 && !expected->is_sample &&
	    stem.size < limit - NAME_SUFFIX_BYTES - 10)
		model_assert(memmem(stem.at, stem.size, unit, 3), "a path without its unit", stem);
}

/* Is value what is left of whole where kept remains, and "_" instead of each other character of UTF-8? */
static bool is_left_of(struct grammar_text value, const char *whole, const char *kept)
{
	size_t at = 0;

	if (!*whole)
		return grammar_is(value, "_");
	for (const char *byte = whole; *byte; byte++) {
		bool is_same = (*byte >= '0' && *byte <= '9') || ((*byte | 32) >= 'a' && (*byte | 32) <= 'z') ||
			       strchr(kept, *byte);

		if ((*byte & 0xc0) == 0x80)
			continue;
		if (at == value.size || value.at[at++] != (is_same ? *byte : '_'))
			return false;
	}
	return at == value.size;
}

/* All attributes of the series, where the template has none of them. */
static void check_all_tags(const struct model *model, const struct series *series, const struct grammar_line *line,
			   unsigned int n)
{
	static const char *const kept[] = { [DIALECT_GRAPHITE] = "_-.", [DIALECT_DOGSTATSD] = "_-./:",
					    [DIALECT_INFLUX] = "_-./", [DIALECT_TAGGED] = "_-.:@+" };

	model_assert(n == model->n_resource_tags + series->n_attributes, "tags too many or too few", line->path);
	for (unsigned int i = 0; i < series->n_attributes; i++) {
		const struct grammar_tag *tag = &line->tags[model->n_resource_tags + i];
		const struct attribute *attribute = &series->attributes[i];

		if (attribute->type == ATTRIBUTE_TEXT && tag->value.size < NAME_LEVEL_BYTES)
			model_assert(is_left_of(tag->value, attribute->text, kept[model->dialect]), "another value",
				     tag->value);
	}
}

static void check_tags(const struct model *model, const struct series *series, const struct expected *expected,
		       const struct grammar_line *line)
{
	unsigned int n = line->n_tags;

	for (unsigned int i = 0; i < line->n_tags; i++) {
		const struct grammar_tag *tag = &line->tags[i];
		bool is_upper = grammar_is(tag->name, "upper"), is_series = grammar_is(tag->name, "series");

		model_assert(tag->name.size <= NAME_TAG_BYTES + ATTRIBUTES_MAX + NAME_RESOURCE_TAGS_MAX &&
				     tag->value.size <= NAME_LEVEL_BYTES,
			     "a tag that is too long", tag->name);
		model_assert(!is_upper || (expected->role >= ROLE_BUCKET && !expected->is_sample), "a bound of nothing",
			     tag->name);
		model_assert(!is_series || is_hexadecimal(tag->value), "no identity", tag->name);
		n -= is_upper || is_series;
	}
	if (is_tagged(model) && model->is_default_template)
		check_all_tags(model, series, line, n);
}

static int compare_tags(const void *left, const void *right)
{
	const struct grammar_tag *one = left, *other = right;
	size_t size = one->name.size < other->name.size ? one->name.size : other->name.size;

	return memcmp(one->name.at, other->name.at, size) ?: one->name.size < other->name.size ? -1 : 1;
}

/* Receivers sort tags. */
static char *full_name(const struct grammar_line *line)
{
	struct grammar_line sorted = *line;
	struct buf name = BUF_INIT;

	qsort(sorted.tags, sorted.n_tags, sizeof(sorted.tags[0]), compare_tags);
	buf_append(&name, sorted.path.at, sorted.path.size);
	for (unsigned int i = 0; i < sorted.n_tags; i++) {
		buf_append_byte(&name, ';');
		buf_append(&name, sorted.tags[i].name.at, sorted.tags[i].name.size);
		buf_append_byte(&name, '=');
		buf_append(&name, sorted.tags[i].value.at, sorted.tags[i].value.size);
	}
	(void)buf_text(&name);
	return (char *)name.data;
}

/* One name for one line of one series, and one line for one name, for ever. */
static void check_name(struct model *model, unsigned int series, unsigned int role, const struct grammar_line *line)
{
	char *name = full_name(line);
	bool is_known = false;

	for (size_t i = 0; i < model->n_known; i++) {
		const struct known *known = &model->known[i];
		bool is_same = known->series == series && known->role == role;

		if (is_same != !strcmp(known->name, name)) {
			fprintf(stderr, "series %u, line %u: %s\nseries %u, line %u: %s\n", known->series, known->role,
				known->name, series, role, name);
			abort();
		}
		is_known |= is_same;
	}
	if (is_known) {
		free(name);
		return;
	}
	model->known = reallocarray(model->known, model->n_known + 1, sizeof(*model->known));
	if (!model->known)
		abort();
	model->known[model->n_known++] = (struct known){ name, series, role };
}

void model_check(struct model *model, unsigned int index, const struct series *series, const struct expected *expected,
		 struct grammar_text text)
{
	const struct metric *metric = series->metric;
	struct grammar_line line;
	const char *wrong = grammar_parse(model->dialect, text, &line);
	enum grammar_type type = expected->is_counter ? GRAMMAR_COUNTER : GRAMMAR_GAUGE;

	model_assert(!wrong, wrong, text);
	check_path(model, metric, expected, &line);
	check_tags(model, series, expected, &line);
	check_name(model, index, expected->is_sample ? ROLE_ONLY : expected->role, &line);
	if (expected->is_sample) {
		check_sample(model, metric, expected, &line, text);
		return;
	}
	if (is_graphite(model))
		model_assert(line.type == GRAMMAR_PLAIN && line.time_s == model->time_s, "another time", text);
	else
		model_assert(line.type == type, "another type", text);
	model_assert(line.is_negative == expected->is_negative, "another sign", text);
	model_assert(is_quotient(line.value, expected->raw, expected->divisor), "another number", text);
}

void model_done(struct model *model)
{
	for (size_t i = 0; i < model->n_known; i++)
		free(model->known[i].name);
	free(model->known);
}

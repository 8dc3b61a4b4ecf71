/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile names and numbers through the writer of StatsD's and Graphite's lines, whose lines are read again.
 *
 * Each batch goes to three writers. One gets the whole batch. One gets each series alone, the last one first: what
 * it writes for a series must be what the first wrote at its place, so neither order nor company has any influence.
 * One has a small limit, and pieces that cannot be put: its lines must be some of the first one's, in their order.
 *
 * Of the lines themselves: all follow the grammar, no two series share a name, the buckets of a histogram add
 * up to its count, and what was written of a count adds up to its total. All points are accounted for.
 *
 * The input is read by take_…(), in the order of the code (input.h).
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/lines/lines.h"
#include "input.h"
#include "lines-grammar.h"
#include "metric/series.h"
#include "util/hash.h"

#define METRICS_MAX 4
#define SERIES_MAX  16
#define BUCKETS_MAX 512
#define LONGEST	    16384 /* of a line, and more */
#define NAMES_MAX   (1 << 17)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct writer {
	struct lines lines;
	struct exporter exporter;
	struct buf out;		   /* of one push: lines, each with a newline */
	uint8_t failing, n_pieces; /* a bit for each piece, in turn */
	bool has_failed;
};

/* The attributes that all series of a metric have, but for those that name.h lets be missing. */
struct schema {
	const char *names[ATTRIBUTES_MAX];
	uint8_t types[ATTRIBUTES_MAX];
	unsigned int n;
	const char *owner; /* NULL: any */
};

/* What was written of the count of a histogram, by the time of its lines. */
struct written {
	uint64_t before, now, time_s;
};

struct scene {
	struct input input;
	enum dialect_id dialect;
	const char *template;
	struct attribute resource[4];
	char *tag_names[4];
	struct setting_list tags;
	struct metric metrics[METRICS_MAX], *list[METRICS_MAX];
	struct budget budgets[METRICS_MAX];
	struct schema schemas[METRICS_MAX];
	struct batch batch;
	struct series *series[SERIES_MAX]; /* each is there once */
	unsigned int n_series;
	struct written written[SERIES_MAX];
	bool is_refused[SERIES_MAX]; /* a part could not be written, so nothing adds up */
	struct buf alone[SERIES_MAX];
	struct writer whole, single, narrow;
	uint64_t time_s;
	unsigned int losses;
};

/* Whose each name is, by its hash. */
static struct {
	uint64_t hash;
	const struct series *series;
} known[NAMES_MAX];

static void check(bool is_right, const char *what, struct grammar_text text)
{
	if (is_right)
		return;
	fprintf(stderr, "%s: %.*s\n", what, (int)text.size, text.at);
	abort();
}

static struct grammar_text text_of(struct buf *buf)
{
	return (struct grammar_text){ buf_text(buf), buf->size };
}

/* The input */

static const char *const attribute_names[] = {
	"a", "b", "host.name", "systemd.unit.name", "container.id", "process.linux.cgroup", "a b", "a_b", "a.b", "a-b",
	"a/b", "name", "__name__", "upper", "upper_", "series", "series_", "error.type", "",
};
static const char *const owners[] = { "systemd.unit.name", "container.id", "process.linux.cgroup" };
static const char *const values[] = { "x", "y", "", "a.b", "a b", "a_b", "a/b", "..", ".", "1", "true", "inf",
				      "\xc3\xa9", "\xff", "a:1|c\nb:2|c", "|#t:v", ";t=v", ",t=v", "count", "bucket", "a.service", "a_service",
				      "a b.service", "a_b.service", "x_01234567", "_", "otel_metric_overflow" };

static void take_resource(struct scene *scene)
{
	for (size_t i = 0; i < ARRAY_SIZE(scene->resource); i++) {
		scene->resource[i].name = i ? TAKE_TEXT(&scene->input, attribute_names) : "host.name";
		scene->resource[i].text = TAKE_TEXT(&scene->input, values);
		scene->tag_names[i] = (char *)TAKE_TEXT(&scene->input, attribute_names);
	}
	scene->tags = (struct setting_list){ .items = scene->tag_names, .n_items = take(&scene->input) % 5 };
}

/* Whether series may have no owner, or owners of several kinds: name.h says where. */
static bool shows_owner(const struct scene *scene)
{
	return dialect_table[scene->dialect].tag_first || !scene->template || strstr(scene->template, "{unit}");
}

static void take_schema(struct scene *scene, struct schema *schema)
{
	unsigned int n = take(&scene->input) % ATTRIBUTES_MAX;

	schema->owner = shows_owner(scene) ? NULL : owners[take(&scene->input) % ARRAY_SIZE(owners)];
	schema->n = 0;
	while (n--) {
		const char *name = TAKE_TEXT(&scene->input, attribute_names);
		bool is_there = attribute_owner(name) || !strcmp(name, "otel.metric.overflow"); /* series.c's alone */

		for (unsigned int i = 0; i < schema->n; i++)
			is_there |= !strcmp(schema->names[i], name);
		if (is_there)
			continue;
		schema->names[schema->n] = name;
		schema->types[schema->n++] = take(&scene->input) % 8;
	}
}

static void take_metric(struct scene *scene)
{
	static const char *const names[] = {
		"a", "a.count", "a.total", "a.sum", "a.bucket", "a.bucket.1", "a.bucket.inf", "a.bucket.bucket.0_5",
		"a_us", "a_us.count", "b", "", ".", "a..b", "a b", "a_b",
	};
	static const char *const units[] = { "s", "By", "1", "{call}" };
	static const uint64_t divisors[] = { 1, 1000000000, 1000, 1024, 3, 1000000000000000000, UINT64_MAX };
	static const struct histogram_bound bounds[] = { { 1 }, { 49 }, { UINT64_C(1) << 53 }, { UINT64_C(1) << 63 } };
	static const struct histogram_layout layouts[] = {
		{ 0, -30, 64, false, NULL, 20, 12, 2 }, { 0, -1, 66 },	 { 0, -3, 6 },	    { 0, -1, 2 },
		{ 2, -8, 40 },	{ -1, -2, 12 }, { 0, -30, 512 }, { 0, -1, 512 },
		{ 0, 0, 4, false, bounds }, { 0, 0, 5, true, bounds },
	};
	struct metric *metric = &scene->metrics[scene->batch.n_metrics];
	struct budget *budget = &scene->budgets[scene->batch.n_metrics];
	static const uint8_t limits[] = { 0, 0, 0, 2 };

	metric->scope = take(&scene->input) & 1 ? "one" : "two";
	metric->name = TAKE_TEXT(&scene->input, names);
	metric->unit = units[take(&scene->input) % ARRAY_SIZE(units)];
	metric->kind = (enum metric_kind)(take(&scene->input) % 3);
	metric->divisor = divisors[take(&scene->input) % ARRAY_SIZE(divisors)];
	metric->layout = layouts[take(&scene->input) % ARRAY_SIZE(layouts)];
	*budget = (struct budget){ .limit_series = limits[take(&scene->input) % ARRAY_SIZE(limits)] };
	metric_init_series(metric, budget);
	for (size_t i = 0; i < scene->batch.n_metrics; i++)
		if (!strcmp(metric->name, scene->metrics[i].name) && !strcmp(metric->scope, scene->metrics[i].scope))
			return; /* a collector has one metric of a name */
	take_schema(scene, &scene->schemas[scene->batch.n_metrics]);
	scene->list[scene->batch.n_metrics++] = metric;
}

static void take_attribute(struct scene *scene, struct attributes *attributes, const char *name, uint8_t type)
{
	const char *text;

	if (type == 1) {
		(void)attributes_add_number(attributes, name, (int64_t)take_number(&scene->input));
		return;
	}
	if (type == 2) {
		(void)attributes_add_flag(attributes, name, take(&scene->input) & 1);
		return;
	}
	text = TAKE_TEXT(&scene->input, values);
	(void)attributes_add_text(attributes, name, text, strlen(text));
}

static void take_attributes(struct scene *scene, const struct schema *schema, struct attributes *attributes)
{
	uint8_t owner = take(&scene->input) % 4;

	attributes_init(attributes);
	if (schema->owner)
		take_attribute(scene, attributes, schema->owner, 0);
	else if (owner < 3)
		take_attribute(scene, attributes, owners[owner], 0);
	for (unsigned int i = 0; i < schema->n; i++)
		if (strcmp(schema->names[i], "error.type") || take(&scene->input) & 1)
			take_attribute(scene, attributes, schema->names[i], schema->types[i]);
}

static void take_series(struct scene *scene)
{
	uint8_t which = take(&scene->input);
	unsigned int metric = which % (unsigned int)scene->batch.n_metrics;
	struct attributes attributes;
	struct series *series;

	take_attributes(scene, &scene->schemas[metric], &attributes);
	if ((which < 240 ? series_get(&scene->metrics[metric], &attributes, 1, &series) :
			   series_get_overflow(&scene->metrics[metric], OVERFLOW_TABLE, 1, &series)) < 0)
		abort();
	for (unsigned int i = 0; i < scene->n_series; i++)
		if (scene->series[i] == series)
			return;
	scene->series[scene->n_series++] = series;
}

/* Writers */

static int put(void *user, uint8_t *data, size_t size, size_t n_points)
{
	struct writer *writer = user;
	struct grammar_text piece = { (const char *)data, size }, lines = piece;
	bool is_stream = writer->lines.pack.dialect->is_graphite;
	bool fails = writer->failing >> (writer->n_pieces++ & 7) & 1;

	check(size && size <= writer->lines.pack.limit_bytes, "a piece that is empty or too long", piece);
	check((data[size - 1] == '\n') == is_stream, "a piece that ends otherwise", piece);
	while (lines.size) {
		struct grammar_text line = grammar_cut(&lines, '\n');

		check(line.size, "an empty line", piece);
		buf_append(&writer->out, line.at, line.size);
		buf_append_byte(&writer->out, '\n');
	}
	exporter_account(&writer->exporter, fails ? POINTS_NOT_SENT : POINTS_DELIVERED, n_points);
	writer->has_failed |= fails;
	free(data);
	return fails ? -EIO : 0;
}

static void writer_push(struct scene *scene, struct writer *writer, unsigned int losses)
{
	const uint64_t *points = writer->exporter.stats.points;
	uint64_t n = 0;
	int err;

	buf_reset(&writer->out);
	writer->has_failed = false;
	writer->exporter.n_losses = losses;
	err = lines_push(&writer->lines, &scene->batch, scene->time_s);
	check(err == (writer->has_failed ? -EIO : 0), "another result", text_of(&writer->out));
	for (enum points fate = POINTS_DELIVERED; fate < N_POINTS; fate++)
		n += points[fate];
	check(n == points[POINTS_PUSHED], "points that are not accounted for", text_of(&writer->out));
}

static void writer_init(struct writer *writer, const struct lines *lines)
{
	static const struct exporter_context context = { .version = "1" };
	static const struct exporter_ops ops = { .type = "fuzz" };

	writer->lines = *lines;
	writer->lines.exporter = &writer->exporter;
	writer->lines.pack.user = writer;
	writer->exporter.name = "fuzz";
	writer->exporter.context = &context;
	writer->exporter.ops = &ops;
}

static bool take_writers(struct scene *scene)
{
	static const char *const templates[] = { NULL, "{metric}", "{metric}.{attributes}", "{attributes}.{metric}",
						 "{host}.{unit}.{metric}", "x.{a}.{attributes}.{metric}.y",
						 "{unit}_{metric}", "{unit}.{a}.{metric}.{attributes}.{b}" };
	struct lines options = { .pack = { .limit_bytes = LONGEST, .put = put } };
	bool is_graphite;

	scene->dialect = (enum dialect_id)(take(&scene->input) % DIALECTS);
	is_graphite = dialect_table[scene->dialect].is_graphite;
	options.histogram = is_graphite ? LINES_COUNTERS : (enum lines_histogram)(take(&scene->input) % 3);
	if (options.histogram == LINES_DISTRIBUTION && scene->dialect != DIALECT_DOGSTATSD)
		options.histogram = LINES_COUNTERS;
	options.time_unit = is_graphite ? LINES_SECONDS : (enum lines_unit)(take(&scene->input) % 4);
	options.is_cumulative = is_graphite && take(&scene->input) & 1;
	options.sends_unchanged = take(&scene->input) & 1;
	scene->template = TAKE_TEXT(&scene->input, templates);
	take_resource(scene);
	if (naming_init(&options.naming, &dialect_table[scene->dialect], scene->template, scene->resource,
			ARRAY_SIZE(scene->resource), &scene->tags) < 0)
		return false;
	options.naming.limit_bytes -= take(&scene->input) * 3;
	writer_init(&scene->whole, &options);
	writer_init(&scene->single, &options);
	options.pack.limit_bytes = 1 + take_bytes(&scene->input, 2) % 4096;
	writer_init(&scene->narrow, &options);
	scene->narrow.failing = take(&scene->input);
	scene->time_s = 1700000000;
	return true;
}

/* Lines */

/* Tags in another order are the same name. */
static uint64_t hash_name(const struct grammar_line *line)
{
	uint64_t hash = 0;

	for (unsigned int i = 0; i < line->n_tags; i++) {
		const struct grammar_tag *tag = &line->tags[i];
		uint64_t pair[] = { hash_bytes(tag->name.at, tag->name.size),
				    hash_bytes(tag->value.at, tag->value.size) };

		hash += hash_bytes(pair, sizeof(pair));
	}
	return hash + hash_bytes(line->path.at, line->path.size);
}

static void check_name(const struct series *series, const struct grammar_line *line, struct grammar_text text)
{
	uint64_t hash = hash_name(line) ?: 1;
	size_t at = hash % NAMES_MAX;

	while (known[at].hash && known[at].hash != hash)
		at = (at + 1) % NAMES_MAX;
	check(!known[at].hash || known[at].series == series, "a name that two series have", text);
	known[at].hash = hash;
	known[at].series = series;
}

static double to_double(struct grammar_text text)
{
	char copy[512];

	check(text.size < sizeof(copy), "a number longer than any", text);
	memcpy(copy, text.at, text.size);
	copy[text.size] = '\0';
	return strtod(copy, NULL);
}

static uint64_t to_u64(struct grammar_text text)
{
	uint64_t number = 0;

	for (size_t i = 0; i < text.size; i++)
		number = number * 10 + (uint64_t)(text.at[i] - '0');
	return number;
}

/* n: what a line says now of the histogram's count. */
static void add_count(const struct scene *scene, struct written *written, uint64_t n)
{
	bool replaces = dialect_table[scene->dialect].is_graphite && written->time_s == scene->time_s;

	if (!scene->whole.lines.is_cumulative && !replaces)
		written->before += written->now;
	written->now = n;
	written->time_s = scene->time_s;
}

static bool ends_in(struct grammar_text text, const char *suffix)
{
	size_t size = strlen(suffix);

	return text.size > size && !memcmp(text.at + text.size - size, suffix, size);
}

/* A line of a histogram: *in_buckets is what the lines of buckets add up to so far, *in_count the line of the count. */
static void check_histogram(struct scene *scene, unsigned int i, const struct grammar_line *line, uint64_t *in_buckets,
			    uint64_t *in_count)
{
	struct grammar_text path = line->path;

	if (scene->whole.lines.histogram != LINES_COUNTERS) {
		*in_buckets += line->rate.size ? (uint64_t)fmin(1 / to_double(line->rate) + 0.5, 0x1p50) : 1;
		return;
	}
	if (scene->whole.lines.is_cumulative) {
		check(ends_in(path, ".total"), "not a total", path);
		path.size -= strlen(".total");
	}
	if (ends_in(path, ".sum"))
		return;
	if (!ends_in(path, ".count")) {
		*in_buckets += to_u64(line->value);
		return;
	}
	*in_count = to_u64(line->value);
	add_count(scene, &scene->written[i], *in_count);
}

static void check_series(struct scene *scene, unsigned int i)
{
	const struct series *series = scene->series[i];
	bool is_histogram = series->metric->kind == METRIC_HISTOGRAM;
	bool is_values = scene->whole.lines.histogram != LINES_COUNTERS;
	struct grammar_text rest = text_of(&scene->alone[i]), text = rest;
	uint64_t in_buckets = 0, in_count = 0;
	unsigned int n_lines = 0;

	for (; rest.size; n_lines++) {
		struct grammar_line line;
		const char *wrong;

		text = grammar_cut(&rest, '\n');
		wrong = grammar_parse(scene->dialect, text, &line);
		check(!wrong, wrong, text);
		check_name(series, &line, text);
		check(line.path.size <= scene->whole.lines.naming.limit_bytes, "a path that is too long", text);
		check(is_histogram || !n_lines, "a second line", text);
		if (is_histogram)
			check_histogram(scene, i, &line, &in_buckets, &in_count);
	}
	if (!is_histogram || scene->is_refused[i])
		return;
	if (is_values)
		check(in_buckets == series->delta.count || series->delta.count >> 40, "values too many or too few", text);
	else if (!scene->whole.lines.is_cumulative)
		check(in_buckets == in_count, "buckets that do not add up to the count", text);
}

/* Is each line of some one of all, in its order? */
static void check_some(struct grammar_text some, struct grammar_text all)
{
	while (some.size) {
		struct grammar_text line = grammar_cut(&some, '\n'), other = { 0 };

		while (all.size && (other.size != line.size || memcmp(other.at, line.at, line.size)))
			other = grammar_cut(&all, '\n');
		check(other.size == line.size && !memcmp(other.at, line.at, line.size), "a line of its own", line);
	}
}

/* Batches */

static void feed_histogram(struct scene *scene, struct series *series)
{
	uint32_t n_buckets = series->metric->layout.n_buckets;
	uint64_t bucket[BUCKETS_MAX] = { 0 }, sum = 0, count = 0, all;

	for (unsigned int n = 1 + take(&scene->input) % 4; n; n--) {
		uint64_t at = take_bytes(&scene->input, 1), n_values = take_number(&scene->input);

		at = (at == 255 ? n_buckets - 1 : at * (n_buckets > 256 ? 2 : 1)) % n_buckets;
		if (__builtin_add_overflow(count, n_values, &all) ||
		    __builtin_add_overflow(series->total.count, all, &all))
			continue;
		bucket[at] += n_values;
		count += n_values;
	}
	sum = take_number(&scene->input);
	if (!count || __builtin_add_overflow(series->total.sum, sum, &all))
		sum = 0;
	series_add_histogram(series, sum, bucket);
}

static void feed(struct scene *scene, struct series *series)
{
	uint64_t grown, all;

	if (series->metric->kind == METRIC_HISTOGRAM) {
		feed_histogram(scene, series);
		return;
	}
	grown = take_number(&scene->input);
	if (series->metric->kind == METRIC_GAUGE || !__builtin_add_overflow(series->total.sum, grown, &all))
		series_add(series, grown);
}

static void push_alone(struct scene *scene, unsigned int i, unsigned int losses)
{
	const uint64_t *n_refused = &scene->single.exporter.stats.points[POINTS_UNSUPPORTED];
	bool is_present[SERIES_MAX];
	uint64_t before = *n_refused;

	for (unsigned int j = 0; j < scene->n_series; j++) {
		is_present[j] = scene->series[j]->is_present;
		scene->series[j]->is_present &= i == j;
	}
	writer_push(scene, &scene->single, losses);
	scene->is_refused[i] |= *n_refused != before;
	buf_reset(&scene->alone[i]);
	buf_append(&scene->alone[i], scene->single.out.data, scene->single.out.size);
	for (unsigned int j = 0; j < scene->n_series; j++)
		scene->series[j]->is_present = is_present[j];
}

/* What was written of each series alone is what was written of all. */
static void check_whole(struct scene *scene)
{
	struct grammar_text rest = text_of(&scene->whole.out);
	struct metric *metric;
	struct series *series;

	batch_for_each_metric(metric, &scene->batch) {
		metric_for_each_series(series, metric) {
			unsigned int i = 0;

			while (scene->series[i] != series)
				i++;
			check(scene->alone[i].size <= rest.size &&
				      !memcmp(rest.at, buf_text(&scene->alone[i]), scene->alone[i].size),
			      "other lines than alone", rest);
			rest.at += scene->alone[i].size;
			rest.size -= scene->alone[i].size;
		}
	}
	check(!rest.size, "lines of nothing", rest);
}

static void push(struct scene *scene)
{
	uint8_t what;

	for (size_t i = 0; i < scene->batch.n_metrics; i++)
		series_begin(&scene->metrics[i]);
	for (unsigned int i = 0; i < scene->n_series; i++)
		if (take(&scene->input) % 8 > 2)
			feed(scene, scene->series[i]);
	for (size_t i = 0; i < scene->batch.n_metrics; i++)
		series_end(&scene->metrics[i]);
	what = take(&scene->input);
	scene->losses += what % 4 == 1;
	scene->time_s += what % 8 < 4;
	for (unsigned int i = scene->n_series; i--;)
		push_alone(scene, i, scene->losses);
	writer_push(scene, &scene->whole, scene->losses);
	check_whole(scene);
	writer_push(scene, &scene->narrow, scene->losses);
	/* It repeats gauges that it could not send. */
	if (dialect_table[scene->dialect].is_graphite || scene->whole.lines.sends_unchanged)
		check_some(text_of(&scene->narrow.out), text_of(&scene->whole.out));
	for (unsigned int i = 0; i < scene->n_series; i++)
		check_series(scene, i);
}

static void check_totals(struct scene *scene)
{
	for (unsigned int i = 0; i < scene->n_series; i++) {
		const struct written *written = &scene->written[i];
		const struct series *series = scene->series[i];

		if (series->metric->kind != METRIC_HISTOGRAM || scene->is_refused[i] ||
		    scene->whole.lines.histogram != LINES_COUNTERS)
			continue;
		check(written->before + written->now == series->total.count, "counts that do not add up",
		      text_of(&scene->alone[i]));
	}
}

static void run(struct scene *scene)
{
	if (!take_writers(scene))
		return;
	scene->batch.metrics = scene->list;
	for (unsigned int n = 1 + take(&scene->input) % METRICS_MAX; n; n--)
		take_metric(scene);
	for (unsigned int n = 1 + take(&scene->input) % SERIES_MAX; n; n--)
		take_series(scene);
	for (uint8_t n = 2 + take(&scene->input) % 3; n; n--)
		push(scene);
	check_totals(scene);
}

static void writer_done(struct writer *writer)
{
	lines_done(&writer->lines);
	buf_done(&writer->out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	if (!scene)
		return 0;
	memset(known, 0, sizeof(known));
	scene->input = (struct input){ .data = data, .size = size };
	run(scene);
	writer_done(&scene->whole);
	writer_done(&scene->single);
	writer_done(&scene->narrow);
	for (size_t i = 0; i < scene->batch.n_metrics; i++)
		metric_done_series(&scene->metrics[i]);
	for (size_t i = 0; i < SERIES_MAX; i++)
		buf_done(&scene->alone[i]);
	input_done(&scene->input);
	free(scene);
	return 0;
}

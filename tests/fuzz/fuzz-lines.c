/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile names and numbers through the renderer of StatsD's and Graphite's lines, whose lines are read again.
 * Each batch goes to two writers: one whose pieces hold any line, of which every line must be the next that
 * lines-model.c expects; and one with a small limit, pieces that cannot be put and gauges that are not repeated,
 * of which every line must be the next of the first one's that it may have. All points must be accounted for.
 *
 * The input is read by take_…(), in the order of the code; zeros where it ends. Bytes below PALETTE choose a text
 * that is in the code.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lines-model.h"
#include "metric/series.h"

#define METRICS_MAX 4
#define SERIES_MAX  16
#define TEXTS_MAX   1024
#define LONGEST	    16384 /* of a line, and more */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct writer {
	struct lines_options options;
	struct exporter exporter;  /* its stats as they are */
	struct exporter_stats due; /* and as they must be */
	struct lines *lines;
	struct buf out;		    /* of one push: lines, each with a newline */
	uint64_t n_points, n_due;   /* put; that should have been */
	uint8_t failing, n_pieces;  /* a bit for each piece, in turn */
	bool has_failed;
	struct grammar_text rest; /* of out */
};

struct scene {
	const uint8_t *data;
	size_t size;
	char *texts[TEXTS_MAX]; /* that live as long */
	size_t n_texts;
	const char *template;
	struct attribute resource[4];
	char *tag_names[4];
	struct setting_list tags;
	struct metric metrics[METRICS_MAX], *list[METRICS_MAX];
	struct batch batch;
	struct attributes attributes[SERIES_MAX];
	unsigned int n_series, metric_of[SERIES_MAX], first_with[SERIES_MAX]; /* the same attributes */
	/* Of the first with these attributes: */
	struct model_series series[SERIES_MAX];
	struct series *fed[SERIES_MAX];
	unsigned int n_sources[SERIES_MAX];
	uint8_t ended_in[SERIES_MAX];
	struct writer wide, narrow;
	struct model model;
	unsigned int losses;
};

/* --- the input --------------------------------------------------------------------------------------- */

static uint8_t take(struct scene *scene)
{
	if (!scene->size)
		return 0;
	scene->size--;
	return *scene->data++;
}

static uint64_t take_bytes(struct scene *scene, unsigned int n)
{
	uint64_t number = 0;

	while (n--)
		number = number << 8 | take(scene);
	return number;
}

static uint64_t take_number(struct scene *scene)
{
	uint8_t kind = take(scene);

	switch (kind & 7) {
	case 0:
		return kind >> 3;
	case 1:
		return take_bytes(scene, 1);
	case 2:
		return take_bytes(scene, 2);
	case 3:
		return take_bytes(scene, 4);
	case 4:
		return take_bytes(scene, 8);
	case 5:
		return UINT64_C(1) << (take(scene) & 63);
	case 6:
		return 0 - take_bytes(scene, 1);
	}
	return INT64_MAX - (kind >> 3);
}

/* Of any bytes but NUL; a size from LONG on stands for many times one byte, with another behind them. */
#define PALETTE 64
#define LONG	240

static const char *take_text(struct scene *scene, const char *const *palette, size_t n_palette)
{
	uint8_t n = take(scene);
	size_t size = n < LONG ? (size_t)(n - PALETTE) : (size_t)(n - LONG + 1) * 40;
	char *text;

	if (n < PALETTE || scene->n_texts == TEXTS_MAX)
		return palette[n % n_palette];
	text = calloc(1, size + 2);
	if (!text)
		abort();
	if (n >= LONG)
		memset(text, take(scene), size++);
	for (size_t i = n < LONG ? 0 : size - 1; i < size; i++)
		text[i] = (char)take(scene);
	for (size_t i = 0; i < size; i++)
		text[i] = text[i] ? text[i] : 1;
	return scene->texts[scene->n_texts++] = text;
}

#define TAKE_TEXT(scene, palette) take_text((scene), (palette), ARRAY_SIZE(palette))

static const char *const attribute_names[] = {
	"a", "b", "host.name", "systemd.unit.name", "container.id", "process.linux.cgroup", "a b", "a_b", "a.b", "a-b",
	"a/b", "name", "__name__", "upper", "upper_", "series", "series_", "error.type", "",
};
static const char *const values[] = { "x", "y", "", "a.b", "a b", "a_b", "a/b", "..", ".", "1", "true", "inf",
				      "\xc3\xa9", "\xff", "a:1|c\nb:2|c", "|#t:v", ";t=v", ",t=v", "count", "bucket" };

static void take_resource(struct scene *scene)
{
	for (size_t i = 0; i < ARRAY_SIZE(scene->resource); i++) {
		scene->resource[i].name = i ? TAKE_TEXT(scene, attribute_names) : "host.name";
		scene->resource[i].text = TAKE_TEXT(scene, values);
		scene->tag_names[i] = (char *)TAKE_TEXT(scene, attribute_names);
	}
	scene->tags = (struct setting_list){ .items = scene->tag_names, .n_items = take(scene) % 5 };
}

static unsigned int count_resource_tags(const struct scene *scene)
{
	unsigned int n = 0;

	for (size_t i = 0; i < scene->tags.n_items; i++) {
		bool is_there = false;

		for (size_t j = 0; j < ARRAY_SIZE(scene->resource); j++)
			is_there |= !strcmp(scene->resource[j].name, scene->tag_names[i]);
		n += is_there;
	}
	return n;
}

static void take_metric(struct scene *scene)
{
	static const char *const names[] = {
		"a", "a.count", "a.total", "a.sum", "a.bucket", "a.bucket.1", "a.bucket.inf", "a.bucket.bucket.0_5",
		"a_us", "a_us.count", "b", "", ".", "a..b", "a b", "a_b",
	};
	static const char *const units[] = { "s", "By", "1", "{call}" };
	static const uint64_t divisors[] = { 1, 1000000000, 1000, 1024, 3, 1000000000000000000, UINT64_MAX };
	static const struct histogram_layout layouts[] = {
		{ 0, -30, 64 }, { 0, -1, 66 },	 { 0, -3, 6 },	    { 0, -1, 2 },
		{ 2, -8, 40 },	{ -1, -2, 12 }, { 0, -30, 512 }, { 0, -1, 512 },
	};
	struct metric *metric = &scene->metrics[scene->batch.n_metrics];
	static const uint8_t limits[] = { 0, 0, 0, 3 };

	metric->scope = take(scene) & 1 ? "one" : "two";
	metric->name = TAKE_TEXT(scene, names);
	metric->unit = units[take(scene) % ARRAY_SIZE(units)];
	metric->kind = (enum metric_kind)(take(scene) % 3);
	metric->divisor = divisors[take(scene) % ARRAY_SIZE(divisors)];
	metric->layout = layouts[take(scene) % ARRAY_SIZE(layouts)];
	metric_init_series(metric, limits[take(scene) % ARRAY_SIZE(limits)]);
	for (size_t i = 0; i < scene->batch.n_metrics; i++)
		if (!strcmp(metric->name, scene->metrics[i].name) && !strcmp(metric->scope, scene->metrics[i].scope))
			return; /* a collector has one metric of a name */
	scene->list[scene->batch.n_metrics++] = metric;
}

static bool has_attribute(const struct attributes *attributes, const char *name)
{
	for (unsigned int i = 0; i < attributes->n; i++)
		if (!strcmp(attributes->items[i].name, name))
			return true;
	return false;
}

static void take_attributes(struct scene *scene, struct attributes *attributes)
{
	unsigned int n = take(scene) % (ATTRIBUTES_MAX + 1);

	attributes_init(attributes);
	while (n--) {
		const char *name = TAKE_TEXT(scene, attribute_names), *text;
		uint8_t type = take(scene) % 8;

		if (has_attribute(attributes, name) || !strcmp(name, "otel.metric.overflow")) /* series.c's alone */
			continue;
		if (type == 1) {
			(void)attributes_add_number(attributes, name, (int64_t)take_number(scene));
		} else if (type == 2) {
			(void)attributes_add_flag(attributes, name, take(scene) & 1);
		} else {
			text = TAKE_TEXT(scene, values);
			(void)attributes_add_text(attributes, name, text, strlen(text));
		}
	}
}

/* --- writers ----------------------------------------------------------------------------------------- */

static int put(void *user, uint8_t *data, size_t size, size_t n_points)
{
	struct writer *writer = user;
	struct grammar_text piece = { (const char *)data, size }, lines = piece;
	bool is_stream = writer->options.pack.is_stream, fails = writer->failing >> (writer->n_pieces++ & 7) & 1;

	model_assert(size && size <= writer->options.pack.limit_bytes, "a piece that is empty or too long", piece);
	model_assert((data[size - 1] == '\n') == is_stream, "a piece that ends otherwise", piece);
	while (lines.size) {
		struct grammar_text line = grammar_cut(&lines, '\n');

		model_assert(line.size, "an empty line", piece);
		buf_append(&writer->out, line.at, line.size);
		buf_append_byte(&writer->out, '\n');
	}
	writer->n_points += n_points;
	writer->has_failed |= fails;
	free(data);
	return fails ? -EIO : 0;
}

static void writer_push(struct scene *scene, struct writer *writer, unsigned int losses)
{
	int err;

	buf_reset(&writer->out);
	writer->has_failed = false;
	err = lines_push(writer->lines, &scene->batch, scene->model.time_s, losses);
	writer->rest = (struct grammar_text){ buf_text(&writer->out), writer->out.size };
	model_assert(err == (writer->has_failed ? -EIO : 0), "another result", writer->rest);
}

static bool take_writers(struct scene *scene)
{
	enum dialect_id dialect = (enum dialect_id)(take(scene) % DIALECTS);
	bool is_graphite = dialect == DIALECT_DOTTED || dialect == DIALECT_TAGGED;
	static const char *const templates[] = { NULL, "{metric}", "{metric}.{attributes}", "{attributes}.{metric}",
						 "{host}.{unit}.{metric}", "x.{a}.{attributes}.{metric}.y" };
	struct lines_options options = { .pack = { .limit_bytes = LONGEST, .is_stream = is_graphite, .put = put } };

	options.histogram = is_graphite ? LINES_COUNTERS : (enum lines_histogram)(take(scene) % 3);
	if (options.histogram == LINES_DISTRIBUTION && dialect != DIALECT_DOGSTATSD)
		options.histogram = LINES_COUNTERS;
	options.time_unit = is_graphite ? LINES_SECONDS : (enum lines_unit)(take(scene) % 4);
	options.is_cumulative = is_graphite && take(scene) & 1;
	options.sends_unchanged = take(scene) & 1;
	scene->template = TAKE_TEXT(scene, templates);
	take_resource(scene);
	if (naming_init(&options.naming, &dialect_table[dialect], scene->template, scene->resource,
			ARRAY_SIZE(scene->resource), &scene->tags) < 0)
		return false;
	options.naming.limit_bytes -= take(scene) * 3;
	scene->wide.options = scene->narrow.options = options;
	scene->wide.options.pack.user = &scene->wide;
	scene->narrow.options.pack.user = &scene->narrow;
	scene->narrow.options.pack.limit_bytes = 1 + take_bytes(scene, 2) % 4096;
	scene->narrow.failing = take(scene);
	scene->model = (struct model){ .dialect = dialect, .options = &scene->wide.options, .time_s = 1700000000,
				       .is_default_template = !scene->template,
				       .n_resource_tags = count_resource_tags(scene) };
	return true;
}

/* --- batches ----------------------------------------------------------------------------------------- */

static void take_series(struct scene *scene)
{
	unsigned int i = scene->n_series++, first = 0;
	struct metric *metric;
	struct series *series;

	scene->metric_of[i] = take(scene) % (unsigned int)scene->batch.n_metrics;
	metric = &scene->metrics[scene->metric_of[i]];
	take_attributes(scene, &scene->attributes[i]);
	if (series_get(metric, &scene->attributes[i], 1, &series) < 0)
		abort();
	while (first < i && (scene->first_with[first] != first || scene->fed[first] != series))
		first++;
	scene->first_with[i] = first;
	scene->fed[first] = series;
	scene->series[first].series = series;
	scene->n_sources[first]++;
}

static void feed_histogram(struct scene *scene, struct series *series)
{
	uint32_t n_buckets = series->metric->layout.n_buckets;
	uint64_t bucket[BUCKETS_MAX] = { 0 }, sum = 0, count = 0, all;

	for (unsigned int n = 1 + take(scene) % 4; n; n--) {
		uint64_t at = take_bytes(scene, 1), n_values = take_number(scene);

		at = (at == 255 ? n_buckets - 1 : at * (n_buckets > 256 ? 2 : 1)) % n_buckets;
		if (__builtin_add_overflow(count, n_values, &all) ||
		    __builtin_add_overflow(series->total.count, all, &all))
			continue;
		bucket[at] += n_values;
		count += n_values;
	}
	sum = take_number(scene);
	if (!count || __builtin_add_overflow(series->total.sum, sum, &all))
		sum = 0;
	series_add_histogram(series, sum, bucket);
}

static void feed(struct scene *scene, unsigned int i, uint8_t now)
{
	unsigned int first = scene->first_with[i];
	struct metric *metric = &scene->metrics[scene->metric_of[i]];
	struct series *series = scene->fed[first];
	uint64_t grown, all;

	if (!series && scene->ended_in[first] != now) { /* it is back */
		if (series_get(metric, &scene->attributes[i], 1, &series) < 0)
			abort();
		scene->series[first] = (struct model_series){ .series = series };
		scene->fed[first] = series;
		scene->n_sources[first] = 1;
	}
	if (!series)
		return;
	if (metric->kind == METRIC_HISTOGRAM) {
		feed_histogram(scene, series);
		return;
	}
	grown = take_number(scene);
	if (metric->kind == METRIC_GAUGE || !__builtin_add_overflow(series->total.sum, grown, &all))
		series_add(series, grown);
}

static void end(struct scene *scene, unsigned int i, uint8_t now)
{
	unsigned int first = scene->first_with[i];
	struct series *series = scene->fed[first];

	/* Under a limit, who has which attributes may change. */
	if (!series || series->delta.sum || series->delta.count || series->metric->limit < SERIES_MAX)
		return;
	for (; scene->n_sources[first]; scene->n_sources[first]--)
		series_put(series);
	scene->fed[first] = NULL;
	scene->series[first].series = NULL;
	scene->ended_in[first] = now;
}

static unsigned int index_of(const struct scene *scene, const struct series *series)
{
	unsigned int i = 0;

	while (i < scene->n_series && scene->series[i].series != series)
		i++;
	if (i == scene->n_series)
		abort();
	return i;
}

/* Whether the writer that repeats nothing has lines of it now. */
static bool is_repeated(const struct scene *scene, const struct model_series *series, bool is_refused)
{
	const struct lines_options *options = &scene->narrow.options;

	return series->series->metric->kind != METRIC_GAUGE || is_refused || options->sends_unchanged ||
	       options->naming.dialect->is_graphite || !series->is_gauge_sent ||
	       series->last_gauge != (int64_t)series->series->total.sum || series->losses != scene->losses;
}

static void account(struct writer *writer, size_t n, bool is_refused, bool is_too_long)
{
	if (is_refused)
		writer->due.points[POINTS_UNSUPPORTED]++;
	else if (is_too_long)
		writer->due.points[POINTS_TOO_LARGE]++;
	else if (n)
		writer->n_due++;
}

static void check_series(struct scene *scene, unsigned int index)
{
	static struct expected expected[EXPECTED_MAX];
	struct model_series *series = &scene->series[index];
	bool is_refused, is_too_long = false, is_again;
	size_t n = model_expect(&scene->model, series, expected, &is_refused);

	is_again = is_repeated(scene, series, is_refused);
	for (size_t i = 0; i < n; i++) {
		struct grammar_text line = grammar_cut(&scene->wide.rest, '\n'), other;

		model_check(&scene->model, index, series->series, &expected[i], line);
		if (!is_again)
			continue;
		if (line.size + scene->narrow.options.pack.is_stream > scene->narrow.options.pack.limit_bytes) {
			is_too_long = true;
			continue;
		}
		other = grammar_cut(&scene->narrow.rest, '\n');
		model_assert(other.size == line.size && !memcmp(other.at, line.at, line.size), "not the line", other);
	}
	account(&scene->wide, n, is_refused, false);
	if (!is_again)
		return;
	account(&scene->narrow, n, is_refused, is_too_long);
	if (is_refused)
		return;
	series->is_gauge_sent = !is_too_long;
	series->last_gauge = (int64_t)series->series->total.sum;
	series->losses = scene->losses;
}

static void check_stats(const struct writer *writer)
{
	const struct exporter_stats *stats = &writer->exporter.stats, *due = &writer->due;
	uint64_t n = writer->n_points + due->points[POINTS_UNSUPPORTED] + due->points[POINTS_TOO_LARGE];

	model_assert(!writer->rest.size, "lines of nothing", writer->rest);
	if (writer->n_points != writer->n_due || stats->points[POINTS_PUSHED] != n ||
	    stats->points[POINTS_UNSUPPORTED] != due->points[POINTS_UNSUPPORTED] ||
	    stats->points[POINTS_TOO_LARGE] != due->points[POINTS_TOO_LARGE] || stats->points[POINTS_NOT_SENT])
		abort();
}

static void push(struct scene *scene, uint8_t now)
{
	struct metric *metric;
	struct series *series;
	uint8_t what;

	for (size_t i = 0; i < scene->batch.n_metrics; i++)
		series_begin(&scene->metrics[i]);
	for (unsigned int i = 0; i < scene->n_series; i++) {
		what = take(scene) % 8;
		if (what == 1)
			end(scene, i, now);
		else if (what > 2)
			feed(scene, i, now);
	}
	for (size_t i = 0; i < scene->batch.n_metrics; i++)
		series_end(&scene->metrics[i]);
	what = take(scene);
	scene->losses += what % 4 == 1;
	scene->model.time_s += what % 8 < 4 ? now : 0;
	writer_push(scene, &scene->wide, now); /* other losses than before: every gauge is sent */
	writer_push(scene, &scene->narrow, scene->losses);
	batch_for_each_metric(metric, &scene->batch)
		metric_for_each_series(series, metric)
			check_series(scene, index_of(scene, series));
	check_stats(&scene->wide);
	check_stats(&scene->narrow);
	if (scene->wide.exporter.stats.name_collisions != scene->narrow.exporter.stats.name_collisions)
		abort();
}

static void run(struct scene *scene)
{
	if (!take_writers(scene))
		return;
	if (lines_new(&scene->wide.options, &scene->wide.exporter, &scene->wide.lines) < 0 ||
	    lines_new(&scene->narrow.options, &scene->narrow.exporter, &scene->narrow.lines) < 0)
		abort();
	scene->batch.metrics = scene->list;
	for (unsigned int n = 1 + take(scene) % METRICS_MAX; n; n--)
		take_metric(scene);
	for (unsigned int n = 1 + take(scene) % SERIES_MAX; n; n--)
		take_series(scene);
	for (uint8_t n = 2 + take(scene) % 3; n; n--)
		push(scene, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	if (!scene)
		return 0;
	scene->data = data;
	scene->size = size;
	run(scene);
	lines_free(scene->wide.lines);
	lines_free(scene->narrow.lines);
	buf_done(&scene->wide.out);
	buf_done(&scene->narrow.out);
	for (size_t i = 0; i < scene->batch.n_metrics; i++)
		metric_done_series(&scene->metrics[i]);
	model_done(&scene->model);
	for (size_t i = 0; i < scene->n_texts; i++)
		free(scene->texts[i]);
	free(scene);
	return 0;
}

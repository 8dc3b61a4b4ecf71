/* SPDX-License-Identifier: Apache-2.0 */
#include "metric/copy.h"

#include <errno.h>
#include <stdlib.h>

#include "metric/series.h"
#include "metric/state.h"
#include "util/array.h"
#include "util/utf8.h"

#define METRICS_MAX 10000
#define SCALE_MAX   20
#define TEXT_BYTES  1000
#define DESCRIPTION 3 /* among the texts of a metric */

/* The texts of a metric, as they follow each other. */
#define TEXTS 4
#define TEXTS_OF(metric) \
	{ &(metric)->scope, &(metric)->name, &(metric)->unit, &(metric)->description }

static void write_metric(const struct metric *metric, struct series_names *names)
{
	const struct histogram_layout *layout = &metric->layout;
	const uint64_t numbers[] = { metric->kind, metric->divisor, metric->is_updown,
				     (uint64_t)layout->scale,
				     (uint64_t)layout->offset, layout->n_buckets,
				     layout->has_no_sum,
				     layout->bounds != NULL, metric->loss.missed,
				     metric->loss.events, metric->loss.is_known };
	const char *const texts[] = { metric->scope, metric->name, metric->unit,
				      metric->description };
	struct store *out = names->store;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		store_text(out, texts[i]);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		store_number(out, numbers[i]);
	for (uint32_t i = 0; layout->bounds && i + 1 < layout->n_buckets; i++)
		store_number(out, layout->bounds[i].upper);
}

static void write_series(const struct series *series, struct series_names *names)
{
	const struct numbers *numbers[] = { &series->total, &series->delta };

	store_number(names->store, 1);
	name_save(series, names);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		store_number(names->store, numbers[i]->sum);
		if (series->total.bucket)
			store_numbers(names->store, numbers[i]->bucket,
				      series->metric->layout.n_buckets);
	}
}

void batch_write(const struct batch *batch, struct store *out)
{
	struct series_names names = { .store = out };
	struct metric *metric;
	struct series *series;

	store_number(out, batch->time_ns);
	store_number(out, batch->previous_ns);
	store_number(out, batch->n_metrics);
	batch_for_each_metric(metric, batch) {
		write_metric(metric, &names);
		metric_for_each_series(series, metric)
			write_series(series, &names);
		store_number(out, 0);
	}
	index_done(&names.texts);
}

struct batch_copy {
	struct metric *metrics; /* which own their texts and bounds */
	struct batch batch;
	struct budget budget;
};

struct batch_copy *batch_copy_new(void)
{
	struct batch_copy *copy = calloc(1, sizeof(*copy));

	if (copy)
		copy->budget.limit_bytes = BATCH_COPY_BYTES;
	return copy;
}

struct batch_copy *batch_copy_free(struct batch_copy *copy)
{
	if (!copy)
		return NULL;
	for (size_t i = 0; i < copy->batch.n_metrics; i++) {
		struct metric *metric = &copy->metrics[i];
		const char **texts[] = TEXTS_OF(metric);

		metric_done_series(metric);
		for (size_t j = 0; j < TEXTS; j++)
			free((char *)*texts[j]);
		free((void *)metric->layout.bounds);
	}
	free(copy->metrics);
	free(copy->batch.metrics);
	free(copy);
	return NULL;
}

/*
 * As all names of metrics, attributes and units are: nothing in them joins, hides or turns what is
 * shown.
 */
static bool is_ascii(const char *text)
{
	while (*text && (unsigned char)*text < 0x80)
		text++;
	return !*text;
}

/* bounds: room for those of one metric. What it points to lies in them, and in what is read. */
static int read_metric(struct stored *in, struct histogram_bound *bounds, struct metric *ret_metric)
{
	const char *texts[TEXTS];
	uint64_t numbers[11];
	bool is_right;

	for (size_t i = 0; i < TEXTS; i++)
		texts[i] = stored_text(in);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		numbers[i] = stored_number(in);
	*ret_metric = (struct metric){
		.scope = texts[0], .name = texts[1], .unit = texts[2], .description = texts[3],
		.kind = (enum metric_kind)numbers[0], .divisor = numbers[1],
				       .is_updown = numbers[2],
		.layout = { .scale = (int32_t)numbers[3], .offset = (int32_t)numbers[4],
			    .n_buckets = (uint32_t)numbers[5], .has_no_sum = numbers[6],
			    .bounds = numbers[7] ? bounds : NULL },
		.loss = { numbers[8], numbers[9], numbers[10] },
	};
	is_right = numbers[0] <= METRIC_HISTOGRAM && numbers[1] &&
		   numbers[5] <= HISTOGRAM_BUCKETS_MAX &&
		   (numbers[0] == METRIC_HISTOGRAM) == (numbers[5] > 0) &&
		   (!numbers[7] || numbers[5] > 1) &&
		   ret_metric->layout.scale <= SCALE_MAX &&
		   ret_metric->layout.scale >= -SCALE_MAX / 2 &&
		   ret_metric->layout.offset < INT16_MAX && ret_metric->layout.offset > INT16_MIN;
	for (size_t i = 0; i < TEXTS; i++)
		is_right &= utf8_is_printable(texts[i], TEXT_BYTES) &&
			(i == DESCRIPTION || is_ascii(texts[i]));
	for (uint64_t i = 0; is_right && numbers[7] && i + 1 < numbers[5]; i++)
		bounds[i] = (struct histogram_bound){ .upper = stored_number(in) };
	return is_right && !in->is_bad ? 0 : -EINVAL;
}

/* *metric points to what is read. */
static int keep_metric(struct batch_copy *copy, struct metric *metric)
{
	const char **texts[] = TEXTS_OF(metric);
	size_t bytes = metric->layout.bounds ?
		       (metric->layout.n_buckets - 1) * sizeof(struct histogram_bound) : 0;
	struct histogram_bound *bounds = bytes ? malloc(bytes) : NULL;
	bool has_all = !bytes || bounds;

	if (bounds)
		memcpy(bounds, metric->layout.bounds, bytes);
	metric->layout.bounds = bounds;
	for (size_t i = 0; i < TEXTS; i++)
		has_all &= (*texts[i] = strdup(*texts[i])) != NULL;
	metric_init_series(metric, &copy->budget);
	return has_all ? 0 : -ENOMEM;
}

static bool is_same(const struct metric *left, const struct metric *right)
{
	return left->kind == right->kind && left->divisor == right->divisor &&
	       left->is_updown == right->is_updown &&
	       histogram_layouts_equal(&left->layout, &right->layout) &&
	       !strcmp(left->scope, right->scope) &&
	       !strcmp(left->name, right->name) && !strcmp(left->unit, right->unit) &&
	       !strcmp(left->description, right->description);
}

/* Adds them: several series may have become one, for lack of room. */
static void read_numbers(const struct metric *metric, struct numbers *numbers, struct stored *in)
{
	uint64_t bucket[HISTOGRAM_BUCKETS_MAX], sum = stored_number(in);

	stored_numbers(in, bucket, metric->layout.n_buckets);
	numbers_add(metric, numbers, sum, bucket);
}

/* Not of a batch: what says whose a number is, is a text, and names are plain. */
static bool are_wrong(const struct attributes *attributes)
{
	bool is_wrong = false;

	array_for_each (item, attributes->items, attributes->n)
		is_wrong |= !is_ascii(item->name) ||
			    (item->type != ATTRIBUTE_TEXT && attribute_owner(item->name));
	return is_wrong;
}

static int read_series(struct metric *metric, const struct stored *all, struct stored *in)
{
	struct attributes attributes;
	enum overflow reason;
	struct series *series;
	uint64_t start_ns;
	int err = name_read(in, all, &attributes, &reason, &start_ns);

	if (err || are_wrong(&attributes))
		return -EINVAL;
	err = reason == OVERFLOWS ? series_get(metric, &attributes, start_ns, &series) :
				    series_get_overflow(metric, reason, start_ns, &series);
	if (err)
		return err;
	if (series->n_sources > 1 && !series_is_overflow(series)) /* each series is there once */
		return -EINVAL;
	if (series->n_sources == 1) { /* series_begin() has forgotten the delta */
		series->total.sum = series->total.count = 0;
		if (series->total.bucket)
			memset(series->total.bucket, 0,
			       metric->layout.n_buckets * sizeof(*series->total.bucket));
	}
	series->start_ns = start_ns;
	read_numbers(metric, &series->total, in);
	read_numbers(metric, &series->delta, in);
	return 0;
}

static int read_all_series(struct metric *metric, const struct stored *all, struct stored *in)
{
	int err = 0;

	for (size_t i = 0; i < metric->n_series; i++)
		while (metric->series[i]->n_sources)
			series_put(metric->series[i]);
	series_begin(metric);
	while (!err && stored_number(in))
		err = read_series(metric, all, in);
	series_end(metric);
	return !err && in->is_bad ? -EINVAL : err;
}

/* Room for the first collection's metrics. */
static int init_metrics(struct batch_copy *copy, size_t n)
{
	copy->metrics = calloc(n + 1, sizeof(*copy->metrics));
	copy->batch.metrics = calloc(n + 1, sizeof(*copy->batch.metrics));
	if (!copy->metrics || !copy->batch.metrics)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		copy->batch.metrics[i] = &copy->metrics[i];
	return 0;
}

int batch_copy_read(struct batch_copy *copy, const struct stored *all, struct stored *in)
{
	struct histogram_bound bounds[HISTOGRAM_BUCKETS_MAX];
	bool is_first = !copy->metrics;
	struct metric metric;
	uint64_t n;
	int err;

	copy->batch.time_ns = stored_number(in);
	copy->batch.previous_ns = stored_number(in);
	n = stored_number(in);
	if (in->is_bad || n > METRICS_MAX || copy->batch.previous_ns >= copy->batch.time_ns)
		return -EINVAL;
	if (!is_first && n != copy->batch.n_metrics)
		return -ESTALE;
	err = is_first ? init_metrics(copy, n) : 0;
	for (size_t i = 0; i < n && !err; i++) {
		struct metric *own = &copy->metrics[i];

		err = read_metric(in, bounds, &metric);
		copy->batch.n_metrics += is_first && !err;
		if (!err && is_first) {
			*own = metric;
			err = keep_metric(copy, own);
		} else if (!err && !is_same(&metric, own)) {
			err = -ESTALE;
		}
		own->loss = metric.loss;
		err = err ?: read_all_series(own, all, in);
	}
	return err;
}

const struct batch *batch_copy_batch(const struct batch_copy *copy)
{
	return &copy->batch;
}

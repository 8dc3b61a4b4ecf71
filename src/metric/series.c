/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A series lives as long as something feeds it (n_sources) or its last growth has not been exported
 * yet. It then stays for one more batch, as ended, so that exporters can say so. The budget counts
 * only series that are fed, so those that are about to leave take no room from new ones. Encoders
 * walk the array, which is dense; the index is filled again when series have left.
 */
#include "metric/series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"
#include "util/hash.h"

const char *const metric_kinds[] = { [METRIC_SUM] = "sum", [METRIC_GAUGE] = "gauge",
				     [METRIC_HISTOGRAM] = "histogram" };

static const struct setting_row rows[] = {
	SETTING(struct metric, dropped, "drop_attributes", SETTING_WORDS, NULL),
	SETTING(struct metric, limit_explicit, "buckets", SETTING_U64, NULL, .minimum = 2,
		.maximum = HISTOGRAM_BUCKETS_MAX),
};
const struct setting_table metric_settings = SETTING_TABLE(rows, struct metric);

bool histogram_layouts_equal(const struct histogram_layout *left,
			     const struct histogram_layout *right)
{
	return left->scale == right->scale && left->offset == right->offset &&
	       left->n_buckets == right->n_buckets &&
	       left->has_no_sum == right->has_no_sum && left->n_explicit == right->n_explicit &&
	       left->first == right->first && left->step == right->step &&
	       !left->bounds == !right->bounds && (!left->bounds ||
		!memcmp(left->bounds, right->bounds,
			(left->n_buckets - 1) * sizeof(*left->bounds)));
}

void metric_init_series(struct metric *metric, struct budget *budget)
{
	static struct budget unlimited;

	metric->series = NULL;
	metric->n_series = 0;
	memset(metric->overflow, 0, sizeof(metric->overflow));
	metric->budget = budget ?: &unlimited;
	metric->index = (struct index){ 0 };
	metric->is_held = false;
}

/* The budget counts only series that are fed. */
static void count_in_budget(struct series *series, int change)
{
	if (!series_is_overflow(series))
		series->metric->budget->n_series += (uint64_t)change;
}

static void series_free(struct series *series)
{
	struct metric *metric = series->metric;

	if (series->n_sources)
		count_in_budget(series, -1);
	for (size_t i = 0; i < OVERFLOWS; i++)
		if (metric->overflow[i] == series)
			metric->overflow[i] = NULL;
	metric->budget->series_bytes -= series->size_bytes;
	while (series->caches) {
		struct series_cache *cache = series->caches;

		series->caches = cache->next;
		free(cache);
	}
	free(series);
}

const struct attribute *series_owner(const struct series *series)
{
	array_for_each (attribute, series->attributes, series->n_attributes)
		if (attribute_owner(attribute->name))
			return attribute;
	return NULL;
}

struct series_cache *series_cache_new(struct series *series, const void *owner, const void *data,
				      size_t size)
{
	struct series_cache *cache = calloc(1, sizeof(*cache) + size);

	if (!cache)
		return NULL;
	cache->owner = owner;
	cache->size = size;
	if (data)
		memcpy(cache->data, data, size);
	cache->next = series->caches;
	series->caches = cache;
	series->size_bytes += sizeof(*cache) + size;
	series->metric->budget->series_bytes += sizeof(*cache) + size;
	return cache;
}

void metric_done_series(struct metric *metric)
{
	for (size_t i = 0; i < metric->n_series; i++)
		series_free(metric->series[i]);
	free(metric->series);
	index_done(&metric->index);
	metric_init_series(metric, metric->budget);
}

static uint64_t attributes_hash(const struct attributes *attributes)
{
	uint64_t hash = attributes->n;

	array_for_each (item, attributes->items, attributes->n) {
		hash = hash * 31 + hash_bytes(item->name, strlen(item->name));
		hash = hash * 31 + (item->type == ATTRIBUTE_TEXT ?
					    hash_bytes(item->text, strlen(item->text)) :
					    hash_bytes(&item->number, sizeof(item->number)));
	}
	return hash;
}

static bool attributes_equal(const struct series *series, const struct attributes *attributes)
{
	if (series->n_attributes != attributes->n)
		return false;
	for (unsigned int i = 0; i < attributes->n; i++) {
		const struct attribute *left = &series->attributes[i],
			*right = &attributes->items[i];

		if (left->type != right->type || strcmp(left->name, right->name))
			return false;
		if (left->type == ATTRIBUTE_TEXT ? strcmp(left->text, right->text) != 0 :
						   left->number != right->number)
			return false;
	}
	return true;
}

static struct series *find_series(const struct metric *metric, const struct attributes *attributes,
				  uint64_t hash)
{
	uint32_t i;

	index_for_each(i, &metric->index, hash)
		if (metric->series[i]->hash == hash &&
		    attributes_equal(metric->series[i], attributes))
			return metric->series[i];
	return NULL;
}

/* The series, its attributes, their texts and its buckets in one piece of memory. */
static struct series *series_new(struct metric *metric, const struct attributes *attributes)
{
	size_t n_buckets = metric->layout.n_buckets;
	size_t buckets_at = sizeof(struct series) + attributes->n * sizeof(struct attribute);
	size_t text_at = buckets_at + 2 * n_buckets * sizeof(uint64_t), size = text_at;
	struct attribute *items;
	struct series *series;
	char *text;

	for (unsigned int i = 0; i < attributes->n; i++)
		size += strlen(attributes->items[i].name) + 1 +
			(attributes->items[i].text ? strlen(attributes->items[i].text) + 1 : 0);
	series = calloc(1, size);
	if (!series)
		return NULL;
	items = (struct attribute *)(series + 1);
	text = (char *)series + text_at;
	for (unsigned int i = 0; i < attributes->n; i++) {
		items[i] = attributes->items[i];
		items[i].name = strcpy(text, attributes->items[i].name);
		text += strlen(text) + 1;
		if (!items[i].text)
			continue;
		items[i].text = strcpy(text, attributes->items[i].text);
		text += strlen(text) + 1;
	}
	series->metric = metric;
	series->size_bytes = size;
	series->attributes = items;
	series->n_attributes = attributes->n;
	if (n_buckets) {
		series->total.bucket = (uint64_t *)((char *)series + buckets_at);
		series->delta.bucket = series->total.bucket + n_buckets;
	}
	return series;
}

static int series_make(struct metric *metric, const struct attributes *attributes, uint64_t hash,
		       uint64_t start_ns, struct series **ret_series)
{
	struct series *series = series_new(metric, attributes);
	struct series **place = series ?
				array_add(&metric->series, &metric->n_series, sizeof(series)) :
				NULL;

	if (place && index_add(&metric->index, hash, (uint32_t)metric->n_series - 1)) {
		metric->n_series--;
		place = NULL;
	}
	if (!place) {
		free(series);
		return -ENOMEM;
	}
	series->hash = hash;
	series->start_ns = start_ns;
	metric->budget->series_bytes += series->size_bytes;
	*place = *ret_series = series;
	return 0;
}

void series_take(struct series *series)
{
	if (!series->n_sources++)
		count_in_budget(series, 1);
}

int series_get_overflow(struct metric *metric, enum overflow reason, uint64_t start_ns,
			struct series **ret_series)
{
	static const char *const reasons[] = { [OVERFLOW_TABLE] = "table", [OVERFLOW_SERIES] = "series" };
	struct attributes attributes;
	int err;

	if (!metric->overflow[reason]) {
		attributes_init(&attributes);
		(void)attributes_add_text(&attributes, "bpfpush.overflow.reason", reasons[reason],
					  strlen(reasons[reason]));
		(void)attributes_add_flag(&attributes, "otel.metric.overflow", true);
		err = series_make(metric, &attributes, attributes_hash(&attributes), start_ns,
				  &metric->overflow[reason]);
		if (err)
			return err;
	}
	*ret_series = metric->overflow[reason];
	series_take(*ret_series);
	return 0;
}

int series_get(struct metric *metric, struct attributes *attributes, uint64_t start_ns,
	       struct series **ret_series)
{
	struct series *series;
	uint64_t hash;
	int err;

	for (size_t i = 0; i < metric->dropped.n_items; i++)
		attributes_drop(attributes, metric->dropped.items[i]);
	attributes_sort(attributes);
	hash = attributes_hash(attributes);
	series = find_series(metric, attributes, hash);
	if (!series) {
		if (!budget_has_room(metric->budget))
			return series_get_overflow(metric, OVERFLOW_SERIES, start_ns, ret_series);
		err = series_make(metric, attributes, hash, start_ns, &series);
		if (err)
			return err;
	}
	series_take(series);
	*ret_series = series;
	return 0;
}

void numbers_add(const struct metric *metric, struct numbers *numbers, uint64_t sum,
		 const uint64_t *bucket)
{
	numbers->sum += sum;
	for (uint32_t i = 0; i < metric->layout.n_buckets; i++) {
		numbers->bucket[i] += bucket[i];
		numbers->count += bucket[i];
	}
}

int series_restore(struct metric *metric, struct attributes *attributes, enum overflow reason,
		   uint64_t start_ns, const struct numbers *total, struct series **ret_series)
{
	struct series *series;
	int err = reason == OVERFLOWS ? series_get(metric, attributes, start_ns, &series) :
					series_get_overflow(metric, reason, start_ns, &series);

	*ret_series = NULL;
	if (err)
		return err;
	if (reason == OVERFLOWS && series_is_overflow(series)) {
		series_put(series);
		return 0;
	}
	/* With other names than before, two may have become one. */
	if (start_ns < series->start_ns)
		series->start_ns = start_ns;
	numbers_add(metric, &series->total, total->sum, total->bucket);
	series->is_present = true;
	*ret_series = series;
	return 0;
}

void series_put(struct series *series)
{
	if (series && !--series->n_sources)
		count_in_budget(series, -1);
}

void series_begin(struct metric *metric)
{
	for (size_t i = 0; i < metric->n_series; i++) {
		struct series *series = metric->series[i];

		series->delta.sum = 0;
		if (metric->kind == METRIC_GAUGE && !metric->is_held)
			series->total.sum = 0;
		if (!series->delta.count)
			continue;
		series->delta.count = 0;
		memset(series->delta.bucket, 0, metric->layout.n_buckets * sizeof(uint64_t));
	}
}

void series_add(struct series *series, uint64_t grown)
{
	series->total.sum += grown;
	series->delta.sum += grown;
}

void series_add_histogram(struct series *series, uint64_t sum, const uint64_t *bucket)
{
	numbers_add(series->metric, &series->total, sum, bucket);
	numbers_add(series->metric, &series->delta, sum, bucket);
}

void series_end(struct metric *metric)
{
	size_t kept = 0;

	metric->is_held = false;
	for (size_t i = 0; i < metric->n_series; i++) {
		struct series *series = metric->series[i];
		bool was_present = series->is_present;

		series->is_present = series->n_sources || series->delta.sum || series->delta.count;
		series->is_ended = was_present && !series->is_present;
		if (series->is_present || series->is_ended)
			metric->series[kept++] = series;
		else
			series_free(series);
	}
	if (kept == metric->n_series)
		return;
	array_shrink(&metric->series, metric->n_series, kept, sizeof(*metric->series));
	metric->n_series = kept;
	index_clear(&metric->index);
	for (size_t i = 0; i < kept; i++)
		(void)index_add(&metric->index, metric->series[i]->hash, (uint32_t)i);
	index_shrink(&metric->index);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A series lives as long as something feeds it (n_sources) or its last growth has not been exported
 * yet. So one that is over the limit ends too, and makes room: a caller that has to use the
 * overflow series asks series_has_room() and tries again. Encoders walk the array, which is dense;
 * the index is filled again when series end.
 */
#include "metric/series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"
#include "util/hash.h"

void metric_init_series(struct metric *metric, size_t limit)
{
	metric->series = NULL;
	metric->n_series = 0;
	metric->overflow = NULL;
	metric->limit = limit ? limit : SERIES_LIMIT_DEFAULT;
	metric->index = (struct index){ 0 };
	metric->is_held = false;
}

static void series_free(struct series *series)
{
	while (series->caches) {
		struct series_cache *cache = series->caches;

		series->caches = cache->next;
		free(cache);
	}
	free(series);
}

struct series_cache *series_cache_new(struct series *series, const void *owner, const void *data, size_t size)
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
	return cache;
}

void metric_done_series(struct metric *metric)
{
	for (size_t i = 0; i < metric->n_series; i++)
		series_free(metric->series[i]);
	free(metric->series);
	index_done(&metric->index);
	metric_init_series(metric, metric->limit);
}

static uint64_t attributes_hash(const struct attributes *attributes)
{
	uint64_t hash = attributes->n;

	for (unsigned int i = 0; i < attributes->n; i++) {
		const struct attribute *item = &attributes->items[i];

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
		const struct attribute *left = &series->attributes[i], *right = &attributes->items[i];

		if (left->type != right->type || strcmp(left->name, right->name))
			return false;
		if (left->type == ATTRIBUTE_TEXT ? strcmp(left->text, right->text) != 0 :
						   left->number != right->number)
			return false;
	}
	return true;
}

static struct series *find(const struct metric *metric, const struct attributes *attributes, uint64_t hash)
{
	uint32_t i;

	index_for_each(i, &metric->index, hash)
		if (metric->series[i]->hash == hash && attributes_equal(metric->series[i], attributes))
			return metric->series[i];
	return NULL;
}

/* The series, its attributes, their texts and its buckets in one piece of memory. */
static struct series *series_new(struct metric *metric, const struct attributes *attributes)
{
	size_t n_buckets = metric->kind == METRIC_HISTOGRAM ? metric->layout.n_buckets : 0;
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
	struct series **place = series ? array_add(&metric->series, &metric->n_series, sizeof(series)) : NULL;

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
	*place = *ret_series = series;
	return 0;
}

static int overflow_find(struct metric *metric, uint64_t start_ns, struct series **ret_series)
{
	struct attributes attributes;
	int err;

	if (!metric->overflow) {
		attributes_init(&attributes);
		(void)attributes_add_flag(&attributes, "otel.metric.overflow", true);
		err = series_make(metric, &attributes, attributes_hash(&attributes), start_ns,
				  &metric->overflow);
		if (err)
			return err;
	}
	*ret_series = metric->overflow;
	return 0;
}

bool series_has_room(const struct metric *metric)
{
	/* The last place is kept for the overflow series. */
	return metric->n_series + !metric->overflow < metric->limit;
}

int series_get(struct metric *metric, struct attributes *attributes, uint64_t start_ns,
	       struct series **ret_series)
{
	struct series *series;
	uint64_t hash;
	int err = 0;

	attributes_sort(attributes);
	hash = attributes_hash(attributes);
	series = find(metric, attributes, hash);
	if (!series) {
		if (series_has_room(metric))
			err = series_make(metric, attributes, hash, start_ns, &series);
		else
			err = overflow_find(metric, start_ns, &series);
		if (err)
			return err;
	}
	series->n_sources++;
	*ret_series = series;
	return 0;
}

int series_get_overflow(struct metric *metric, uint64_t start_ns, struct series **ret_series)
{
	int err = overflow_find(metric, start_ns, ret_series);

	if (err)
		return err;
	(*ret_series)->n_sources++;
	return 0;
}

void series_put(struct series *series)
{
	if (series)
		series->n_sources--;
}

void series_begin(struct metric *metric)
{
	for (size_t i = 0; i < metric->n_series; i++) {
		struct series *series = metric->series[i];

		series->delta.sum = 0;
		if (metric->kind == METRIC_GAUGE && !metric->is_held)
			series->total.sum = 0;
		if (metric->kind != METRIC_HISTOGRAM || !series->delta.count)
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
	series_add(series, sum);
	for (uint32_t i = 0; i < series->metric->layout.n_buckets; i++) {
		series->total.bucket[i] += bucket[i];
		series->delta.bucket[i] += bucket[i];
		series->total.count += bucket[i];
		series->delta.count += bucket[i];
	}
}

void series_end(struct metric *metric)
{
	size_t kept = 0;

	metric->is_held = false;
	for (size_t i = 0; i < metric->n_series; i++) {
		struct series *series = metric->series[i];

		series->is_present = series->n_sources || series->delta.sum || series->delta.count;
		if (!series->is_present) {
			if (metric->overflow == series)
				metric->overflow = NULL;
			series_free(series);
			continue;
		}
		metric->series[kept++] = series;
	}
	if (kept == metric->n_series)
		return;
	metric->n_series = kept;
	index_clear(&metric->index);
	for (size_t i = 0; i < kept; i++)
		(void)index_add(&metric->index, metric->series[i]->hash, (uint32_t)i);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A series lives as long as something feeds it (n_sources) or its last growth has not been exported yet.
 * The array of a metric is dense, so that encoders walk it; an open-addressed index beside it finds a
 * series by the hash of its attributes. The index is rebuilt when it fills and when series end, which is
 * rare; so it needs no tombstones.
 */
#include "metric/series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/hash.h"

void metric_init_series(struct metric *metric, size_t limit)
{
	metric->series = NULL;
	metric->n_series = 0;
	metric->overflow = NULL;
	metric->limit = limit ? limit : SERIES_LIMIT_DEFAULT;
	metric->slots = NULL;
	metric->n_slots = 0;
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
	free(metric->slots);
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

static void index_put(struct metric *metric, struct series *series)
{
	size_t at = series->hash & (metric->n_slots - 1);

	while (metric->slots[at])
		at = (at + 1) & (metric->n_slots - 1);
	metric->slots[at] = series;
}

static void index_rebuild(struct metric *metric)
{
	memset(metric->slots, 0, metric->n_slots * sizeof(*metric->slots));
	for (size_t i = 0; i < metric->n_series; i++)
		index_put(metric, metric->series[i]);
}

/* Room for one more in the array and, at most half full, in the index. */
static int grow(struct metric *metric)
{
	size_t n = metric->n_series ? metric->n_series * 2 : 8;
	struct series **slots, **series;

	if (metric->n_slots > 2 * metric->n_series)
		return 0;
	series = realloc(metric->series, n * sizeof(*series));
	if (!series)
		return -ENOMEM;
	metric->series = series;
	slots = calloc(2 * n, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(metric->slots);
	metric->slots = slots;
	metric->n_slots = 2 * n;
	index_rebuild(metric);
	return 0;
}

static struct series *find(const struct metric *metric, const struct attributes *attributes, uint64_t hash)
{
	struct series *series;

	if (!metric->n_slots)
		return NULL;
	for (size_t at = hash & (metric->n_slots - 1); (series = metric->slots[at]);
	     at = (at + 1) & (metric->n_slots - 1))
		if (series->hash == hash && attributes_equal(series, attributes))
			return series;
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
	struct series *series;
	int err = grow(metric);

	if (err)
		return err;
	series = series_new(metric, attributes);
	if (!series)
		return -ENOMEM;
	series->hash = hash;
	series->start_ns = start_ns;
	metric->series[metric->n_series++] = series;
	index_put(metric, series);
	*ret_series = series;
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
		/* The last place is kept for the overflow series. */
		if (metric->n_series + !metric->overflow >= metric->limit)
			err = overflow_find(metric, start_ns, &series);
		else
			err = series_make(metric, attributes, hash, start_ns, &series);
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
		if (metric->kind == METRIC_GAUGE)
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
	index_rebuild(metric);
}

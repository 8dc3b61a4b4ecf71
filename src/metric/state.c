/* SPDX-License-Identifier: Apache-2.0 */
#include "metric/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "metric/series.h"
#include "util/array.h"
#include "util/hash.h"
#include "util/utf8.h"

#define AHEAD	  8 /* series */
#define TEXTS_MAX 4096
#define FEW	  1000u /* so many names that ended may stay */

/* Series lie all over memory: what is asked for in time is there when its turn comes. */
static void prefetch_series(const struct series *series)
{
	if (!series)
		return;
	__builtin_prefetch(series);
	__builtin_prefetch(&series->total);
}

bool names_are_stale(const struct series_names *names)
{
	return !names->n || names->n > 2 * names->n_live + FEW;
}

void names_begin(struct series_names *names, struct store *store)
{
	names->store = store;
	names->n = 0;
	index_clear(&names->texts);
	store_reset(store);
	store_number(store, 0); /* nothing else lies at 0 */
}

static void save_text(struct series_names *names, const char *text)
{
	uint64_t hash = hash_bytes(text, strlen(text));
	uint32_t at;

	index_for_each(at, &names->texts, hash) {
		if (strcmp((const char *)names->store->data + at, text))
			continue;
		store_number(names->store, at);
		return;
	}
	store_number(names->store, 0);
	if (names->texts.n >= TEXTS_MAX)
		index_clear(&names->texts);
	(void)index_add(&names->texts, hash, (uint32_t)names->store->size);
	store_text(names->store, text);
}

void name_save(const struct series *series, struct series_names *names)
{
	enum overflow reason = 0;

	while (reason < OVERFLOWS && series->metric->overflow[reason] != series)
		reason++;
	store_number(names->store, reason);
	store_number(names->store, series->start_ns);
	store_number(names->store, series->n_attributes);
	for (unsigned int i = 0; i < series->n_attributes; i++) {
		const struct attribute *attribute = &series->attributes[i];

		save_text(names, attribute->name);
		store_number(names->store, attribute->type);
		if (attribute->type == ATTRIBUTE_TEXT)
			save_text(names, attribute->text);
		else
			store_number(names->store, (uint64_t)attribute->number);
	}
	names->n++;
}

static void series_save(struct series *series, uint32_t before, struct series_names *names,
			struct store *out)
{
	if (!series->named_at) {
		series->named_at = (uint32_t)names->store->size;
		name_save(series, names);
	}
	store_number(out, series->named_at - before);
	store_number(out, series->is_provisional);
	store_number(out, series->total.sum);
	if (series->total.bucket)
		store_numbers(out, series->total.bucket, series->metric->layout.n_buckets);
}

/* A hash of all that its numbers mean. */
static uint64_t identity_of(const struct metric *metric)
{
	const char *const texts[] = { metric->scope, metric->name, metric->unit };
	const struct histogram_layout *layout = &metric->layout;
	const uint32_t shape[] = { (uint32_t)layout->scale, (uint32_t)layout->offset,
				   layout->n_buckets };
	const uint64_t parts[] = { metric->kind, metric->divisor };
	uint64_t hash = hash_stable(HASH_STABLE_START, parts, sizeof(parts));

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		hash = hash_stable(hash, texts[i], strlen(texts[i]) + 1);
	hash = hash_stable(hash, shape, sizeof(shape));
	if (!layout->bounds)
		return hash;
	hash = hash_stable(hash, layout->bounds, (layout->n_buckets - 1) * sizeof(*layout->bounds));
	return hash_stable(hash, &layout->has_no_sum, sizeof(layout->has_no_sum));
}

static void metric_save(const struct metric *metric, bool is_first, struct series_names *names,
			struct store *out)
{
	uint32_t before = 0;

	store_number(out, identity_of(metric));
	store_number(out, metric->layout.n_buckets);
	for (size_t i = 0; i < metric->n_series; i++) {
		struct series *series = metric->series[i];

		prefetch_series(i + AHEAD < metric->n_series ? metric->series[i + AHEAD] : NULL);
		series->number = series->is_present ? (uint32_t)++names->n_live : 0;
		if (!series->is_present || is_first)
			series->named_at = 0;
		if (!series->is_present)
			continue;
		series_save(series, before, names, out);
		before = series->named_at;
	}
	store_number(out, 0);
}

void metrics_save(struct metric *const *metrics, size_t n, struct series_names *names,
		  struct store *out)
{
	bool is_first = !names->n;

	names->n_live = 0;
	store_number(out, n);
	for (size_t i = 0; i < n; i++)
		metric_save(metrics[i], is_first, names, out);
}

static const char *read_text(struct stored *in, const struct stored *names)
{
	uint64_t at = stored_number(in);
	struct stored there = *names;
	const char *text;

	if (!at)
		return stored_text(in);
	(void)stored_bytes(&there, at);
	text = stored_text(&there);
	in->is_bad |= there.is_bad;
	return text;
}

static void read_attribute(struct stored *in, const struct stored *names,
			   struct attributes *attributes)
{
	const char *name = read_text(in, names), *text;
	uint64_t type = stored_number(in);
	int err;

	if (type == ATTRIBUTE_TEXT) {
		text = read_text(in, names);
		err = attributes_add_lines(attributes, name, text, strlen(text));
	} else if (type == ATTRIBUTE_FLAG) {
		err = attributes_add_flag(attributes, name, stored_number(in));
	} else {
		err = attributes_add_number(attributes, name, (int64_t)stored_number(in));
	}
	in->is_bad |= err || type > ATTRIBUTE_FLAG || !*name ||
		      !utf8_is_printable(name, ATTRIBUTE_TEXT_BYTES);
}

int name_read(struct stored *in, const struct stored *names, struct attributes *ret_attributes,
	      enum overflow *ret_reason, uint64_t *ret_start_ns)
{
	uint64_t reason = stored_number(in), n;

	*ret_start_ns = stored_number(in);
	n = stored_number(in);
	attributes_init(ret_attributes);
	for (uint64_t i = 0; i < n && !in->is_bad; i++)
		read_attribute(in, names, ret_attributes);
	if (in->is_bad || reason > OVERFLOWS)
		return -EINVAL;
	*ret_reason = (enum overflow)reason;
	return 0;
}

/* metric: NULL, if it does not go on. */
static int restore_series(struct metric *metric, uint32_t n_buckets, uint32_t at, struct stored *in,
			  struct restored *restored)
{
	uint64_t bucket[HISTOGRAM_BUCKETS_MAX];
	struct numbers total = { .bucket = bucket };
	struct stored name = restored->names;
	bool is_provisional = stored_number(in);
	struct attributes attributes;
	struct series **place;
	enum overflow reason;
	uint64_t start_ns;
	int err;

	total.sum = stored_number(in);
	stored_numbers(in, bucket, n_buckets);
	if (in->is_bad)
		return -EINVAL;
	(void)stored_bytes(&name, at);
	place = array_add(&restored->series, &restored->n_series, sizeof(*place));
	if (!place)
		return -ENOMEM;
	err = name_read(&name, &restored->names, &attributes, &reason, &start_ns);
	if (!err && metric)
		err = series_restore(metric, &attributes, reason, start_ns, &total, place);
	if (!err && *place)
		(*place)->is_provisional = is_provisional;
	return err;
}

static int restore_metric(struct metric *const *metrics, size_t n, struct stored *in,
			  struct restored *restored)
{
	uint64_t identity = stored_number(in), n_buckets = stored_number(in);
	struct metric *metric = NULL; /* it does not go on */
	uint32_t at = 0, step;
	int err = in->is_bad || n_buckets > HISTOGRAM_BUCKETS_MAX ? -EINVAL : 0;

	for (size_t i = 0; i < n; i++)
		if (identity_of(metrics[i]) == identity &&
		    metrics[i]->layout.n_buckets == n_buckets && !metrics[i]->is_disabled)
			metric = metrics[i];
	while (!err && (step = (uint32_t)stored_number(in)))
		err = restore_series(metric, (uint32_t)n_buckets, at += step, in, restored);
	return in->is_bad ? -EINVAL : err;
}

int metrics_restore(struct metric *const *metrics, size_t n, struct stored *in,
		    struct restored *restored)
{
	uint64_t n_saved = stored_number(in);
	int err = in->is_bad ? -EINVAL : 0;

	for (uint64_t i = 0; i < n_saved && !err; i++)
		err = restore_metric(metrics, n, in, restored);
	return err;
}

void restored_release(struct restored *restored,
		      bool (*is_held)(void *user, const struct series *series), void *user)
{
	size_t n = 0;

	for (size_t i = 0; i < restored->n_series; i++) {
		struct series *series = restored->series[i];

		if (series && is_held && is_held(user, series))
			restored->series[n++] = series;
		else
			series_put(series);
	}
	restored->n_series = n;
	if (n)
		return;
	free(restored->series);
	restored->series = NULL;
}

void rows_save(struct rows *rows, size_t n_metrics, struct store *out)
{
	store_number(out, rows->n_live + 1);
	for (uint32_t row = 0; row < rows->n; row++) {
		if (!rows_is_live(rows, row))
			continue;
		store_bytes(out, rows_key(rows, row), rows->key_bytes);
		store_number(out,
			     (uint64_t)rows_at(rows, row)->stay << 1 |
			     rows_at(rows, row)->is_unwanted);
		store_number(out, rows_at(rows, row)->idle);
		store_numbers(out, rows_previous(rows, row), rows->n_cells);
		for (size_t m = 0; m < n_metrics; m++) {
			const struct series *series = rows_series(rows, row)[m];

			if (row + AHEAD < rows->n)
				prefetch_series(rows_series(rows, row + AHEAD)[m]);
			store_number(out, series ? series->number : 0);
		}
	}
}

static int restore_row(const struct delta *delta, struct rows *rows, uint32_t row,
		       struct stored *in, const struct restored *restored)
{
	uint64_t flags = stored_number(in);
	int err = 0;

	in->is_bad |= flags >> 1 > ROWS_KEPT;
	rows_at(rows, row)->is_unwanted = flags & 1 && !restored->has_other_names;
	rows_at(rows, row)->stay = (uint8_t)(flags >> 1);
	rows_at(rows, row)->idle = (uint32_t)stored_number(in);
	stored_numbers(in, rows_previous(rows, row), rows->n_cells);
	for (uint32_t m = 0; m < delta->n_metrics && !err; m++) {
		uint64_t number = stored_number(in);
		struct series *series = number && number <= restored->n_series ?
					restored->series[number - 1] : NULL;

		if (restored->has_other_names ||
		    (series && series->metric != delta->metrics[m].metric))
			series = NULL; /* it is looked for */
		if (number)
			err = delta_adopt(delta, rows, row, m, series, restored->time_ns);
	}
	return err;
}

int rows_restore(const struct delta *delta, struct rows *rows, struct stored *in,
		 const struct restored *restored)
{
	uint64_t n = stored_number(in);
	int err = 0;

	rows_begin(rows);
	for (uint64_t i = 0; i < n && !err; i++) {
		const void *key = stored_bytes(in, rows->key_bytes);
		uint32_t row = ROWS_OVERFLOW;

		if (!key)
			return -EINVAL;
		err = i ? rows_touch(rows, key, &row) : 0;
		if (!err)
			err = restore_row(delta, rows, row, in, restored);
	}
	return !err && in->is_bad ? -EINVAL : err;
}

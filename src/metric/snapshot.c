/* SPDX-License-Identifier: Apache-2.0 */
#include "metric/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "metric/series.h"
#include "util/array.h"
#include "util/utf8.h"

static enum overflow overflow_of(const struct series *series)
{
	enum overflow reason = 0;

	while (reason < OVERFLOWS && series->metric->overflow[reason] != series)
		reason++;
	return reason;
}

static void series_save(const struct series *series, struct store *out)
{
	const char *texts;
	size_t size;

	store_number(out, overflow_of(series));
	store_number(out, series->is_provisional);
	store_number(out, series->start_ns);
	store_number(out, series->n_attributes);
	for (unsigned int i = 0; i < series->n_attributes; i++) {
		const struct attribute *attribute = &series->attributes[i];

		store_number(out, attribute->type);
		if (attribute->type != ATTRIBUTE_TEXT)
			store_number(out, (uint64_t)attribute->number);
	}
	texts = series_texts(series, &size);
	store_bytes(out, texts, size);
	store_number(out, series->total.sum);
	if (series->total.bucket)
		store_numbers(out, series->total.bucket, series->metric->layout.n_buckets);
}

static void metric_save(const struct metric *metric, struct store *out, uint32_t *number)
{
	size_t n = 0;

	store_text(out, metric->scope);
	store_text(out, metric->name);
	store_text(out, metric->unit);
	store_number(out, metric->kind);
	store_number(out, metric->divisor);
	store_bytes(out, &metric->layout, sizeof(metric->layout));
	for (size_t i = 0; i < metric->n_series; i++)
		n += metric->series[i]->is_present;
	store_number(out, n);
	for (size_t i = 0; i < metric->n_series; i++) {
		struct series *series = metric->series[i];

		series->number = series->is_present ? ++*number : 0;
		if (series->is_present)
			series_save(series, out);
	}
}

void metrics_save(struct metric *const *metrics, size_t n, struct store *out)
{
	uint32_t number = 0;

	store_number(out, n);
	for (size_t i = 0; i < n; i++)
		metric_save(metrics[i], out, &number);
}

/* The metric that goes on; NULL: none. */
static struct metric *find_metric(struct metric *const *metrics, size_t n, const struct metric *saved)
{
	for (size_t i = 0; i < n; i++) {
		struct metric *metric = metrics[i];

		if (!strcmp(metric->scope, saved->scope) && !strcmp(metric->name, saved->name) &&
		    !strcmp(metric->unit, saved->unit) && metric->kind == saved->kind &&
		    metric->divisor == saved->divisor &&
		    !memcmp(&metric->layout, &saved->layout, sizeof(saved->layout)))
			return metric;
	}
	return NULL;
}

static void read_attributes(struct stored *in, struct attributes *attributes)
{
	uint64_t n = stored_number(in), types[ATTRIBUTES_MAX];
	int64_t numbers[ATTRIBUTES_MAX];

	attributes_init(attributes);
	in->is_bad |= n > ATTRIBUTES_MAX;
	for (uint64_t i = 0; i < n && !in->is_bad; i++) {
		types[i] = stored_number(in);
		numbers[i] = types[i] == ATTRIBUTE_TEXT ? 0 : (int64_t)stored_number(in);
	}
	for (uint64_t i = 0; i < n && !in->is_bad; i++) {
		const char *name = stored_text(in), *text;
		int err;

		if (types[i] == ATTRIBUTE_TEXT) {
			text = stored_text(in);
			err = attributes_add_text(attributes, name, text, strlen(text));
		} else if (types[i] == ATTRIBUTE_FLAG) {
			err = attributes_add_flag(attributes, name, numbers[i]);
		} else {
			err = attributes_add_number(attributes, name, numbers[i]);
		}
		in->is_bad |= err || types[i] > ATTRIBUTE_FLAG || !*name || !utf8_is_printable(name, SIZE_MAX);
	}
}

static int restore_series(struct metric *metric, uint32_t n_buckets, struct stored *in, struct restored *restored)
{
	uint64_t reason = stored_number(in), bucket[HISTOGRAM_BUCKETS_MAX], start_ns;
	bool is_provisional = stored_number(in);
	struct numbers total = { .bucket = bucket };
	struct attributes attributes;
	struct series **place;
	int err;

	start_ns = stored_number(in);
	read_attributes(in, &attributes);
	total.sum = stored_number(in);
	stored_numbers(in, bucket, n_buckets);
	for (uint32_t i = 0; i < n_buckets; i++)
		total.count += bucket[i];
	if (in->is_bad || reason > OVERFLOWS)
		return -EINVAL;
	place = array_add(&restored->series, &restored->n_series, sizeof(*place));
	if (!place)
		return -ENOMEM;
	err = metric ? series_restore(metric, &attributes, reason, start_ns, &total, place) : 0;
	if (!err && *place)
		(*place)->is_provisional = is_provisional;
	return err;
}

static int restore_metric(struct metric *const *metrics, size_t n, struct stored *in, struct restored *restored)
{
	struct metric saved = { .scope = stored_text(in) }, *metric;
	const void *layout;
	uint64_t n_series;
	int err = 0;

	saved.name = stored_text(in);
	saved.unit = stored_text(in);
	saved.kind = (enum metric_kind)stored_number(in);
	saved.divisor = stored_number(in);
	layout = stored_bytes(in, sizeof(saved.layout));
	n_series = stored_number(in);
	if (layout)
		memcpy(&saved.layout, layout, sizeof(saved.layout));
	if (saved.kind != METRIC_HISTOGRAM)
		saved.layout.n_buckets = 0;
	if (in->is_bad || saved.layout.n_buckets > HISTOGRAM_BUCKETS_MAX)
		return -EINVAL;
	metric = find_metric(metrics, n, &saved);
	for (uint64_t i = 0; i < n_series && !err; i++)
		err = restore_series(metric, saved.layout.n_buckets, in, restored);
	return err;
}

int metrics_restore(struct metric *const *metrics, size_t n, struct stored *in, struct restored *restored)
{
	uint64_t n_saved = stored_number(in);
	int err = in->is_bad ? -EINVAL : 0;

	for (uint64_t i = 0; i < n_saved && !err; i++)
		err = restore_metric(metrics, n, in, restored);
	return err;
}

void restored_release(struct restored *restored, bool (*is_held)(void *user, const struct series *series), void *user)
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
		store_number(out, (uint64_t)*rows_stay(rows, row) << 1 | *rows_is_unwanted(rows, row));
		store_number(out, *rows_idle(rows, row));
		store_numbers(out, rows_previous(rows, row), rows->n_cells);
		for (size_t m = 0; m < n_metrics; m++) {
			const struct series *series = rows_series(rows, row)[m];

			store_number(out, series ? series->number : 0);
		}
	}
}

/* Which series a row has, unless it is to look for it (ret_series NULL). False: it had none. */
static bool find_series(const struct restored *restored, const struct metric *metric, uint64_t number,
			struct series **ret_series)
{
	struct series *series = number && number <= restored->n_series ? restored->series[number - 1] : NULL;

	*ret_series = !restored->has_other_names && series && series->metric == metric ? series : NULL;
	return number != 0;
}

static int restore_row(const struct delta *delta, struct rows *rows, uint32_t row, struct stored *in,
		       const struct restored *restored)
{
	uint64_t flags = stored_number(in);
	int err = 0;

	in->is_bad |= flags >> 1 > ROWS_KEPT;
	*rows_is_unwanted(rows, row) = flags & 1 && !restored->has_other_names;
	*rows_stay(rows, row) = (uint8_t)(flags >> 1);
	*rows_idle(rows, row) = (uint32_t)stored_number(in);
	stored_numbers(in, rows_previous(rows, row), rows->n_cells);
	for (uint32_t m = 0; m < delta->n_metrics && !err; m++) {
		struct series *series;

		if (find_series(restored, delta->metrics[m].metric, stored_number(in), &series) && !in->is_bad)
			err = delta_adopt(delta, rows, row, m, series, restored->time_ns);
	}
	return err;
}

int rows_restore(const struct delta *delta, struct rows *rows, struct stored *in, const struct restored *restored)
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
	return err ? err : in->is_bad ? -EINVAL : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines that bpftrace -f json prints, so that their readers can read ours: one object a map,
 *
 *     {"type": "map", "data": {"@bpfpush.syscalls": {"read,cron.service": 5}}}
 *     {"type": "hist", "data": {"@NAME": {"KEY": [{"min": 2, "max": 3, "count": 1}, …]}}}
 *     {"type": "stats", "data": {"@NAME.stats": {"KEY": {"count": 1, "average": 3, "total": 3}}}}
 *
 * A metric is a map, the values of a series' attributes, joined by commas in the order of their
 * names, its key; an attribute that other series of the metric have and this one has not is empty.
 * A map without keys holds its number at once. As with bpftrace numbers are totals and whole, as
 * the kernel counted them (nanoseconds where the metric's unit is s); min and max are both inside a
 * bucket, the last bucket has no max; a histogram without a sum has no stats; entries are sorted by
 * value, empty buckets at both ends left out.
 */
#include <errno.h>
#include <inttypes.h>

#include "metric/bounds.h"
#include "metric/decimal.h"
#include "export/text/output.h"
#include "util/array.h"
#include "view/columns.h"

/* One value of a map: the text after its key. */
typedef void append_fn(struct buf *out, const struct series *series);

static void append_number(struct buf *out, const struct series *series)
{
	decimal_quotient(out, series->total.sum, 1, series->metric->kind == METRIC_GAUGE);
}

static void append_stats(struct buf *out, const struct series *series)
{
	const struct numbers *total = &series->total;

	buf_printf(out, "{\"count\": %" PRIu64 ", \"average\": %" PRIu64 ", \"total\": %" PRIu64 "}", total->count,
		   total->count ? total->sum / total->count : 0, total->sum);
}

static void append_hist(struct buf *out, const struct series *series)
{
	const struct metric *metric = series->metric;
	const uint64_t *bucket = series->total.bucket;
	uint32_t first = 0, end = metric->layout.n_buckets;

	bounds_trim(bucket, &first, &end);
	buf_append_byte(out, '[');
	for (uint32_t i = first; i < end; i++) {
		uint64_t least = i ? bounds_upper_raw(metric, i - 1) + 1 : 0;
		uint64_t upper = bounds_upper_raw(metric, i);

		buf_printf(out, "%s{\"min\": %" PRIu64, i > first ? ", " : "", least);
		if (i + 1 < metric->layout.n_buckets)
			buf_printf(out, ", \"max\": %" PRIu64, upper);
		buf_printf(out, ", \"count\": %" PRIu64 "}", bucket[i]);
	}
	buf_append_byte(out, ']');
}

static void append_key(struct buf *out, const struct columns *columns, const struct series *series)
{
	_cleanup_(buf_done) struct buf key = BUF_INIT;

	for (size_t i = 0; i < columns->n; i++) {
		const struct attribute *attribute =
			array_find(series->attributes, series->n_attributes, columns->names[i]);

		if (i)
			buf_append_byte(&key, ',');
		if (attribute)
			attribute_append(&key, attribute);
	}
	buf_append_json(out, buf_text(&key));
	if (buf_error(&key))
		out->error = buf_error(&key);
}

/* Equal values in any order, but always in the same one. */
static int by_value(const void *left_, const void *right_)
{
	const struct series *left = *(struct series *const *)left_,
		*right = *(struct series *const *)right_;
	const struct numbers *a = &left->total, *b = &right->total;

	if (a->count != b->count)
		return a->count < b->count ? -1 : 1;
	if (a->sum != b->sum)
		return a->sum < b->sum ? -1 : 1;
	return left->hash < right->hash ? -1 : left->hash > right->hash;
}

static void append_map(struct buf *out, const struct metric *metric, const char *type,
		       const char *suffix, append_fn *append)
{
	size_t n;
	_cleanup_(freep) struct series **sorted = columns_sort(metric, by_value, &n);
	_cleanup_(columns_done) struct columns columns = { 0 };
	_cleanup_(buf_done) struct buf name = BUF_INIT;

	if (!sorted || columns_add(&columns, metric, columns_by_name))
		out->error = -ENOMEM;
	if (!n)
		return;
	buf_printf(&name, "@%s%s", metric->name, suffix);
	buf_printf(out, "{\"type\": \"%s\", \"data\": {", type);
	buf_append_json(out, buf_text(&name));
	buf_append_text(out, columns.n ? ": {" : ": ");
	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_append_text(out, ", ");
		if (columns.n) {
			append_key(out, &columns, sorted[i]);
			buf_append_text(out, ": ");
		}
		append(out, sorted[i]);
	}
	buf_append_text(out, columns.n ? "}}}\n" : "}}\n");
}

static int bpftrace_json_push(struct exporter *exporter, const struct batch *batch)
{
	struct output *output = exporter->state;
	struct metric *metric;

	if (!output_is_ready(exporter, output_count(batch)))
		return 0;
	batch_for_each_metric(metric, batch) {
		if (metric->kind != METRIC_HISTOGRAM) {
			append_map(&output->out, metric, "map", "", append_number);
			continue;
		}
		append_map(&output->out, metric, "hist", "", append_hist);
		if (!metric->layout.has_no_sum)
			append_map(&output->out, metric, "stats", ".stats", append_stats);
	}
	return output_flush(exporter, output_count(batch));
}

const struct exporter_ops bpftrace_json_exporter = {
	.type = "bpftrace-json",
	.settings = &output_settings,
	OUTPUT_OPS,
	.push = bpftrace_json_push,
};

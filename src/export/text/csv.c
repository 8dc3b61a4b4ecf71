/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comma-separated values (RFC 4180) for spreadsheets and data frames: a line a point, after a line
 * with the names of the columns, which comes again only when these change.
 *
 *     time,collector,name,kind,unit,value,delta,rate,count,sum,p50,p90,p99,max,ATTRIBUTE,…
 *
 * value is the total of a sum, or a gauge; of a histogram count and sum stand there instead, and
 * delta and rate are of the count. Numbers are exact, but those of rates and estimates have nine
 * digits. What a point lacks is empty.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "export/text/output.h"
#include "metric/bounds.h"
#include "metric/decimal.h"
#include "util/array.h"
#include "util/duration.h"
#include "view/columns.h"

/* From value to max. */
static void append_numbers(struct buf *out, const struct batch *batch, const struct series *series)
{
	const struct metric *metric = series->metric;
	const struct numbers *total = &series->total;
	bool is_gauge = metric->kind == METRIC_GAUGE,
		is_histogram = metric->kind == METRIC_HISTOGRAM;
	uint64_t grown = is_histogram ? series->delta.count : series->delta.sum,
		divisor = metric->divisor;
	double seconds = (double)(batch->time_ns - batch->previous_ns) / (double)NS_PER_S;
	uint32_t first = 0, end = metric->layout.n_buckets;

	buf_append_byte(out, ',');
	if (!is_histogram)
		decimal_quotient(out, total->sum, divisor, is_gauge);
	buf_append_byte(out, ',');
	if (!is_gauge) {
		decimal_quotient(out, grown, is_histogram ? 1 : divisor, false);
		buf_printf(out, ",%.9g", (double)grown / (double)(is_histogram ? 1 : divisor) / seconds);
	}
	if (!is_histogram || !total->count) {
		buf_append_text(out, is_gauge ? ",,,,,,," : ",,,,,,");
		return;
	}
	buf_printf(out, ",%" PRIu64 ",", total->count);
	if (!metric->layout.has_no_sum)
		decimal_quotient(out, total->sum, divisor, false);
	bounds_trim(total->bucket, &first, &end);
	buf_printf(out, ",%.9g,%.9g,%.9g,%.9g", bounds_quantile(metric, total, 0.5),
		   bounds_quantile(metric, total, 0.9),
		   bounds_quantile(metric, total, 0.99), bounds_upper(metric, end - 1));
}

static void append_point(struct buf *out, const struct batch *batch, const char *time,
			 const struct columns *columns, const struct series *series)
{
	const struct metric *metric = series->metric;
	const char *const texts[] = { metric->scope, metric->name, metric_kinds[metric->kind],
				      metric->unit };

	buf_append_text(out, time);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		buf_append_byte(out, ',');
		buf_append_csv(out, texts[i]);
	}
	append_numbers(out, batch, series);
	for (size_t i = 0; i < columns->n; i++) {
		const struct attribute *attribute =
			array_find(series->attributes, series->n_attributes, columns->names[i]);

		buf_append_byte(out, ',');
		if (attribute && attribute->type == ATTRIBUTE_TEXT)
			buf_append_csv(out, attribute->text);
		else if (attribute)
			attribute_append(out, attribute);
	}
	buf_append_text(out, "\r\n");
}

/* Unless it is the last one that was written. */
static void append_head(struct output *output, const struct columns *columns)
{
	struct buf *out = &output->out, *head = &output->head;
	size_t start = out->size;

	buf_append_text(out, "time,collector,name,kind,unit,value,delta,rate,count,sum,p50,p90,p99,max");
	for (size_t i = 0; i < columns->n; i++) {
		buf_append_byte(out, ',');
		buf_append_csv(out, columns->names[i]);
	}
	buf_append_text(out, "\r\n");
	if (head->size && head->size == out->size - start &&
	    !memcmp(head->data, out->data + start, head->size)) {
		out->size = start;
		return;
	}
	buf_reset(head);
	buf_append(head, out->data + start, out->size - start);
}

static int csv_push(struct exporter *exporter, const struct batch *batch)
{
	_cleanup_(columns_done) struct columns columns = { 0 };
	struct output *output = exporter->state;
	time_t now = (time_t)(batch->time_ns / NS_PER_S);
	struct metric *metric;
	struct series *series;
	char text[64] = "";
	struct tm tm;
	int err;

	if (!output_is_ready(exporter, output_count(batch)))
		return 0;
	if (gmtime_r(&now, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	batch_for_each_metric(metric, batch)
		if (columns_add(&columns, metric, columns_by_name))
			output->out.error = -ENOMEM;
	append_head(output, &columns);
	batch_for_each_metric(metric, batch)
		metric_for_each_series(series, metric)
			append_point(&output->out, batch, text, &columns, series);
	err = output_flush(exporter, output_count(batch));
	if (err)
		buf_reset(&output->head);
	return err;
}

const struct exporter_ops csv_exporter = {
	.type = "csv",
	.settings = &output_settings,
	OUTPUT_OPS,
	.push = csv_push,
};

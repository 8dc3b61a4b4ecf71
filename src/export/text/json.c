/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One JSON object a line, one line a point: the contract that scripts rely on.
 *
 *     {"collector":"syscalls","name":"bpfpush.syscalls","kind":"sum","unit":"{call}",
 *      "attributes":{"bpfpush.syscall.name":"read"},"start_time_ns":1,"time_ns":2,"total":5,"delta":2}
 *
 * A gauge has "value" in place of "total" and "delta", and no start. For a histogram both are
 * {"count":3,"sum":0.5,"bounds":[0,1,2],"counts":[0,1,1,1]}, counts[i] for values up to bounds[i],
 * the last one for all above; "sum" is absent if it is not known. Numbers are exact: no digit is
 * lost to a double.
 *
 * With signals = events, a line is an event, or a span, whose time_ns is its start:
 *
 *     {"collector":"exec","event":"process.exec","severity":"INFO","time_ns":1,"attributes":{…}}
 */
#include <errno.h>
#include <inttypes.h>

#include "metric/bounds.h"
#include "metric/decimal.h"
#include "export/text/output.h"
#include "view/event-lines.h"

struct json_options {
	struct output_options output;
	int signal;
};

static const char *const signals[] = { "metrics", "events", NULL };

static const struct setting_row rows[] = {
	SETTING(struct json_options, output.path, "path", SETTING_TEXT, "-"),
	/* One of them: each writes whole lines, but not both at the same time. */
	SETTING(struct json_options, signal, "signals", SETTING_CHOICE, "metrics", .choices = signals),
};
static const struct setting_table json_settings = SETTING_TABLE(rows, struct json_options);

static enum signals json_signals(const void *options)
{
	return ((const struct json_options *)options)->signal ? SIGNAL_EVENTS | SIGNAL_TRACES :
								SIGNAL_METRICS;
}

/* The part of a line that never changes, up to the times. It is kept with the series. */
static void append_head(struct buf *out, struct series *series)
{
	static const char owner;
	struct series_cache *cache = series_cache(series, &owner);
	const struct metric *metric = series->metric;

	if (!cache) {
		_cleanup_(buf_done) struct buf head = BUF_INIT;

		buf_begin_object(&head, "collector", metric->scope, "name", metric->name, "kind",
				 metric_kinds[metric->kind],
				 "unit", metric->unit);
		buf_append_text(&head, "\"attributes\":{");
		for (unsigned int i = 0; i < series->n_attributes; i++) {
			buf_append_text(&head, i ? "," : "");
			attribute_append_json(&head, &series->attributes[i]);
		}
		buf_append_byte(&head, '}');
		if (!buf_error(&head))
			cache = series_cache_new(series, &owner, head.data, head.size);
		if (!cache) {
			out->error = -ENOMEM;
			return;
		}
	}
	buf_append(out, cache->data, cache->size);
}

static void append_bounds(struct buf *out, const struct metric *metric)
{
	char text[DECIMAL_DOUBLE_BYTES];

	buf_append_text(out, ",\"bounds\":[");
	for (uint32_t i = 0; i + 1 < metric->layout.n_buckets; i++) {
		buf_append_text(out, i ? "," : "");
		if (metric->layout.bounds)
			decimal_quotient(out, metric->layout.bounds[i].upper,
					 metric->divisor, false);
		else
			buf_append_text(out, decimal_print_double(text, bounds_upper(metric, i)));
	}
	buf_append_byte(out, ']');
}

static void append_numbers(struct buf *out, const struct metric *metric,
			   const struct numbers *numbers, const struct buf *bounds)
{
	if (metric->kind != METRIC_HISTOGRAM) {
		decimal_quotient(out, numbers->sum, metric->divisor, metric->kind == METRIC_GAUGE);
		return;
	}
	buf_printf(out, "{\"count\":%" PRIu64, numbers->count);
	if (!metric->layout.has_no_sum) {
		buf_append_text(out, ",\"sum\":");
		decimal_quotient(out, numbers->sum, metric->divisor, false);
	}
	buf_append(out, bounds->data, bounds->size);
	buf_append_text(out, ",\"counts\":[");
	for (uint32_t i = 0; i < metric->layout.n_buckets; i++)
		buf_printf(out, "%s%" PRIu64, i ? "," : "", numbers->bucket[i]);
	buf_append_text(out, "]}");
}

static void append_point(struct buf *out, const struct batch *batch, struct series *series,
			 const struct buf *bounds)
{
	const struct metric *metric = series->metric;

	append_head(out, series);
	if (metric->kind == METRIC_GAUGE)
		buf_printf(out, ",\"time_ns\":%" PRIu64 ",\"value\":", batch->time_ns);
	else
		buf_printf(out, ",\"start_time_ns\":%" PRIu64 ",\"time_ns\":%" PRIu64 ",\"total\":", series->start_ns,
			   batch->time_ns);
	append_numbers(out, metric, &series->total, bounds);
	if (metric->kind != METRIC_GAUGE) {
		buf_append_text(out, ",\"delta\":");
		append_numbers(out, metric, &series->delta, bounds);
	}
	buf_append_text(out, "}\n");
}

static int json_push(struct exporter *exporter, const struct batch *batch)
{
	struct output *output = exporter->state;
	_cleanup_(buf_done) struct buf bounds = BUF_INIT;
	struct metric *metric;
	struct series *series;

	if (!output_is_ready(exporter, output_count(batch)))
		return 0;
	batch_for_each_metric(metric, batch) {
		buf_reset(&bounds);
		if (metric->kind == METRIC_HISTOGRAM)
			append_bounds(&bounds, metric);
		metric_for_each_series(series, metric)
			append_point(&output->out, batch, series, &bounds);
	}
	if (buf_error(&bounds))
		output->out.error = buf_error(&bounds);
	return output_flush(exporter, output_count(batch));
}

#define LINES_BYTES (1 << 20)

/* Events, one after another, until the turn ends. */
struct json_events {
	struct output output;
	struct buf lines;
	size_t n;
};

static void events_take(struct exporter *exporter, const struct event *event)
{
	struct json_events *events = exporter->state;

	event_append_json(event, &events->lines);
	events->n++;
}

/* A reader that is slow is not waited for, as long as that does not take much memory. */
static void events_flush(struct exporter *exporter)
{
	struct json_events *events = exporter->state;
	struct buf *out = &events->output.out;

	if (!output_is_idle(exporter) && events->lines.size < LINES_BYTES)
		return;
	if (events->n && output_is_ready(exporter, events->n)) {
		buf_append(out, events->lines.data, events->lines.size);
		out->error = out->error ?: buf_error(&events->lines);
		(void)output_flush(exporter, events->n);
	}
	events->n = 0;
	buf_reset(&events->lines);
}

static int events_push(struct exporter *exporter, const struct batch *batch)
{
	events_flush(exporter);
	return 0;
}

static void events_close(struct exporter *exporter)
{
	struct json_events *events = exporter->state;

	buf_append(&events->output.out, events->lines.data, events->lines.size);
	buf_done(&events->lines);
	output_close(exporter);
}

static struct exporter_waiting events_waiting(const struct exporter *exporter)
{
	const struct json_events *events = exporter->state;
	struct exporter_waiting waiting = output_waiting(exporter);

	waiting.n_points += events->n;
	waiting.n_bytes += events->lines.size;
	return waiting;
}

static const struct exporter_ops json_events_exporter = {
	.type = "json",
	.settings = &json_settings,
	.check = output_options_check,
	.state_bytes = sizeof(struct json_events),
	.open = output_open,
	.waiting = events_waiting,
	.close = events_close,
	.push = events_push,
	.takes = SIGNAL_EVENTS | SIGNAL_TRACES,
	.take = events_take,
	.flush = events_flush,
};

const struct exporter_ops json_exporter = {
	.type = "json",
	.settings = &json_settings,
	OUTPUT_OPS,
	.signals = json_signals,
	.others = { &json_events_exporter },
	.push = json_push,
};

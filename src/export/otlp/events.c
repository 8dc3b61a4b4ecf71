/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events as log records, and spans. They gather in one body, which is sent a moment after its first
 * event, or when it is full. A request of them is sent as those of deltas are, but never taken
 * apart: what the receiver refuses is lost, and counted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/otlp/internal.h"
#include "export/otlp/message/value.h"
#include "metric/event.h"
#include "otlp-logs.pb-c.h"
#include "otlp-traces.pb-c.h"
#include "util/duration.h"

#define GATHER_NS (1 * NS_PER_S)

enum { FIELD_LOG_ATTRIBUTES = 6, FIELD_SPAN_ATTRIBUTES = 9, FIELD_RESOURCE_ATTRIBUTES = 1 };
enum { KIND_INTERNAL = 1, STATUS_ERROR = 2 };

struct records {
	struct otlp_writer writer;
	struct otlp_place place;
	struct buf resource, scope, record, attributes; /* what place and the writer are given */
	struct buf message;
	const char *scope_name; /* in scope; NULL: none yet */
	uint64_t time_ns;	/* of the last event */
	struct timer timer;
	bool is_armed;
};

static int put_body(void *user, const uint8_t *data, size_t size, size_t n_events)
{
	struct otlp *otlp = user;

	queue_begin_window(&otlp->exporter->queue, otlp->records->time_ns);
	return otlp_enqueue(otlp, data, size, n_events);
}

static void end_body(struct otlp *otlp)
{
	timer_disarm(&otlp->records->timer);
	otlp->records->is_armed = false;
	otlp_writer_end(&otlp->records->writer);
	otlp_give_room_back(&otlp->encoding);
}

/* What waits for a receiver is saved, because it is not in the ring any more. */
static void on_gathered(void *user)
{
	struct otlp *otlp = user;

	end_body(otlp);
	if (otlp->exporter->queue.n_items > 1)
		exporter_save_now(otlp->exporter);
	otlp_send_next(otlp);
}

static void enter_scope(struct otlp *otlp, const char *name)
{
	struct records *records = otlp->records;

	if (records->scope_name == name)
		return;
	otlp_writer_leave(&records->writer, OTLP_SCOPE_METRICS);
	buf_reset(&records->scope);
	records->place.scope = value_pack_scope(&records->scope, name,
						otlp->exporter->context->version);
	records->scope_name = buf_error(&records->scope) ? NULL : name;
}

/* Borrowed; an id that is not known is empty. */
static ProtobufCBinaryData pack_id(const uint8_t *id, size_t size)
{
	size_t n_zero = 0;

	while (n_zero < size && !id[n_zero])
		n_zero++;
	return (ProtobufCBinaryData){ n_zero == size ? 0 : size, (uint8_t *)id };
}

#define PACK_ID(id) pack_id(id, sizeof(id))

/* Many receivers show nothing but the body, and some do not know the event's name. */
static struct bytes pack_log(struct records *records, const struct event *event)
{
	Otlp__LogRecord head = OTLP__LOG_RECORD__INIT;
	Otlp__AnyValue body = OTLP__ANY_VALUE__INIT;

	buf_reset(&records->message);
	event_append_message(event, &records->message);
	body.value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
	body.string_value = (char *)buf_text(&records->message);
	head.body = &body;
	head.time_unix_nano = event->time_ns;
	head.observed_time_unix_nano = event->time_ns; /* by the program */
	head.severity_number = event->kind->severity;
	head.severity_text = (char *)severity_name(event->kind->severity);
	head.event_name = (char *)event->kind->name;
	head.trace_id = PACK_ID(event->trace.trace_id);
	if (head.trace_id.len)
		head.span_id = PACK_ID(event->trace.span_id);
	return value_pack(&records->record, &head.base);
}

static bool has_error(const struct event *event)
{
	for (unsigned int i = 0; i < event->n_own; i++)
		if (!strcmp(event->attributes.items[i].name, "error.type"))
			return true;
	return false;
}

static struct bytes pack_span(struct buf *out, const struct event *event)
{
	Otlp__Span head = OTLP__SPAN__INIT;
	Otlp__SpanStatus status = OTLP__SPAN_STATUS__INIT;

	head.trace_id = PACK_ID(event->trace.trace_id);
	head.span_id = PACK_ID(event->trace.span_id);
	head.parent_span_id = PACK_ID(event->trace.parent_span_id);
	head.name = (char *)(event->span_name ?: event->kind->name);
	head.kind = KIND_INTERNAL;
	head.start_time_unix_nano = event->time_ns;
	head.end_time_unix_nano = event->time_ns + event->duration_ns;
	if (head.end_time_unix_nano < event->time_ns)
		head.end_time_unix_nano = UINT64_MAX;
	status.code = STATUS_ERROR;
	head.status = has_error(event) ? &status : NULL;
	return value_pack(out, &head.base);
}

static int pack_record(struct records *records, const struct event *event, struct bytes *ret_head)
{
	bool is_span = event->kind->is_span;
	int err;

	buf_reset(&records->record);
	buf_reset(&records->attributes);
	*ret_head = is_span ? pack_span(&records->record, event) :
			      pack_log(records, event);
	value_append_attributes(&records->attributes,
				is_span ? FIELD_SPAN_ATTRIBUTES : FIELD_LOG_ATTRIBUTES,
				event->attributes.items, event->n_own);
	err = buf_error(&records->record) ?: buf_error(&records->attributes);
	return err ?: buf_error(&records->message);
}

static void events_take(struct exporter *exporter, const struct event *event)
{
	struct otlp *otlp = exporter->state;
	struct records *records = otlp->records;
	size_t n_too_large = records->writer.n_too_large;
	struct bytes head;

	exporter_account(exporter, POINTS_PUSHED, 1);
	enter_scope(otlp, event->kind->scope);
	if (pack_record(records, event, &head) || !records->scope_name) {
		exporter_drop_no_memory(exporter, 1);
		return;
	}
	records->time_ns = event->time_ns;
	otlp_writer_put(&records->writer, &records->place, head,
			(struct bytes){ records->attributes.data, records->attributes.size });
	exporter_drop(exporter, POINTS_TOO_LARGE, records->writer.n_too_large - n_too_large,
		      "points are dropped, because each alone is longer than max_request_size; raise it");
}

static void events_flush(struct exporter *exporter)
{
	struct otlp *otlp = exporter->state;
	struct records *records = otlp->records;

	if (records->writer.n_points && !records->is_armed)
		records->is_armed = timer_arm(&records->timer, GATHER_NS) >= 0;
	otlp_send_next(otlp);
}

/* Events that wait for more of them go now. */
static int events_push(struct exporter *exporter, const struct batch *batch)
{
	end_body(exporter->state);
	return 0;
}

static struct exporter_waiting events_waiting(const struct exporter *exporter)
{
	const struct otlp *otlp = exporter->state;
	const struct queue *queue = &exporter->queue;
	const struct otlp_writer *writer = &otlp->records->writer;

	return (struct exporter_waiting){ queue->n_points + exporter->n_doubtful + writer->n_points,
					  queue->size_bytes, queue->n_items > queue->n_held };
}

static void events_close(struct exporter *exporter)
{
	struct otlp *otlp = exporter->state;
	struct records *records = otlp->records;

	if (records) {
		timer_done(&records->timer);
		buf_done(&records->resource);
		buf_done(&records->scope);
		buf_done(&records->record);
		buf_done(&records->attributes);
		buf_done(&records->message);
	}
	free(records);
	otlp_close(exporter);
}

static int events_open(struct exporter *exporter, const void *options)
{
	struct otlp *otlp = exporter->state;
	int err = otlp_open_signal(exporter, options, exporter->ops->takes);
	struct records *records;

	if (err)
		return err;
	records = otlp->records = calloc(1, sizeof(*records));
	if (!records) {
		otlp_close(exporter);
		return -ENOMEM;
	}
	records->writer = (struct otlp_writer){ otlp->encoding.room, otlp->encoding.limit_bytes,
						put_body, otlp, otlp->encoding.limit_points };
	records->timer = (struct timer){ exporter->context->event, on_gathered, otlp, NULL };
	value_append_attributes(&records->resource, FIELD_RESOURCE_ATTRIBUTES,
				otlp->encoding.resource, otlp->encoding.n_resource);
	records->place.resource = (struct bytes){ records->resource.data, records->resource.size };
	err = buf_error(&records->resource);
	if (err)
		events_close(exporter);
	return err;
}

#define EXPORTER(word, signals)                                  \
	{                                                        \
		.type = "otlp", .component = word, .takes = signals, \
		.settings = &otlp_settings,                      \
		.state_bytes = sizeof(struct otlp),              \
		.open = events_open, .push = events_push,        \
		.probe = otlp_probe, .take = events_take,        \
		.flush = events_flush, .send = otlp_send,        \
		.waiting = events_waiting, .close = events_close \
	}

const struct exporter_ops otlp_events_exporter =
	EXPORTER("otlp_http_log_exporter", SIGNAL_EVENTS);
const struct exporter_ops otlp_traces_exporter =
	EXPORTER("otlp_http_span_exporter", SIGNAL_TRACES);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One thing that happened, with its names: an event, or a span, which also took some time and has
 * its place in a trace.
 */

#include "metric/attribute.h"

/* As OpenTelemetry numbers them: the first of each four. */
enum severity { SEVERITY_TRACE = 1,
		SEVERITY_DEBUG = 5,
		SEVERITY_INFO = 9,
		SEVERITY_WARN = 13,
		SEVERITY_ERROR = 17,
		SEVERITY_FATAL = 21 };

/* What all events of one name have. */
struct event_kind {
	const char *scope; /* the collector */
	const char *name;
	const char *description;
	enum severity severity;
	bool is_span;
};

/* As OpenTelemetry and W3C have them; zeroes: unknown. */
struct trace_context {
	uint8_t trace_id[16];
	uint8_t span_id[8];
	uint8_t parent_span_id[8]; /* of a span */
};

/* The attributes that say of a span, or of the trace of an event, what else is in fields. */
#define EVENT_TRACE_ID	     "trace_id"
#define EVENT_SPAN_ID	     "span_id"
#define EVENT_PARENT_SPAN_ID "parent_span_id"
#define EVENT_SPAN_NAME	     "span_name"
#define EVENT_DURATION	     "duration"

/* Events that are not there, by the reason. */
struct event_losses {
	uint64_t limited; /* more than the collector's rate_limit */
	uint64_t full;	  /* the ring had no room */
	uint64_t damaged; /* the record is too short */
};

/* Valid only while a sink takes it. */
struct event {
	const struct event_kind *kind;
	uint64_t time_ns; /* Unix time; of a span, when it began */
	uint64_t duration_ns; /* of a span */
	struct trace_context trace;
	const char *span_name; /* in its attributes; NULL: the kind's */
	/*
	 * In the order of the record's members. Those after the first n_own have what the fields
	 * above have, for whoever only shows attributes.
	 */
	struct attributes attributes;
	unsigned int n_own;
};

struct event_sink {
	/* False: it will not want any other event whose attributes of the owner are the same. */
	bool (*take)(void *user, const struct event *event);
	/* No more for now: what was taken may be written. NULL: the sink does not care. */
	void (*end)(void *user);
	void *user;
};

/* Of a message; attributes that do not fit, or have several lines, are left out. */
#define EVENT_MESSAGE_BYTES 256
/* Appends "process.exec systemd.unit.name=web.service process.pid=12": one line for people. */
void event_append_message(const struct event *event, struct buf *out);
/* "INFO": the short name that OpenTelemetry gives the number. */
const char *severity_name(enum severity severity);
/* Of a lower-case name; info where it is NULL. */
enum severity severity_named(const char *name);

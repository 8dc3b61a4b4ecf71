/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One thing that happened, with its names. */

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
};

/* Events that are not there, by the reason. */
struct event_losses {
	uint64_t limited; /* more than the collector's rate_limit */
	uint64_t full;	  /* the ring had no room */
	uint64_t damaged; /* the record is too short */
};

/* Valid only while a sink takes it. */
struct event {
	const struct event_kind *kind;
	uint64_t time_ns; /* Unix time */
	struct attributes attributes; /* in the order of the record's members */
};

struct event_sink {
	void (*take)(void *user, const struct event *event);
	/* No more for now: what was taken may be written. NULL: the sink does not care. */
	void (*end)(void *user);
	void *user;
};

/* "INFO": the short name that OpenTelemetry gives the number. */
const char *severity_name(enum severity severity);
/* Of a lower-case name; info where it is NULL. */
enum severity severity_named(const char *name);

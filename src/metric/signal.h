/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The signals of OpenTelemetry. */

#include "metric/event.h"

/* A set. */
enum signals { SIGNAL_METRICS = 1, SIGNAL_EVENTS = 2, SIGNAL_TRACES = 4 };
#define SIGNALS 3 /* how many there are */
#define for_each_signal(signal) \
	for (enum signals signal = SIGNAL_METRICS; signal < 1 << SIGNALS; signal <<= 1)

/* What settings call it, and what one of its things is called. */
struct signal_words {
	const char *name, *item; /* "events"; "event" */
};

/* Of the first of the set; of none, as of metrics. */
const struct signal_words *signal_words(enum signals signals);

/* The same as an index, from 0 on. */
static inline size_t signal_index(enum signals signals)
{
	return signals ? (size_t)__builtin_ctz(signals) : 0;
}

static inline enum signals event_signal(const struct event_kind *kind)
{
	return kind->is_span ? SIGNAL_TRACES : SIGNAL_EVENTS;
}

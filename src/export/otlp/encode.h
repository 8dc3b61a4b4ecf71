/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A batch as the bodies of OTLP requests (ExportMetricsServiceRequest in protobuf). Pure.
 *
 * From the OTLP data model: a gauge has no start. An updowncounter is a cumulative sum that may
 * fall, whatever the temporality, and has no point of 0. All delta points of a batch begin at its
 * previous_ns, and series that did not grow have none. Cumulative points begin at their series'
 * start; a new series may have a point of 0 there first. A series that has ended has a last point
 * without a value, unless it is delta. Whole numbers (divisor 1) are integers, all others are
 * doubles. All points of an explicit histogram have the same bounds; an exponential one has no
 * empty buckets at its ends. A metric with bounds of its own is always explicit.
 */

#include "export/otlp/body.h"
#include "export/otlp/form.h"
#include "metric/metric.h"

#define OTLP_FIELDS 16 /* which attributes may have in a message */

struct otlp_encoding {
	enum otlp_temporality temporality;
	enum otlp_histogram histogram;
	bool has_zero_points;
	/* of one body; a larger batch is split between points. limit_points: 0: none */
	uint64_t limit_bytes, limit_points;
	uint8_t *room;	      /* limit_bytes to build bodies in; touched as far as a body needs */
	const struct attribute *resource;
	unsigned int n_resource;
	const char *version; /* of the agent, and so of every scope */
	/*
	 * This attribute repeats the name of a series' owner, unless the series has one of that
	 * name. NULL: none.
	 */
	char *owner_attribute;
	char owners[OTLP_FIELDS]; /* their addresses are those of caches with it (metric.h) */
};

/* The fate of a batch's points. Every point that is neither too large nor failed was in a body. */
struct otlp_encoded {
	size_t n_points;    /* in all, those of 0 and those without a value included */
	size_t n_too_large; /* that do not fit a request of limit_bytes even alone */
	size_t n_failed;    /* for which there was no memory */
};

/*
 * Calls body for each request, in order. Keeps the encoded attributes of a series in its cache.
 * After an error it goes on with the next point; the result is the first error: -ENOMEM or what
 * body returned.
 */
int otlp_encode(const struct otlp_encoding *encoding, const struct batch *batch, otlp_body_fn *body,
		void *user, struct otlp_encoded *ret_encoded);

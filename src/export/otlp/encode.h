/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A batch as bodies of OTLP requests (ExportMetricsServiceRequest in protobuf). Pure.
 *
 * From the OTLP data model: a gauge has no start; all delta points of a batch begin at its previous_ns,
 * and those that did not grow are left out; cumulative points begin at their series' start. Whole
 * numbers (divisor 1) are integers, all others doubles. The bounds of an explicit histogram are the same
 * for all points of a metric; an exponential one is trimmed of empty buckets at both ends. No envelope
 * is empty: where there is nothing to say there is no body.
 */

#include "metric/metric.h"

enum otlp_temporality { OTLP_CUMULATIVE, OTLP_DELTA };
enum otlp_histogram { OTLP_EXPLICIT, OTLP_EXPONENTIAL };

struct otlp_encoding {
	enum otlp_temporality temporality;
	enum otlp_histogram histogram;
	size_t limit_bytes; /* of one body; what is larger is split between points */
	uint8_t *room;	    /* limit_bytes to build bodies in; touched as far as a body needs */
	const struct attribute *resource;
	unsigned int n_resource;
	const char *version; /* of the agent, and so of every scope */
};

/* One body, valid during the call. 0 or -errno. */
typedef int otlp_body_fn(void *user, const uint8_t *data, size_t size, size_t n_points);

/* What became of the points of a batch; the rest of n_points went to body. */
struct otlp_encoded {
	size_t n_points;    /* that this encoding has; delta leaves out those that did not grow */
	size_t n_too_large; /* no request of limit_bytes can hold them */
	size_t n_failed;    /* for want of memory */
};

/*
 * Calls body for each request, in order. A series' attributes are encoded once and kept in its cache. The first
 * error, -ENOMEM or what body returned; the rest is encoded all the same.
 */
int otlp_encode(const struct otlp_encoding *encoding, const struct batch *batch, otlp_body_fn *body,
		void *user, struct otlp_encoded *ret_encoded);

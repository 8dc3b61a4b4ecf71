/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The body of an OTLP request (ExportMetricsServiceRequest in protobuf): written point by point,
 * and taken apart into its points again. Pure.
 *
 * A point on the wire is its numbers (times, values, flags) and then its attributes. What it is in
 * is bytes, too: the attributes of the resource, the scope, the metric without its data, and what
 * follows the points in the data (temporality, monotonic). The schema is the same everywhere, so it
 * is written, and passed over when a body is read. No message around points is ever empty: without
 * points, nothing is written.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bytes {
	const uint8_t *data; /* borrowed */
	size_t size;
};

static inline bool bytes_are_equal(struct bytes a, struct bytes b)
{
	return a.size == b.size && (a.data == b.data || !a.size || !memcmp(a.data, b.data, a.size));
}

/*
 * The kinds of points: the numbers of their fields in proto/otlp-metrics.proto. Other fields are
 * the same in all.
 */
struct otlp_kind {
	const struct ProtobufCMessageDescriptor *message;
	unsigned int attributes, flags;
	unsigned int value; /* a whole number of eight bytes; 0: of none */
};

/*
 * By the number of the data in Metric, as otlp_body_read() and the encoder know it; others are not
 * kinds.
 */
extern const struct otlp_kind otlp_kinds[];

/* What points are in. */
struct otlp_place {
	struct bytes resource;	 /* the message Resource */
	struct bytes scope;	 /* the message InstrumentationScope */
	struct bytes header;	 /* of Metric: the fields before the data */
	struct bytes tail;	 /* of the data: the fields after the points */
	/*
	 * the number of the data in Metric, which says what kind of points they are; 0: they are
	 * log records or spans, right in the scope
	 */
	unsigned int data_field;
};

/* One body, valid during the call. 0 or -errno. */
typedef int otlp_body_fn(void *user, const uint8_t *data, size_t size, size_t n_points);

/* The messages around points, from the outermost on. */
enum otlp_level { OTLP_RESOURCE_METRICS, OTLP_SCOPE_METRICS, OTLP_METRIC, OTLP_DATA, OTLP_LEVELS };

/* All after the first four is zero at first. */
struct otlp_writer {
	uint8_t *room;	      /* to build bodies in; touched as far as a body needs */
	/* of the room, and so of a body: what does not fit begins another one */
	uint64_t limit_bytes;
	otlp_body_fn *body;
	void *user;
	uint64_t limit_points; /* of a body; 0: none */
	int err;	    /* the first that body returned */
	size_t n_too_large; /* points that do not fit a body even alone */

	struct otlp_place place; /* of the last point */
	uint8_t *at;		 /* the end of the body so far */
	uint8_t *begun[OTLP_LEVELS];
	size_t n_points; /* in the body */
};

/*
 * The bytes of place stay valid until otlp_writer_end(), or until otlp_writer_leave() for what they
 * say.
 */
void otlp_writer_put(struct otlp_writer *writer, const struct otlp_place *place,
		     struct bytes numbers, struct bytes attributes);
/* Ends this level and those in it, as far as they have begun: their bytes may change. */
void otlp_writer_leave(struct otlp_writer *writer, enum otlp_level level);
/* The last body. */
void otlp_writer_end(struct otlp_writer *writer);

/* Returns an error to stop with. */
typedef int otlp_point_fn(void *user, const struct otlp_place *place, struct bytes numbers,
			  struct bytes attributes);
/*
 * Calls point for each point of a body that otlp_writer_put() has written, in order; all bytes are
 * the body's. -EBADMSG, maybe after some points: it is not one; or what point returned.
 */
int otlp_body_read(const uint8_t *data, size_t size, otlp_point_fn *point, void *user);

/* The content of the first field of that number; nothing: there is none. */
struct bytes otlp_find_field(struct bytes in, unsigned int wanted);

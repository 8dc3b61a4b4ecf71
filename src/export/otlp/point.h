/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The pieces that otlp-encode.c frames; nobody else's. */

#include "export/otlp/encode.h"
#include "util/buf.h"

struct ProtobufCMessage;

extern const char otlp_cache_owner; /* of what series_cache() holds for every OTLP exporter */

#define OTLP_FRAME_BYTES 11 /* a tag below 16 and a length, at most */

/* The tag and length of a message of size bytes in field; its length. Room for OTLP_FRAME_BYTES. */
size_t otlp_put_frame(uint8_t *out, unsigned int field, size_t size);
void otlp_pack_framed(struct buf *out, unsigned int field, const struct ProtobufCMessage *message);
/* Each as a KeyValue in field. */
void otlp_pack_attributes(struct buf *out, unsigned int field, const struct attribute *attributes,
			  unsigned int n);

struct otlp_point {
	enum otlp_histogram histogram;
	uint64_t start_ns, time_ns;
	const struct numbers *numbers;
	double *bounds; /* of the metric's layout, for OTLP_EXPLICIT */
};

/*
 * The point of a series into out, which is emptied before; the series' attributes from its cache, where
 * they are put if they are not there. -ENOMEM.
 */
int otlp_pack_point(struct buf *out, const struct otlp_point *point, struct series *series);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the messages of all signals have in common. */

#include "export/otlp/body.h"
#include "metric/attribute.h"
#include "otlp-metrics.pb-c.h"
#include "util/buf.h"

/* Appends a packed message; all of buf. Its error says if memory ran out. */
struct bytes value_pack(struct buf *buf, const ProtobufCMessage *message);
/* For each attribute a KeyValue, framed by the number of the field, which is below 16. */
void value_append_attributes(struct buf *out, unsigned int field,
			     const struct attribute *attributes, unsigned int n);
/* As value_pack(): the scope of a collector, "bpfpush.NAME". */
struct bytes value_pack_scope(struct buf *buf, const char *name, const char *version);

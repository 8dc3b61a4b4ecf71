/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Attributes as they stand in a message: for each a KeyValue, framed by the number of the field and
 * its length.
 */

#include "metric/metric.h"
#include "util/buf.h"

/* field is below 16. */
void otlp_attributes_append(struct buf *out, unsigned int field, const struct attribute *attributes,
			    unsigned int n);
/*
 * Those of a series, which never change: encoded once for each number of the field that is in use,
 * and kept with the series. NULL: no memory.
 */
const struct series_cache *otlp_attributes_of(struct series *series, unsigned int field);

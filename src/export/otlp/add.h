/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The numbers of points, as they are on the wire: what they say, and the sum of two deltas. Pure. */

#include "export/otlp/body.h"

/* What a point is to its series: a value, a 0 at its start, or a last point without a value. */
enum otlp_mark { OTLP_MARK_VALUE, OTLP_MARK_ZERO, OTLP_MARK_ENDED };

enum otlp_mark otlp_mark(unsigned int data_field, struct bytes numbers);
/* When what it says began, as on the wire; empty for a gauge. */
struct bytes otlp_start(struct bytes numbers);
/*
 * Adds the numbers of an older point of the same series to *numbers: *ret_sum is for free(), and *numbers are in it.
 * 1: they cannot be added, because their buckets differ. -EBADMSG, -ENOMEM.
 */
int otlp_add(unsigned int data_field, struct bytes older, struct bytes *numbers, uint8_t **ret_sum);
/* What it counts: a sum of whole numbers, or how many values are in a histogram; else 0. */
uint64_t otlp_value(unsigned int data_field, struct bytes numbers);

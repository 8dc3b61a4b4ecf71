/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "collector/binding/binding.h"
#include "collector/grammar/buckets.h"

/* What one section makes of a member. The metric's bounds are those of the buckets. */
struct meaning {
	struct metric metric;
	uint64_t factor;
	struct buckets buckets;
};

/* Mistakes go to .diag. */
void meaning_read(const struct collector *collector, const struct descriptor_metric *described,
		  const struct field *field, struct meaning *ret_meaning);

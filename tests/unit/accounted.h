/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <inttypes.h>
#include <stdio.h>

#include "export/exporter.h"

/* Does every point that was pushed have exactly one fate, or wait? To be asked after each step. */
static inline bool is_accounted(const struct exporter *exporter)
{
	const uint64_t *points = exporter->stats.points;
	uint64_t n = exporter_waiting(exporter).n_points;

	for (enum points fate = POINTS_DELIVERED; fate < N_POINTS; fate++)
		n += points[fate];
	if (n != points[POINTS_PUSHED])
		fprintf(stderr, "%" PRIu64 " points were pushed, %" PRIu64 " are accounted for\n",
			points[POINTS_PUSHED], n);
	return n == points[POINTS_PUSHED];
}

#define assert_accounted(exporter) assert_true(is_accounted(exporter))

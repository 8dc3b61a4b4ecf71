/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A batch with one of everything, for tests of encoders: two scopes, all kinds, numbers with and without a
 * divisor, histograms of all kinds, hostile text, a series that did not grow, one without attributes, new ones, ended ones, both
 * overflow series, a metric without series.
 */

#include "metric/series.h"

#define FIXTURE_METRICS 8
#define FIXTURE_POINTS	14
#define FIXTURE_NEW	3 /* of these, sums and histograms */
#define FIXTURE_ENDED	3 /* besides these */

struct fixture {
	struct metric metrics[FIXTURE_METRICS];
	struct metric *pointers[FIXTURE_METRICS];
	struct budget budget; /* of the first metric */
	struct batch batch;
};

void fixture_init(struct fixture *fixture);
void fixture_done(struct fixture *fixture);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What tables of series are made of: the names of their attributes, and the series in an order. */

#include "metric/metric.h"

typedef int columns_order(const void *left, const void *right); /* for qsort() */

struct columns {
	const char **names; /* the array is owned, the names are the series' */
	size_t n;
};

/*
 * Adds those of the present series of metric; all are in that order then. -ENOMEM: some are
 * missing.
 */
int columns_add(struct columns *columns, const struct metric *metric, columns_order *order);
columns_order columns_by_name;
void columns_done(struct columns *columns);
/* The present series of metric, for free(), and their number. NULL and 0: no memory. */
struct series **columns_sort(const struct metric *metric, columns_order *order, size_t *ret_n);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The series of a metric as a table: its columns are the attributes, its rows the present series.
 */

#include "metric/metric.h"
#include "util/buf.h"

struct columns {
	const char *names[ATTRIBUTES_MAX]; /* sorted; of any present series; borrowed from them */
	unsigned int n;
};

/* How many series are present. */
size_t columns_count(const struct metric *metric);
void columns_find(struct columns *columns, const struct metric *metric);
/* The attribute of series in each column, NULL where it has none. */
void columns_match(const struct columns *columns, const struct series *series,
		   const struct attribute *ret_cells[ATTRIBUTES_MAX]);
/* Order of two series, for qsort(): left and right are struct series *const *. */
typedef int columns_order_fn(const void *left, const void *right);
/* The present series of metric in that order, for free(), and their number. NULL and 0: no memory, an error of out. */
struct series **columns_sort(const struct metric *metric, columns_order_fn *order, struct buf *out, size_t *ret_n);

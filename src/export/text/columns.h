/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The series of a metric as a table: its columns are the attributes, its rows the present series.
 */

#include "metric/metric.h"

struct columns {
	const char *names[ATTRIBUTES_MAX]; /* sorted; of any present series; borrowed from them */
	unsigned int n;
};

void columns_find(struct columns *columns, const struct metric *metric);
/* The attribute of series in each column, NULL where it has none. */
void columns_match(const struct columns *columns, const struct series *series,
		   const struct attribute *ret_cells[ATTRIBUTES_MAX]);
/* Order of two series: like that of qsort()'s function. */
typedef int columns_order_fn(const struct series *left, const struct series *right);
/*
 * The present series of metric in that order, equal ones as they were; for free(). NULL where there
 * are none, or no memory (*ret_n is then 0 as well and errno is ENOMEM).
 */
struct series **columns_sort(const struct metric *metric, columns_order_fn *order, size_t *ret_n);

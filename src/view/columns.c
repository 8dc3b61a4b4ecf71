/* SPDX-License-Identifier: Apache-2.0 */
#include "view/columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"

int columns_by_name(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

int columns_add(struct columns *columns, const struct metric *metric, columns_order *order)
{
	struct series *series;

	metric_for_each_series(series, metric)
		for (unsigned int i = 0; i < series->n_attributes; i++) {
			if (columns->n &&
			    array_find(columns->names, columns->n, series->attributes[i].name))
				continue;
			if (array_append(&columns->names, &columns->n, &series->attributes[i].name))
				return -ENOMEM;
		}
	if (columns->n)
		qsort(columns->names, columns->n, sizeof(*columns->names), order);
	return 0;
}

void columns_done(struct columns *columns)
{
	free(columns->names);
	*columns = (struct columns){ 0 };
}

struct series **columns_sort(const struct metric *metric, columns_order *order, size_t *ret_n)
{
	struct series *series, **sorted = calloc(metric->n_series + 1, sizeof(struct series *));

	*ret_n = 0;
	if (!sorted)
		return NULL;
	metric_for_each_series(series, metric)
		sorted[(*ret_n)++] = series;
	qsort(sorted, *ret_n, sizeof(struct series *), order);
	return sorted;
}

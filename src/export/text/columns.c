/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text/columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void add_name(struct columns *columns, const char *name)
{
	unsigned int at = 0;

	while (at < columns->n && strcmp(columns->names[at], name) < 0)
		at++;
	if ((at < columns->n && !strcmp(columns->names[at], name)) || columns->n == ATTRIBUTES_MAX)
		return;
	memmove(&columns->names[at + 1], &columns->names[at], (columns->n - at) * sizeof(columns->names[0]));
	columns->names[at] = name;
	columns->n++;
}

size_t columns_count(const struct metric *metric)
{
	struct series *series;
	size_t n = 0;

	metric_for_each_series(series, metric)
		n++;
	return n;
}

void columns_find(struct columns *columns, const struct metric *metric)
{
	struct series *series;

	columns->n = 0;
	metric_for_each_series(series, metric)
		for (unsigned int i = 0; i < series->n_attributes; i++)
			add_name(columns, series->attributes[i].name);
}

void columns_match(const struct columns *columns, const struct series *series,
		   const struct attribute *ret_cells[ATTRIBUTES_MAX])
{
	unsigned int at = 0;

	for (unsigned int i = 0; i < columns->n; i++) {
		ret_cells[i] = NULL;
		while (at < series->n_attributes && strcmp(series->attributes[at].name, columns->names[i]) < 0)
			at++;
		if (at < series->n_attributes && !strcmp(series->attributes[at].name, columns->names[i]))
			ret_cells[i] = &series->attributes[at];
	}
}

struct series **columns_sort(const struct metric *metric, columns_order_fn *order, struct buf *out, size_t *ret_n)
{
	struct series *series, **sorted = calloc(metric->n_series + 1, sizeof(struct series *));

	*ret_n = 0;
	if (!sorted) {
		out->error = -ENOMEM;
		return NULL;
	}
	metric_for_each_series(series, metric)
		sorted[(*ret_n)++] = series;
	qsort(sorted, *ret_n, sizeof(struct series *), order);
	return sorted;
}

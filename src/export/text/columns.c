/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text/columns.h"

#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"

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

struct ranked {
	struct series *series;
	size_t at;
	columns_order_fn *order;
};

static int compare(const void *left_, const void *right_)
{
	const struct ranked *left = left_, *right = right_;
	int order = left->order(left->series, right->series);

	if (order)
		return order;
	return left->at < right->at ? -1 : left->at > right->at;
}

struct series **columns_sort(const struct metric *metric, columns_order_fn *order, size_t *ret_n)
{
	_cleanup_(freep) struct ranked *ranked = NULL;
	struct series *series, **sorted;
	size_t n = 0;

	*ret_n = 0;
	if (!metric->n_series)
		return NULL;
	ranked = calloc(metric->n_series, sizeof(*ranked));
	sorted = calloc(metric->n_series, sizeof(*sorted));
	if (!ranked || !sorted) {
		free(sorted);
		return NULL;
	}
	metric_for_each_series(series, metric) {
		ranked[n] = (struct ranked){ series, n, order };
		n++;
	}
	qsort(ranked, n, sizeof(*ranked), compare);
	for (size_t i = 0; i < n; i++)
		sorted[i] = ranked[i].series;
	*ret_n = n;
	return sorted;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The view has a metric for each metric of the batch that is asked for, and lets series.c do with
 * its series what that does for every collector. What holds a series is that it was found in this
 * collection, or in any.
 */
#include "view/view.h"

#include <errno.h>
#include <stdlib.h>

#include "metric/series.h"

struct view {
	const struct question *question;
	bool keeps_all;
	struct view_metric {
		struct metric metric;
		size_t place; /* of the one that it is made from, in the batch */
		struct loss loss; /* from the first collection on */
	} *metrics;
	struct batch batch;
	struct budget budget;
	uint64_t begin_ns; /* of the first collection */
};

int view_new(const struct question *question, bool keeps_all, struct view **ret_view)
{
	struct view *view = calloc(1, sizeof(*view));

	if (!view)
		return -ENOMEM;
	view->budget.limit_bytes = VIEW_BYTES;
	view->question = question;
	view->keeps_all = keeps_all;
	*ret_view = view;
	return 0;
}

struct view *view_free(struct view *view)
{
	if (!view)
		return NULL;
	for (size_t i = 0; i < view->batch.n_metrics; i++)
		metric_done_series(&view->metrics[i].metric);
	free(view->batch.metrics);
	free(view->metrics);
	free(view);
	return NULL;
}

/* The metrics of a batch are always the same. */
static int init_metrics(struct view *view, const struct batch *batch)
{
	size_t n = 0;

	view->metrics = calloc(batch->n_metrics + 1, sizeof(*view->metrics));
	view->batch.metrics = calloc(batch->n_metrics + 1, sizeof(*view->batch.metrics));
	if (!view->metrics || !view->batch.metrics)
		return -ENOMEM;
	for (size_t i = 0; i < batch->n_metrics; i++) {
		struct view_metric *own = &view->metrics[n];

		if (!question_wants_metric(view->question, batch->metrics[i]))
			continue;
		*own = (struct view_metric){ .metric = *batch->metrics[i], .place = i };
		own->metric.dropped = (struct setting_list){ 0 };
		metric_init_series(&own->metric, &view->budget);
		view->batch.metrics[n++] = &own->metric;
	}
	view->batch.n_metrics = n;
	view->begin_ns = batch->previous_ns;
	return 0;
}

static int get_series(struct view *view, struct metric *metric, const struct series *series,
		      struct series **ret_series)
{
	const struct metric *source = series->metric;
	struct attributes attributes;

	if (series_is_overflow(series))
		return series_get_overflow(metric, series == source->overflow[OVERFLOW_TABLE] ?
					   OVERFLOW_TABLE :
					   OVERFLOW_SERIES, view->begin_ns, ret_series);
	question_choose(view->question, series, &attributes);
	return series_get(metric, &attributes, view->begin_ns, ret_series);
}

static int add_metric(struct view *view, struct metric *metric, const struct metric *source,
		      bool is_first)
{
	const struct numbers *counted;
	struct series *series, *own;
	int err = 0;

	metric->loss = source->loss;
	for (size_t i = 0; i < metric->n_series && !view->keeps_all; i++)
		metric->series[i]->n_sources = 0;
	series_begin(metric);
	metric_for_each_series(series, source) {
		if (!question_wants(view->question, series))
			continue;
		err = get_series(view, metric, series, &own);
		if (err)
			break;
		own->n_sources = 1;
		if (metric->kind == METRIC_GAUGE) {
			series_add(own, series->total.sum);
			continue;
		}
		/* Also what was counted before the first collection that the view sees. */
		counted = is_first ? &series->total : &series->delta;
		numbers_add(metric, &own->total, counted->sum, counted->bucket);
		numbers_add(metric, &own->delta, series->delta.sum, series->delta.bucket);
	}
	series_end(metric);
	return err;
}

int view_add(struct view *view, const struct batch *batch)
{
	bool is_first = !view->metrics;
	int err = is_first ? init_metrics(view, batch) : 0;

	for (size_t i = 0; i < view->batch.n_metrics && !err; i++) {
		const struct metric *source = batch->metrics[view->metrics[i].place];
		struct loss *loss = &view->metrics[i].loss;

		/* For collections without a loss, it is not known how many events they had. */
		*loss = (struct loss){ loss->missed + source->loss.missed, source->loss.events,
				       is_first && source->loss.is_known };
		err = add_metric(view, &view->metrics[i].metric, source, is_first);
	}
	view->batch.time_ns = batch->time_ns;
	view->batch.previous_ns = batch->previous_ns;
	view->batch.is_last = batch->is_last;
	return err;
}

const struct batch *view_batch(const struct view *view)
{
	return &view->batch;
}

static void copy_numbers(const struct metric *metric, struct numbers *to,
			 const struct numbers *from)
{
	to->sum = from->sum;
	to->count = from->count;
	for (uint32_t i = 0; i < metric->layout.n_buckets; i++)
		to->bucket[i] = from->bucket[i];
}

const struct batch *view_interval(struct view *view)
{
	for (size_t i = 0; i < view->batch.n_metrics; i++) {
		struct metric *metric = &view->metrics[i].metric;

		for (size_t j = 0; j < metric->n_series && metric->kind != METRIC_GAUGE; j++) {
			struct series *series = metric->series[j];

			series->is_present &= series->delta.sum || series->delta.count;
			copy_numbers(metric, &series->total, &series->delta);
		}
	}
	return &view->batch;
}

const struct batch *view_whole(struct view *view)
{
	view->batch.previous_ns = view->begin_ns;
	for (size_t i = 0; i < view->batch.n_metrics; i++) {
		struct metric *metric = &view->metrics[i].metric;

		metric->loss = view->metrics[i].loss;
		for (size_t j = 0; j < metric->n_series && metric->kind != METRIC_GAUGE; j++)
			copy_numbers(metric, &metric->series[j]->delta, &metric->series[j]->total);
	}
	return &view->batch;
}

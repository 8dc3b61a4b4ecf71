/* SPDX-License-Identifier: Apache-2.0 */
#include "export/otlp/message/point.h"

#include "metric/bounds.h"

#define NO_RECORDED_VALUE 1 /* of flags */
/* All kinds of points have these members, each in a structure of its own. */
#define SET_TIMES(point, start_ns, time_ns, bits) \
	((point).start_time_unix_nano = (start_ns), (point).time_unix_nano = (time_ns), \
	 (point).flags = (bits))

static double in_unit(const struct metric *metric, uint64_t raw)
{
	return metric->divisor == 1 ? (double)raw : (double)raw / (double)metric->divisor;
}

static void fill_number(Otlp__NumberDataPoint *point, const struct metric *metric, uint64_t raw)
{
	bool is_gauge = metric->kind == METRIC_GAUGE;

	otlp__number_data_point__init(point);
	if (metric->divisor == 1 && (raw <= INT64_MAX || is_gauge)) {
		point->value_case = OTLP__NUMBER_DATA_POINT__VALUE_AS_INT;
		point->as_int = (int64_t)raw;
	} else {
		point->value_case = OTLP__NUMBER_DATA_POINT__VALUE_AS_DOUBLE;
		point->as_double = is_gauge ? (double)(int64_t)raw / (double)metric->divisor :
				   in_unit(metric, raw);
	}
}

static void fill_explicit(Otlp__HistogramDataPoint *point, uint64_t *counts,
			  const struct metric *metric,
			  const struct numbers *numbers, const double *bounds)
{
	const uint32_t n = bounds_explicit_n(metric);

	otlp__histogram_data_point__init(point);
	point->count = numbers->count;
	if (!metric->layout.has_no_sum)
		point->sum_of_values_case = OTLP__HISTOGRAM_DATA_POINT__SUM_OF_VALUES_SUM;
	point->sum = in_unit(metric, numbers->sum);
	for (uint32_t i = 0; i < n; i++)
		counts[i] = bounds_explicit_count(metric, numbers->bucket, i);
	point->n_bucket_counts = n;
	point->bucket_counts = counts;
	point->n_explicit_bounds = n - 1;
	point->explicit_bounds = (double *)bounds;
}

static void fill_exponential(Otlp__ExponentialHistogramDataPoint *point,
			     Otlp__ExponentialHistogramDataPoint__Buckets *positive,
			     const struct metric *metric, const struct numbers *numbers)
{
	const struct histogram_layout *layout = &metric->layout;
	uint32_t first = 1, end = layout->n_buckets;

	otlp__exponential_histogram_data_point__init(point);
	point->count = numbers->count;
	point->sum_of_values_case = OTLP__EXPONENTIAL_HISTOGRAM_DATA_POINT__SUM_OF_VALUES_SUM;
	point->sum = in_unit(metric, numbers->sum);
	point->scale = layout->scale;
	point->zero_count = numbers->bucket[0];
	bounds_trim(numbers->bucket, &first, &end);
	if (first == end)
		return;
	otlp__exponential_histogram_data_point__buckets__init(positive);
	positive->offset = layout->offset + (int32_t)first - 1;
	positive->n_bucket_counts = end - first;
	positive->bucket_counts = numbers->bucket + first;
	point->positive = positive;
}

void otlp_point_make(const struct otlp_points *points, const struct series *series,
		     enum otlp_form form, struct otlp_point *ret_point)
{
	static uint64_t zeros[HISTOGRAM_BUCKETS_MAX];
	static const struct numbers none = { .bucket = zeros };
	const struct metric *metric = series->metric;
	const struct numbers *numbers = points->is_delta ? &series->delta : &series->total;
	uint64_t start_ns = points->is_delta ? points->previous_ns : series->start_ns;
	uint64_t time_ns = form == OTLP_ZERO ? start_ns : points->time_ns;
	uint32_t flags = form == OTLP_ENDED ? NO_RECORDED_VALUE : 0;

	if (form != OTLP_POINT)
		numbers = &none;
	if (metric->kind != METRIC_HISTOGRAM) {
		fill_number(&ret_point->number, metric, numbers->sum);
		if (form == OTLP_ENDED)
			ret_point->number.value_case = OTLP__NUMBER_DATA_POINT__VALUE__NOT_SET;
		if (metric->kind == METRIC_GAUGE && !metric->is_updown)
			start_ns = 0;
		SET_TIMES(ret_point->number, start_ns, time_ns, flags);
	} else if (points->histogram == OTLP_EXPLICIT) {
		fill_explicit(&ret_point->histogram, ret_point->counts, metric, numbers,
			      points->bounds);
		SET_TIMES(ret_point->histogram, start_ns, time_ns, flags);
	} else {
		fill_exponential(&ret_point->exponential, &ret_point->positive, metric, numbers);
		SET_TIMES(ret_point->exponential, start_ns, time_ns, flags);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "bench-metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "util/cleanup.h"

#define INTERVAL_NS    UINT64_C(10000000000)
#define BUCKETS	       48
#define BUCKETS_FILLED 8

uint64_t bench_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int bench_compare(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

static void add_series(struct metric *metric, size_t i, struct series **ret_series)
{
	static const char *const syscalls[] = { "read", "write", "epoll_pwait2", "futex", "openat", "sendmsg", "recvmsg", "close" };
	static const char *const errors[] = { "EAGAIN", "ENOENT", "EINTR", "ETIMEDOUT" };
	struct attributes attributes;
	char unit[48];

	snprintf(unit, sizeof(unit), "some-service-%zu.service", i / 32);
	attributes_init(&attributes);
	if (attributes_add_text(&attributes, "systemd.unit.name", unit, strlen(unit)) < 0 ||
	    attributes_add_text(&attributes, "bpfpush.syscall.name", syscalls[i % 8], strlen(syscalls[i % 8])) < 0 ||
	    attributes_add_text(&attributes, "error.type", errors[i / 8 % 4], strlen(errors[i / 8 % 4])) < 0 ||
	    attributes_add_number(&attributes, "process.pid", (int64_t)(1000 + i)) < 0 ||
	    series_get(metric, &attributes, 1, ret_series) < 0)
		abort();
}

void bench_metrics_init(struct bench_metrics *bench, enum metric_kind kind, const char *unit, uint64_t divisor,
			size_t n_metrics, size_t n_series)
{
	*bench = (struct bench_metrics){ .n_metrics = n_metrics, .n_series = n_series };
	bench->metrics = calloc(n_metrics, sizeof(*bench->metrics));
	bench->all = calloc(n_metrics, sizeof(*bench->all));
	bench->names = calloc(n_metrics, sizeof(*bench->names));
	bench->series = calloc(n_metrics * n_series, sizeof(*bench->series));
	if (!bench->metrics || !bench->all || !bench->names || !bench->series)
		abort();
	bench->batch = (struct batch){ .time_ns = UINT64_C(1800000000000000000), .metrics = bench->all,
				       .n_metrics = n_metrics };
	for (size_t m = 0; m < n_metrics; m++) {
		struct metric *metric = bench->all[m] = &bench->metrics[m];

		snprintf(bench->names[m], sizeof(bench->names[m]), "bpfpush.syscall.bench%zu", m);
		*metric = (struct metric){ .scope = "bench", .name = bench->names[m], .unit = unit, .description = "To measure with.",
					   .kind = kind, .divisor = divisor };
		if (kind == METRIC_HISTOGRAM)
			metric->layout = (struct histogram_layout){ .scale = 0, .offset = -30, .n_buckets = BUCKETS };
		metric_init_series(metric, NULL);
		for (size_t i = 0; i < n_series; i++)
			add_series(metric, i, &bench->series[m * n_series + i]);
	}
}

static uint64_t grow_series(struct series *series, uint64_t seed)
{
	uint64_t grown = seed % 9973 + 1, bucket[BUCKETS] = { 0 };

	if (series->metric->divisor > 1)
		grown *= 104729; /* ns */
	if (series->metric->kind == METRIC_HISTOGRAM) {
		for (size_t b = 12; b < 12 + BUCKETS_FILLED; b++)
			bucket[b] = seed % 100 + b;
		series_add_histogram(series, grown, bucket);
	} else {
		series_add(series, grown);
	}
	return grown;
}

uint64_t bench_metrics_grow(struct bench_metrics *bench)
{
	uint64_t sum = 0;

	bench->round++;
	bench->batch.previous_ns = bench->batch.time_ns;
	bench->batch.time_ns += INTERVAL_NS;
	for (size_t m = 0; m < bench->n_metrics; m++) {
		series_begin(&bench->metrics[m]);
		for (size_t i = 0; i < bench->n_series; i++)
			sum += grow_series(bench->series[m * bench->n_series + i], i + m * 7 + bench->round * 31);
		series_end(&bench->metrics[m]);
	}
	return sum;
}

void bench_metrics_done(struct bench_metrics *bench)
{
	for (size_t m = 0; m < bench->n_metrics; m++)
		metric_done_series(&bench->metrics[m]);
	free(bench->metrics);
	free(bench->all);
	free(bench->names);
	free(bench->series);
}

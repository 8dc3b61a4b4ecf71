/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs to encode a point, by exporter format: 10 000 known series with 5 attributes, medians
 * of many batches. Prints lines of "name value unit".
 *
 *     bench-encode [SERIES [ROUNDS]]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "export/exporter.h"
#include "export/otlp/encode.h"
#include "export/otlp/gzip.h"
#include "metric/series.h"
#include "util/cleanup.h"

#define ROUNDS_MAX 1000

struct bench {
	struct metric metric;
	struct series **series;
	size_t n_series, n_rounds;
	struct batch batch;
	size_t body_bytes, gzip_bytes;
	bool is_gzip;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int compare(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

static void fill(struct bench *bench, enum metric_kind kind)
{
	char text[64];

	bench->metric = (struct metric){ .scope = "bench", .name = "bpfpush.bench.count", .unit = "{call}",
					 .description = "A metric to measure with.", .kind = kind, .divisor = 1,
					 .layout = { .scale = 0, .offset = -30, .n_buckets = 48 } };
	metric_init_series(&bench->metric, NULL);
	for (size_t i = 0; i < bench->n_series; i++) {
		struct attributes attributes;

		attributes_init(&attributes);
		snprintf(text, sizeof(text), "some-service-%zu.service", i);
		attributes_add_text(&attributes, "systemd.unit.name", text, strlen(text));
		attributes_add_text(&attributes, "bpfpush.syscall.name", "epoll_pwait2", 12);
		attributes_add_text(&attributes, "error.type", "ENOENT", 6);
		attributes_add_number(&attributes, "process.pid", (int64_t)i);
		attributes_add_text(&attributes, "process.executable.name", "some-service", 12);
		if (series_get(&bench->metric, &attributes, 1, &bench->series[i]) < 0)
			abort();
	}
}

static void grow(struct bench *bench)
{
	uint64_t bucket[48] = { 0 };

	series_begin(&bench->metric);
	for (size_t i = 0; i < bench->n_series; i++) {
		for (size_t b = 12; b < 20; b++)
			bucket[b] = i + b;
		if (bench->metric.kind == METRIC_HISTOGRAM)
			series_add_histogram(bench->series[i], i * 1000, bucket);
		else
			series_add(bench->series[i], i + 1);
	}
	series_end(&bench->metric);
}

static int on_body(void *user, const uint8_t *data, size_t size, size_t n_points)
{
	struct bench *bench = user;
	_cleanup_(buf_done) struct buf out = BUF_INIT;

	bench->body_bytes += size;
	if (!bench->is_gzip)
		return 0;
	if (gzip_append(&out, data, size) < 0)
		abort();
	bench->gzip_bytes += out.size;
	return 0;
}

static void measure_otlp(struct bench *bench, const char *name, const struct otlp_encoding *encoding)
{
	uint64_t first_ns = 0, times[ROUNDS_MAX];
	struct otlp_encoded encoded;

	bench->body_bytes = bench->gzip_bytes = 0;
	for (size_t round = 0; round <= bench->n_rounds; round++) {
		uint64_t start_ns;

		grow(bench);
		start_ns = now_ns();
		if (otlp_encode(encoding, &bench->batch, on_body, bench, &encoded) < 0)
			abort();
		if (round)
			times[round - 1] = now_ns() - start_ns;
		else
			first_ns = now_ns() - start_ns;
	}
	qsort(times, bench->n_rounds, sizeof(times[0]), compare);
	printf("%-34s %8.1f ns/point  first %8.1f  %6.1f bytes", name,
	       (double)times[bench->n_rounds / 2] / (double)bench->n_series, (double)first_ns / (double)bench->n_series,
	       (double)bench->body_bytes / (double)((bench->n_rounds + 1) * bench->n_series));
	if (bench->is_gzip)
		printf(", %.1f compressed", (double)bench->gzip_bytes / (double)((bench->n_rounds + 1) * bench->n_series));
	printf("\n");
}

static void measure_stream(struct bench *bench, const char *type)
{
	const struct exporter_ops *ops = exporter_find(type);
	struct exporter_context context = { .version = "0", .is_once = true };
	struct setting_list *options = calloc(1, ops->settings->size_bytes);
	uint64_t times[ROUNDS_MAX];
	struct exporter *exporter;
	struct diag diag = DIAG_INIT;

	if (setting_table_init(ops->settings, options) < 0 ||
	    setting_table_set(ops->settings, options,
			      &(struct assignment){ "path", "/dev/null", "", 0 }, &diag) < 0 ||
	    exporter_open("bench", ops, options, &context, &exporter) < 0)
		abort();
	for (size_t round = 0; round <= bench->n_rounds; round++) {
		uint64_t start_ns;

		grow(bench);
		start_ns = now_ns();
		exporter_encode(exporter, &bench->batch);
		times[round ? round - 1 : 0] = now_ns() - start_ns;
	}
	qsort(times, bench->n_rounds, sizeof(times[0]), compare);
	printf("%-34s %8.1f ns/point\n", type, (double)times[bench->n_rounds / 2] / (double)bench->n_series);
	exporter_free(exporter);
	setting_table_done(ops->settings, options);
	free(options);
}

int main(int argc, char **argv)
{
	struct otlp_encoding encoding = { .limit_bytes = 4 << 20, .room = malloc(4 << 20), .version = "0.1.0" };
	struct bench bench = { .n_series = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000,
			       .n_rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 50 };
	struct metric *metrics[] = { &bench.metric };

	if (!bench.n_series || !bench.n_rounds || bench.n_rounds > ROUNDS_MAX)
		return 1;
	bench.series = calloc(bench.n_series, sizeof(*bench.series));
	bench.batch = (struct batch){ .time_ns = UINT64_C(1800000000000000000), .metrics = metrics, .n_metrics = 1 };
	bench.batch.previous_ns = bench.batch.time_ns - 10000000000;

	fill(&bench, METRIC_SUM);
	measure_otlp(&bench, "otlp sum", &encoding);
	bench.is_gzip = true;
	measure_otlp(&bench, "otlp sum, compressed", &encoding);
	measure_stream(&bench, "json");
	measure_stream(&bench, "bpftrace-json");
	measure_stream(&bench, "console");
	metric_done_series(&bench.metric);

	bench.is_gzip = false;
	fill(&bench, METRIC_HISTOGRAM);
	measure_otlp(&bench, "otlp explicit histogram", &encoding);
	encoding.histogram = OTLP_EXPONENTIAL;
	measure_otlp(&bench, "otlp exponential histogram", &encoding);
	metric_done_series(&bench.metric);
	free(encoding.room);
	free(bench.series);
	return 0;
}

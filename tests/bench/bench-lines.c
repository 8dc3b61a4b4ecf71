/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs to render a line of StatsD or Graphite, by dialect and kind of metric: for series that are known
 * (medians and minima of many batches) and for new ones (the first batch); and what is kept for a series.
 *
 *     bench-lines [ROUNDS]
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench-metrics.h"
#include "export/lines/lines.h"
#include "util/cleanup.h"

#define ROUNDS_MAX    1000
#define METRICS	      5
#define SERIES	      2000
#define PIECES_MAX    65536
#define WARM_CYCLES   10
#define CYCLES	      100 /* over which memory is not to grow */
#define SERIES_MANY   UINT64_C(100000)
#define DATAGRAM_SIZE 1432
#define PIECE_SIZE    16384

/* What was put stays until the clock has stopped, as in an exporter's queue. */
struct sink {
	struct {
		uint8_t *data;
		size_t size;
	} pieces[PIECES_MAX];
	size_t n;
};

static struct sink sink;

static int put(void *user, uint8_t *data, size_t size, size_t n_points)
{
	struct sink *into = user;

	if (into->n == PIECES_MAX)
		abort();
	into->pieces[into->n].data = data;
	into->pieces[into->n++].size = size;
	return 0;
}

/* Empties it; the number of lines that were in it. */
static size_t count_lines(struct sink *from, bool is_stream, size_t *ret_bytes)
{
	size_t n = 0, bytes = 0;

	for (size_t i = 0; i < from->n; i++) {
		for (size_t at = 0; at < from->pieces[i].size; at++)
			n += from->pieces[i].data[at] == '\n';
		n += !is_stream; /* it only stands between two */
		bytes += from->pieces[i].size;
		free(from->pieces[i].data);
	}
	from->n = 0;
	*ret_bytes = bytes;
	return n;
}

static struct lines open_lines(enum dialect_id dialect, enum lines_histogram histogram, struct exporter *exporter)
{
	static char *tags[] = { "host.name" };
	static const struct setting_list resource_tags = { .items = tags, .n_items = 1 };
	static const struct attribute resource = { .name = "host.name", .text = "web-1" };
	bool is_graphite = dialect_table[dialect].is_graphite;
	struct lines lines = {
		.histogram = histogram,
		.time_unit = is_graphite ? LINES_SECONDS : LINES_MICROSECONDS,
		.pack = { .limit_bytes = is_graphite ? PIECE_SIZE : DATAGRAM_SIZE,
			  .put = put, .user = &sink },
		.exporter = exporter,
	};

	if (naming_init(&lines.naming, &dialect_table[dialect], NULL, &resource, 1, &resource_tags) < 0)
		abort();
	return lines;
}

static uint64_t push(struct lines *lines, struct bench_metrics *bench)
{
	uint64_t start_ns = bench_now_ns();

	if (lines_push(lines, &bench->batch, bench->batch.time_ns / 1000000000) < 0)
		abort();
	return bench_now_ns() - start_ns;
}

static const struct kind {
	const char *name;
	enum metric_kind kind;
	const char *unit;
	uint64_t divisor;
	enum lines_histogram histogram;
	enum dialect_id only; /* DIALECTS: all */
} kinds[] = {
	{ "sum", METRIC_SUM, "{call}", 1, LINES_COUNTERS, DIALECTS },
	{ "sum of seconds", METRIC_SUM, "s", 1000000000, LINES_COUNTERS, DIALECTS },
	{ "gauge", METRIC_GAUGE, "By", 1, LINES_COUNTERS, DIALECTS },
	{ "histogram", METRIC_HISTOGRAM, "s", 1000000000, LINES_COUNTERS, DIALECTS },
	{ "histogram as |d|@", METRIC_HISTOGRAM, "s", 1000000000, LINES_DISTRIBUTION, DIALECT_DOGSTATSD },
	{ "histogram as |ms|@", METRIC_HISTOGRAM, "s", 1000000000, LINES_TIMER, DIALECT_PLAIN },
};

static void measure(const struct kind *kind, enum dialect_id dialect, size_t n_rounds)
{
	bool is_stream = dialect_table[dialect].is_graphite;
	uint64_t times[ROUNDS_MAX], first_ns;
	struct exporter exporter = { .name = "bench" };
	struct bench_metrics bench;
	struct lines lines;
	size_t n, bytes;

	bench_metrics_init(&bench, kind->kind, kind->unit, kind->divisor, METRICS, SERIES);
	lines = open_lines(dialect, kind->histogram, &exporter);
	bench_metrics_grow(&bench);
	first_ns = push(&lines, &bench);
	n = count_lines(&sink, is_stream, &bytes);
	for (size_t round = 0; round < n_rounds; round++) {
		bench_metrics_grow(&bench);
		times[round] = push(&lines, &bench);
		if (count_lines(&sink, is_stream, &bytes) != n)
			abort();
	}
	qsort(times, n_rounds, sizeof(times[0]), bench_compare);
	printf("%-10s %-18s %7.1f ns/line  min %7.1f  first %8.1f  %5.1f bytes  %zu lines\n", dialect_table[dialect].name, kind->name,
	       (double)times[n_rounds / 2] / (double)n, (double)times[0] / (double)n, (double)first_ns / (double)n,
	       (double)bytes / (double)n, n);
	lines_done(&lines);
	bench_metrics_done(&bench);
}

static size_t resident_bytes(void)
{
	_cleanup_(fclosep) FILE *file = fopen("/proc/self/statm", "re");
	size_t n_pages;

	if (!file || fscanf(file, "%*u %zu", &n_pages) != 1)
		abort();
	return n_pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void cycle(struct bench_metrics *bench, struct lines *lines)
{
	size_t bytes;

	bench_metrics_grow(bench);
	push(lines, bench);
	count_lines(&sink, false, &bytes);
}

static void measure_memory(enum dialect_id dialect)
{
	struct exporter exporter = { .name = "bench" };
	struct bench_metrics bench;
	struct lines lines;
	size_t before, kept, resident;
	size_t n = SERIES_MANY;

	bench_metrics_init(&bench, METRIC_SUM, "{call}", 1, SERIES_MANY / SERIES, SERIES);
	before = mallinfo2().uordblks + mallinfo2().hblkhd;
	lines = open_lines(dialect, LINES_COUNTERS, &exporter);
	cycle(&bench, &lines);
	kept = mallinfo2().uordblks + mallinfo2().hblkhd - before;
	for (int i = 0; i < WARM_CYCLES; i++)
		cycle(&bench, &lines);
	resident = resident_bytes();
	for (int i = 0; i < CYCLES; i++)
		cycle(&bench, &lines);
	printf("%-10s %zu series known: %.1f bytes a series; resident %.1f MiB, and %+.2f MiB after %d cycles\n",
	       dialect_table[dialect].name, n, (double)kept / (double)n, (double)resident / 0x1p20,
	       ((double)resident_bytes() - (double)resident) / 0x1p20, CYCLES);
	lines_done(&lines);
	bench_metrics_done(&bench);
}

int main(int argc, char **argv)
{
	size_t n_rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 50;

	if (!n_rounds || n_rounds > ROUNDS_MAX)
		return 1;
	/* Rendering alone: no pages that are given back and taken again for each batch. */
	mallopt(M_MMAP_THRESHOLD, 256 << 20);
	mallopt(M_TRIM_THRESHOLD, 256 << 20);
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
		for (enum dialect_id dialect = 0; dialect < DIALECTS; dialect++)
			if (kinds[k].only == DIALECTS || kinds[k].only == dialect)
				measure(&kinds[k], dialect, n_rounds);
	mallopt(M_MMAP_THRESHOLD, 128 << 10); /* as the agent runs */
	mallopt(M_TRIM_THRESHOLD, 128 << 10);
	malloc_trim(0);
	measure_memory(DIALECT_PLAIN);
	measure_memory(DIALECT_DOGSTATSD);
	return 0;
}

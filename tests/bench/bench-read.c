/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs to read a map and to make deltas of it, by kind of map and number of keys. All keys grow
 * between readings; what stands still is measured apart. CPU time of this thread.
 *
 *     bench-read [ROUNDS]
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "collector/source.h"
#include "metric/delta.h"
#include "metric/series.h"

#define ROUNDS_MAX 200
#define BATCH	   1000

struct key {
	uint64_t cgroup, call;
};

/* As bpf/include/table.h lays it out. */
struct slot {
	uint64_t state;
	struct key key;
	uint64_t count;
};

enum kind { KIND_TABLE, KIND_HASH, KIND_PERCPU_HASH, KINDS };

static const char *const kinds[] = { "flat table", "hash", "per-CPU hash" };
static const enum bpf_map_type types[] = { BPF_MAP_TYPE_ARRAY, BPF_MAP_TYPE_HASH, BPF_MAP_TYPE_PERCPU_HASH };

struct bench {
	enum kind kind;
	uint32_t n_keys, n_cpus;
	uint64_t turn;
	struct source_run run;
	struct source source;
	struct metric metric;
	struct delta_metric of;
	struct delta delta;
	struct rows *rows;
	double read_ns[ROUNDS_MAX], delta_ns[ROUNDS_MAX], idle_ns[ROUNDS_MAX];
};

static void must(bool is_good, const char *what)
{
	if (is_good)
		return;
	perror(what);
	exit(1);
}

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static struct key key_of(uint32_t i)
{
	return (struct key){ 1000 + i / 40, i % 40 };
}

static int attributes_of(void *user, const void *raw, const struct delta_metric *of, struct attributes *attributes)
{
	const struct key *key = raw;
	int err = attributes_add_number(attributes, "cgroup", (int64_t)key->cgroup);

	return err ? err : attributes_add_number(attributes, "call", (int64_t)key->call);
}

static uint32_t table_slots(uint32_t n_keys)
{
	uint32_t n = 16;

	while (n * 5 < n_keys * 8)
		n *= 2;
	return n;
}

/* Each CPU has every key, somewhere in its slice. */
static void grow_table(struct bench *bench)
{
	uint32_t n = bench->source.slots_per_cpu;
	size_t bytes = bench->source.max_entries * sizeof(struct slot);
	struct slot *slots = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bench->source.fd, 0);

	must(slots != MAP_FAILED, "mmap");
	for (uint32_t i = 0; i < bench->n_keys; i++) {
		struct key key = key_of(i);
		uint64_t hash = key.cgroup * 0x9e3779b97f4a7c15ull ^ key.call * 0x9fb21c651e98df25ull;
		uint32_t at = (uint32_t)(hash >> 33) & (n - 1);

		while (!at || (slots[at].state && memcmp(&slots[at].key, &key, sizeof(key))))
			at = (at + 1) & (n - 1);
		for (uint32_t cpu = 0; cpu < bench->n_cpus; cpu++) {
			struct slot *slot = &slots[cpu * n + at];

			slot->state = 2;
			slot->key = key;
			slot->count++;
		}
	}
	munmap(slots, bytes);
}

static void grow_hash(struct bench *bench)
{
	size_t per_key = bench->kind == KIND_PERCPU_HASH ? bench->n_cpus : 1;
	struct key *keys = calloc(BATCH, sizeof(*keys));
	uint64_t *values = calloc(BATCH * per_key, sizeof(*values));

	must(keys && values, "memory");
	for (uint32_t first = 0; first < bench->n_keys; first += BATCH) {
		uint32_t n = bench->n_keys - first < BATCH ? bench->n_keys - first : BATCH;

		for (uint32_t i = 0; i < n; i++)
			keys[i] = key_of(first + i);
		for (size_t i = 0; i < n * per_key; i++)
			values[i] = bench->turn;
		must(!bpf_map_update_batch(bench->source.fd, keys, values, &n, NULL), "update");
	}
	free(keys);
	free(values);
}

static void grow(struct bench *bench)
{
	bench->turn++;
	if (bench->kind == KIND_TABLE)
		grow_table(bench);
	else
		grow_hash(bench);
}

static void open_bench(struct bench *bench, enum kind kind, uint32_t n_keys)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = kind == KIND_TABLE ? BPF_F_MMAPABLE : 0);
	uint32_t n_cpus = (uint32_t)libbpf_num_possible_cpus(), slots = table_slots(n_keys);

	*bench = (struct bench){ .kind = kind, .n_keys = n_keys, .n_cpus = n_cpus };
	bench->run = (struct source_run){ .size_bytes = 8, .count = 1 };
	bench->source = (struct source){
		.type = (int)types[kind], .key_bytes = sizeof(struct key),
		.value_bytes = kind == KIND_TABLE ? sizeof(struct slot) : 8,
		.max_entries = kind == KIND_TABLE ? slots * n_cpus : n_keys * 2, .runs = &bench->run, .n_runs = 1,
		.is_table = kind == KIND_TABLE, .key_offset_bytes = offsetof(struct slot, key),
		.value_offset_bytes = offsetof(struct slot, count), .slots_per_cpu = slots };
	bench->source.fd = bpf_map_create(types[kind], "bench", kind == KIND_TABLE ? 4 : sizeof(struct key),
					  bench->source.value_bytes, bench->source.max_entries, &options);
	must(bench->source.fd >= 0, "bpf_map_create");
	bench->metric = (struct metric){ .scope = "bench", .name = "bench", .unit = "1", .description = "", .divisor = 1 };
	metric_init_series(&bench->metric, n_keys + 1);
	bench->of = (struct delta_metric){ .metric = &bench->metric, .sum_bits = 64 };
	must(!rows_new(sizeof(struct key), 1, 1, &bench->rows), "rows");
	bench->delta = (struct delta){ .metrics = &bench->of, .n_metrics = 1, .attributes = attributes_of };
	must(!source_open(&bench->source), "source_open");
}

static void close_bench(struct bench *bench)
{
	source_close(&bench->source);
	rows_free(bench->rows);
	metric_done_series(&bench->metric);
	close(bench->source.fd);
}

static void turn(struct bench *bench, double *read_ns, double *delta_ns)
{
	double start_ns = now_ns(), middle_ns;

	must(!source_read(&bench->source, bench->rows), "source_read");
	middle_ns = now_ns();
	series_begin(&bench->metric);
	must(!delta_compute(&bench->delta, bench->rows, 1), "delta_compute");
	series_end(&bench->metric);
	*read_ns = middle_ns - start_ns;
	*delta_ns = now_ns() - middle_ns;
}

static int compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return a < b ? -1 : a > b;
}

static void print(const char *title, double *ns, size_t rounds, uint32_t n_keys)
{
	qsort(ns, rounds, sizeof(*ns), compare);
	printf("  %-26s %9.1f us median, %9.1f us min, %7.1f ns a key\n", title, ns[rounds / 2] / 1e3, ns[0] / 1e3, ns[rounds / 2] / n_keys);
}

static void measure(enum kind kind, uint32_t n_keys, size_t rounds)
{
	struct bench *bench = malloc(sizeof(*bench));
	double ignored;

	must(bench, "memory");
	open_bench(bench, kind, n_keys);
	for (size_t round = 0; round <= rounds; round++) {
		size_t at = round ? round - 1 : 0; /* the first one makes the rows and the series */

		grow(bench);
		turn(bench, &bench->read_ns[at], &bench->delta_ns[at]);
		turn(bench, &ignored, &bench->idle_ns[at]);
	}
	must(bench->rows->n_live == n_keys && bench->metric.n_series == n_keys, "count of keys");
	printf("%s, %" PRIu32 " keys, %" PRIu32 " entries\n", kinds[kind], n_keys, bench->source.max_entries);
	print("reading", bench->read_ns, rounds, n_keys);
	print("deltas, all have grown", bench->delta_ns, rounds, n_keys);
	print("deltas, none has grown", bench->idle_ns, rounds, n_keys);
	close_bench(bench);
	free(bench);
}

int main(int argc, char **argv)
{
	static const uint32_t sizes[] = { 1000, 10000, 100000 };
	size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 41;

	if (!rounds || rounds > ROUNDS_MAX)
		return 2;
	for (enum kind kind = 0; kind < KINDS; kind++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			measure(kind, sizes[i], rounds);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs to read a map, to make deltas of it and to save them, by kind of map and number of keys. All keys grow
 * between readings; what stands still is measured apart. A flat table is measured with more columns too, as if
 * there were more CPUs. CPU time of this thread.
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

#include "collector/reader/reader.h"
#include "metric/delta.h"
#include "metric/series.h"
#include "metric/state.h"

#define ROUNDS_MAX 200
#define BATCH	   1000

struct key {
	uint64_t cgroup, call;
};

enum kind { KIND_TABLE, KIND_HASH, KIND_PERCPU_HASH, KINDS };

static const char *const kinds[] = { "flat table", "hash", "per-CPU hash" };
static const enum bpf_map_type types[] = { BPF_MAP_TYPE_HASH, BPF_MAP_TYPE_HASH, BPF_MAP_TYPE_PERCPU_HASH };

struct bench {
	enum kind kind;
	uint32_t n_keys, n_cpus;
	uint64_t turn;
	struct reader_run run;
	struct reader reader;
	struct metric metric;
	struct delta_metric of;
	struct delta delta;
	struct rows *rows;
	struct store stores[3]; /* two snapshots in turn, and the names */
	struct series_names names;
	double read_ns[ROUNDS_MAX], delta_ns[ROUNDS_MAX], idle_ns[ROUNDS_MAX], save_ns[ROUNDS_MAX];
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
	char unit[32], call[32];
	int err;

	snprintf(unit, sizeof(unit), "service-%" PRIu64 ".service", key->cgroup);
	snprintf(call, sizeof(call), "call_%" PRIu64, key->call);
	err = attributes_add_text(attributes, "bpfpush.systemd.unit", unit, strlen(unit));
	return err ? err : attributes_add_text(attributes, "bpfpush.syscall.name", call, strlen(call));
}

/* The places of bpf/include/table.h, one after the other; each CPU's column has every key. */
static void grow_table(struct bench *bench)
{
	const struct table *table = &bench->reader.table;

	for (uint32_t i = 0; i < bench->n_keys; i++) {
		uint32_t place = 1 + i * 3 / 2;

		if (bench->turn == 1) {
			struct key key = key_of(i);

			must(!bpf_map_update_elem(table->keys_fd, &place, &key, 0), "update");
			table->words[place] = 1;
		}
		for (uint32_t column = 0; column < table->columns; column++)
			++*(uint64_t *)(table->values +
					((size_t)column * table->capacity + place) * table->stride_bytes);
	}
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
		must(!bpf_map_update_batch(bench->reader.fd, keys, values, &n, NULL), "update");
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

static int make_map(enum bpf_map_type type, uint32_t key_bytes, uint32_t value_bytes, uint32_t n)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = type == BPF_MAP_TYPE_ARRAY ? BPF_F_MMAPABLE : 0);
	int fd = bpf_map_create(type, "bench", key_bytes, value_bytes, n, &options);

	must(fd >= 0, "bpf_map_create");
	return fd;
}

static struct table make_table(uint32_t n_keys, uint32_t n_columns)
{
	uint32_t capacity = 64, mask, zero = 0;

	while (capacity < n_keys * 2)
		capacity *= 2;
	mask = capacity - 1;
	struct table table = { .words_fd = make_map(BPF_MAP_TYPE_ARRAY, 4, 8, capacity),
			     .keys_fd = make_map(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct key), capacity),
			     .values_fd = make_map(BPF_MAP_TYPE_ARRAY, 4, 8, capacity * n_columns),
			     .data_fd = make_map(BPF_MAP_TYPE_ARRAY, 4, 4, 1),
			     .capacity = capacity,
			     .columns = n_columns,
			     .key_bytes = sizeof(struct key),
			     .value_bytes = 8 };
	must(!bpf_map_update_elem(table.data_fd, &zero, &mask, 0), "update");
	return table;
}

static void open_bench(struct bench *bench, enum kind kind, uint32_t n_keys, uint32_t n_columns)
{
	bool is_table = kind == KIND_TABLE;
	int fd;

	*bench = (struct bench){ .kind = kind, .n_keys = n_keys, .n_cpus = (uint32_t)libbpf_num_possible_cpus() };
	bench->run = (struct reader_run){ .size_bytes = 8, .count = 1 };
	bench->reader = (struct reader){ .type = (int)types[kind], .key_bytes = sizeof(struct key), .value_bytes = 8,
					 .runs = &bench->run, .n_runs = 1,
					 .is_table = is_table };
	bench->reader.fd = make_map(types[kind], sizeof(struct key), 8, n_keys * 2);
	if (is_table)
		bench->reader.table = make_table(n_keys, n_columns);
	bench->metric = (struct metric){ .scope = "bench", .name = "bench", .unit = "1", .description = "", .divisor = 1 };
	metric_init_series(&bench->metric, NULL);
	bench->of = (struct delta_metric){ .metric = &bench->metric, .factor = 1, .sum_bits = 64 };
	must(!rows_new(sizeof(struct key), 1, 1, &bench->rows), "rows");
	bench->delta = (struct delta){ .metrics = &bench->of, .n_metrics = 1, .attributes = attributes_of };
	must(!reader_open(&bench->reader), "reader_open");
	fd = memfd_create("bench", MFD_CLOEXEC);
	must(fd >= 0 && !stores_open(fd, bench->stores, 3), "stores_open");
	close(fd);
}

static void close_bench(struct bench *bench)
{
	reader_close(&bench->reader);
	rows_free(bench->rows);
	metric_done_series(&bench->metric);
	stores_close(bench->stores, 3);
	index_done(&bench->names.texts);
	close(bench->reader.fd);
	if (bench->kind != KIND_TABLE)
		return;
	close(bench->reader.table.words_fd);
	close(bench->reader.table.keys_fd);
	close(bench->reader.table.values_fd);
	close(bench->reader.table.data_fd);
}

static void turn(struct bench *bench, double *read_ns, double *delta_ns)
{
	double start_ns = now_ns(), middle_ns;

	must(!reader_read(&bench->reader, bench->rows), "reader_read");
	middle_ns = now_ns();
	series_begin(&bench->metric);
	must(!delta_compute(&bench->delta, bench->rows, 1), "delta_compute");
	series_end(&bench->metric);
	*read_ns = middle_ns - start_ns;
	*delta_ns = now_ns() - middle_ns;
}

static double save(struct bench *bench)
{
	struct metric *metric = &bench->metric;
	struct store *out = &bench->stores[bench->turn % 2];
	double start_ns = now_ns();

	store_reset(out);
	if (names_are_stale(&bench->names))
		names_begin(&bench->names, &bench->stores[2]);
	metrics_save(&metric, 1, &bench->names, out);
	rows_save(bench->rows, 1, out);
	must(!out->has_failed && !bench->stores[2].has_failed, "save");
	return now_ns() - start_ns;
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

static void measure(enum kind kind, uint32_t n_keys, uint32_t n_columns, size_t rounds)
{
	struct bench *bench = malloc(sizeof(*bench));
	double ignored;

	must(bench, "memory");
	open_bench(bench, kind, n_keys, n_columns);
	for (size_t round = 0; round <= rounds; round++) {
		size_t at = round ? round - 1 : 0; /* the first one makes the rows and the series */

		grow(bench);
		turn(bench, &bench->read_ns[at], &bench->delta_ns[at]);
		bench->save_ns[at] = save(bench);
		turn(bench, &ignored, &bench->idle_ns[at]);
	}
	must(bench->rows->n_live == n_keys && bench->metric.n_series == n_keys, "count of keys");
	printf("%s, %" PRIu32 " keys", kinds[kind], n_keys);
	if (kind == KIND_TABLE)
		printf(", %" PRIu32 " columns", n_columns);
	putchar('\n');
	print("reading", bench->read_ns, rounds, n_keys);
	print("deltas, all have grown", bench->delta_ns, rounds, n_keys);
	print("deltas, none has grown", bench->idle_ns, rounds, n_keys);
	print("saving", bench->save_ns, rounds, n_keys);
	printf("  %-26s %9.1f bytes a key in each of two snapshots, %.1f in names\n", "saved",
	       (double)bench->stores[0].size / n_keys, (double)bench->stores[2].size / n_keys);
	close_bench(bench);
	free(bench);
}

int main(int argc, char **argv)
{
	static const uint32_t sizes[] = { 1000, 10000, 100000 }, columns[] = { 8, 64, 128 };
	size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 41;

	if (!rounds || rounds > ROUNDS_MAX)
		return 2;
	for (enum kind kind = 0; kind < KINDS; kind++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			measure(kind, sizes[i], 2, rounds);
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		measure(KIND_TABLE, 10000, columns[i], rounds);
	return 0;
}

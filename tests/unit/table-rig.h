/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Flat tables of the running kernel: programs count what the test asks them for, so it knows each number.
 */
#include "test.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collector/table/layout.h"
#include "collector/table/sweep.h"
#include "kernel.h"
#include "metric/state.h"
#include "util/duration.h"

#define KEYS	8192
#define BURST	64 /* tables.bpf.c counts so many keys at once */

struct key {
	uint64_t number, unused;
};

static struct reader_run hot_runs[] = {
	{ .offset_bytes = 0, .size_bytes = 8, .count = 1, .first_cell = 0 },
	{ .offset_bytes = 8, .size_bytes = 8, .count = 1, .first_cell = 1 },
	{ .offset_bytes = 16, .size_bytes = 4, .count = 48, .first_cell = 2 },
	{ .offset_bytes = 208, .size_bytes = 8, .count = 1, .first_cell = 50, .is_maximum = true },
};
static struct reader_run rare_runs[] = { { .size_bytes = 8, .count = 1 } };

/* A table, and what has been seen of it so far. */
struct rig {
	struct bpf_object *object;
	int program, slow_program;
	struct reader reader;
	struct rows *rows;
	struct sweep sweep;
	uint64_t now_ns, saved_ns;
	struct store state; /* of that time */
	uint64_t seen[KEYS], overflow;
	uint32_t idle; /* readings without growth that all rows pretend; 0: as they are */
	bool is_gone;  /* what is said of each owner … */
	uint64_t live_from; /* … of keys before this one; 0: of all … */
	uint64_t live; /* … but this one; 0: of all */
};

static inline int find_program(const struct rig *rig, const char *name)
{
	return bpf_program__fd(bpf_object__find_program_by_name(rig->object, name));
}

static inline void open_rig(struct rig *rig, bool is_hot, uint64_t n_keys, uint32_t n_columns)
{
	const struct table_machine machine = { n_columns, 4 };
	const char *name = is_hot ? "hot" : "rare";
	int fd = memfd_create("state", MFD_CLOEXEC);
	struct table_parts parts;
	uint32_t n_words = 0;

	*rig = (struct rig){ .now_ns = NS_PER_S, .is_gone = true };
	rig->object = bpf_object__open_file(OBJECTS "/tables.bpf.o", NULL);
	assert_non_null(rig->object);
	for (int i = 0; i < 2; i++) {
		assert_true(table_find(rig->object, i ? "rare" : "hot", &parts));
		table_size(&parts, n_keys, &machine, &n_words);
	}
	assert_ok(bpf_object__load(rig->object));
	rig->program = find_program(rig, is_hot ? "add_hot" : "add_rare");
	rig->slow_program = find_program(rig, is_hot ? "add_hot_slowly" : "add_rare_slowly");
	assert_true(table_find(rig->object, name, &parts));
	rig->reader = (struct reader){ .fd = bpf_map__fd(parts.more), .type = BPF_MAP_TYPE_HASH, .is_table = true,
				       .key_bytes = sizeof(struct key),
				       .value_bytes = bpf_map__value_size(parts.values),
				       .runs = is_hot ? hot_runs : rare_runs, .n_runs = is_hot ? 4 : 1,
				       .table = table_from_parts(&parts) };
	assert_ok(rows_new(sizeof(struct key), reader_n_cells(&rig->reader), 1, &rig->rows));
	assert_ok(reader_open(&rig->reader));
	assert_ok(stores_open(fd, &rig->state, 1));
	close(fd);
}

static inline void close_rig(struct rig *rig)
{
	stores_close(&rig->state, 1);
	reader_close(&rig->reader);
	rows_free(rig->rows);
	bpf_object__close(rig->object);
}

static inline void count(const struct rig *rig, uint64_t first, uint64_t n)
{
	uint64_t arguments[2] = { first, n };
	LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = arguments, .ctx_size_in = sizeof(arguments));

	assert_ok(bpf_prog_test_run_opts(rig->program, &options));
}

static inline int enter_cpu(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

static inline unsigned int n_cpus(void)
{
	return (unsigned int)sysconf(_SC_NPROCESSORS_ONLN);
}

static bool is_gone(void *user, uint32_t row)
{
	const struct rig *rig = user;

	uint64_t number = ((const struct key *)rows_key(rig->rows, row))->number;

	return rig->is_gone && number < (rig->live_from ?: KEYS) && (!rig->live || number != rig->live);
}

/* As delta_compute() does: growth is added up, and rows end whose keys are gone. */
static inline void settle(struct rig *rig)
{
	struct rows *rows = rig->rows;

	for (uint32_t row = 0; row < rows->n; row++) {
		uint64_t *cells = rows_cells(rows, row), *previous = rows_previous(rows, row);
		const struct key *key = rows_key(rows, row);

		if (!rows_is_live(rows, row))
			continue;
		if (!rows_is_touched(rows, row)) {
			rows_remove(rows, row);
			continue;
		}
		assert_true(!row || key->number < KEYS);
		*(row ? &rig->seen[key->number] : &rig->overflow) += cells[0] - previous[0];
		rows_at(rows, row)->idle = rig->idle ?: cells[0] == previous[0] ? rows_at(rows, row)->idle + 1 : 0;
		memcpy(previous, cells, rows->n_cells * sizeof(*cells));
		if (rows_at(rows, row)->stay == ROWS_ONCE)
			rows_at(rows, row)->stay = ROWS_GO;
	}
}

static inline void save_rig(const struct rig *rig, struct store *out)
{
	store_reset(out);
	rows_save(rig->rows, 0, out);
	table_save(&rig->reader.table, out);
	assert_false(out->has_failed);
}

/* A collection up to where the state is saved: it also deletes keys. */
static inline void read_unsaved(struct rig *rig)
{
	assert_ok(reader_read(&rig->reader, rig->rows));
	settle(rig);
	sweep_delete(&rig->sweep, &rig->reader, rig->rows);
}

static inline void read_rig(struct rig *rig)
{
	read_unsaved(rig);
	save_rig(rig, &rig->state);
	rig->saved_ns = ++rig->now_ns;
}

static inline uint64_t sweep_for(struct rig *rig, int64_t left_ns)
{
	const struct sweep_owner owner = { is_gone, rig };
	struct sweep_turn turn = { rig->now_ns, rig->saved_ns, left_ns };

	return sweep_go_on(&rig->sweep, &rig->reader, rig->rows, &owner, &turn);
}

/* A pass that is due, up to where the places are retired. */
static inline void retire(struct rig *rig)
{
	rig->now_ns += 10 * NS_PER_S;
	while (!sweep_for(rig, 2000000))
		;
	assert_int_equal(rig->sweep.phase, rig->sweep.n_retired ? SWEEP_GRACE : SWEEP_IDLE);
}

/* A whole pass. */
static inline void sweep(struct rig *rig)
{
	rig->now_ns += 10 * NS_PER_S;
	while (sweep_for(rig, 2000000) != SWEEP_DONE)
		usleep(100);
}

/* The process was killed. Another one opens the table, and knows what is in the state. */
static inline void follow_state(struct rig *rig, const struct store *state)
{
	struct stored in = { state->data, state->data + state->size, false };
	const struct restored restored = { 0 };
	const struct delta none = { 0 };

	rig->sweep = (struct sweep){ 0 };
	assert_ok(rows_new(sizeof(struct key), reader_n_cells(&rig->reader), 1, &rig->rows));
	assert_ok(reader_open(&rig->reader));
	assert_ok(rows_restore(&none, rig->rows, &in, &restored));
	assert_ok(table_restore(&rig->reader.table, &in));
	assert_ptr_equal(in.at, in.end);
}

static inline void follow(struct rig *rig)
{
	reader_close(&rig->reader);
	rows_free(rig->rows);
	follow_state(rig, &rig->state);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process is killed after each instruction of a removal: whatever it had done by then, the process after it sees
 * what was counted since the last snapshot, once.
 */
#include "flat-rig.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#define KEY    7
#define BEFORE 30 /* counted before the snapshot … */
#define SINCE  5  /* … and after it */

/* What the process after it begins with. */
struct snapshot {
	struct key key;
	uint64_t previous[64];
	uint64_t *bytes, *bytes_done; /* of removals */
	struct store store;
};

static void take_snapshot(struct rig *rig, struct snapshot *snapshot, struct removals *removals)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	struct store *store = &snapshot->store;
	uint32_t row;

	snapshot->key = (struct key){ .number = KEY };
	row = rows_find(rig->rows, &snapshot->key);
	assert_int_not_equal(row, ROWS_OVERFLOW);
	memcpy(snapshot->previous, rows_previous(rig->rows, row), rig->rows->n_cells * sizeof(uint64_t));
	assert_ok(stores_open(fd, store, 1));
	close(fd);
	snapshot->bytes = (uint64_t *)store_reserve(store, 16);
	snapshot->bytes_done = snapshot->bytes + 1;
	store->size = 16;
	*removals = (struct removals){ store, 16, snapshot->bytes, snapshot->bytes_done };
}

/* The records of a later process, as it finds them now. */
static unsigned int replay(const struct snapshot *snapshot, struct source *source, struct rows *rows)
{
	struct stored in = { snapshot->store.data + 16, snapshot->store.data + 16 + *snapshot->bytes, false };
	const uint8_t *done = in.at + *snapshot->bytes_done;
	unsigned int n = 0;

	for (; in.at < in.end; n++) {
		bool is_unfinished = in.at >= done;
		struct stored record = stored_block(&in);
		uint64_t cells[64];
		struct removal removal = { .binding = (uint32_t)stored_number(&record) };

		assert_int_equal(removal.binding, 3);
		removal.place = (uint32_t)stored_number(&record);
		removal.key = stored_bytes(&record, rows->key_bytes);
		stored_numbers(&record, cells, rows->n_cells);
		removal.cells = cells;
		assert_false(record.is_bad);
		assert_ptr_equal(record.at, record.end);
		assert_ok(source_removed(source, rows, &removal, is_unfinished));
	}
	assert_true(n <= 1);
	return n;
}

/* The table as a new process would open it, with its own rows. */
static void assert_exact(const struct rig *rig, const struct snapshot *snapshot)
{
	struct source source = rig->source;
	struct flat *flat = &source.flat;
	struct rows *rows;
	uint32_t row;

	flat->place_rows = calloc(flat->capacity, sizeof(*flat->place_rows));
	flat->cells = calloc(64, sizeof(uint64_t));
	assert_ok(rows_new(sizeof(struct key), rig->rows->n_cells, 1, &rows));
	rows_begin(rows);
	assert_ok(rows_touch(rows, &snapshot->key, &row));
	memcpy(rows_previous(rows, row), snapshot->previous, rows->n_cells * sizeof(uint64_t));
	replay(snapshot, &source, rows);
	rows_begin(rows);
	assert_ok(flat_read(flat, rows));
	rows_end(rows);
	assert_true(rows_is_touched(rows, row));
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(rows_cells(rows, row)[i] - rows_previous(rows, row)[i],
				 rig->seen[KEY] ? SINCE * snapshot->previous[i] / BEFORE : 0);
	rows_free(rows);
	free(flat->place_rows);
	free(flat->cells);
}

static uint32_t place_of(const struct rig *rig, uint32_t row)
{
	uint32_t place = 1;

	while (place < rig->source.flat.n_places && rig->source.flat.place_rows[place] != row)
		place++;
	assert_true(place < rig->source.flat.n_places);
	return place;
}

/* What a replay changes of the table, so that the killed process can go on to its next instruction. */
static void swap_place(const struct flat *flat, uint32_t place, uint8_t *saved, bool is_back)
{
	for (uint32_t column = 0; column <= flat->columns; column++) {
		uint8_t *at = column == flat->columns ? (uint8_t *)&flat->words[place] :
			flat->values + ((size_t)column * flat->capacity + place) * flat->stride_bytes;
		size_t size = column == flat->columns ? 8 : flat->stride_bytes;

		memcpy(is_back ? at : saved, is_back ? saved : at, size);
		saved += size;
	}
}

static void a_kill_at_any_instruction_loses_and_repeats_nothing(void **state)
{
	uint8_t saved[8192];
	struct removals removals;
	struct snapshot snapshot;
	unsigned int n_steps = 0;
	struct rig rig;
	uint32_t place;
	int status;
	pid_t pid;

	open_rig(&rig, true, 40, 3);
	for (int i = 0; i < BEFORE; i++)
		count(&rig, KEY, 1);
	read_rig(&rig);
	take_snapshot(&rig, &snapshot, &removals);
	for (int i = 0; i < SINCE; i++)
		count(&rig, KEY, 1);
	place = place_of(&rig, rows_find(rig.rows, &snapshot.key));
	flat_retire(&rig.source.flat, place);
	pid = fork();
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		flat_free(&rig.source.flat, rig.rows, place, &removals, 3);
		_exit(0);
	}
	assert_true(pid > 0);
	for (;; n_steps++) {
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (!WIFSTOPPED(status))
			break;
		swap_place(&rig.source.flat, place, saved, false);
		assert_exact(&rig, &snapshot);
		swap_place(&rig.source.flat, place, saved, true);
		assert_ok(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL));
	}
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	assert_true(n_steps > 100);
	assert_int_equal(*snapshot.bytes_done, *snapshot.bytes);
	assert_int_not_equal(*snapshot.bytes, 0);
	assert_exact(&rig, &snapshot);
	stores_close(&snapshot.store, 1);
	close_rig(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kill_at_any_instruction_loses_and_repeats_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

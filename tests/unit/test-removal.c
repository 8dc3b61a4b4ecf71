/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process is killed after each instruction of a removal, and of saving the state in the middle of it: whatever it
 * had done by then, the process after it sees what was counted since the first state, once.
 */
#include "table-rig.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#define KEY    7
#define BEFORE 30 /* counted before the first state … */
#define SINCE  5  /* … and after it */

/* What the process after it finds; the stores are shared memory. */
struct states {
	struct store *stores[2];
	volatile size_t *sizes;	  /* of what is in them … */
	volatile uint32_t *which; /* … and the one that is whole */
};

static void open_states(struct states *states, struct rig *rig, struct store *second)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	uint8_t *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(shared, MAP_FAILED);
	assert_ok(stores_open(fd, second, 1));
	close(fd);
	*states = (struct states){ { &rig->state, second }, (size_t *)shared, (uint32_t *)(shared + 64) };
	states->sizes[0] = rig->state.size;
}

/* The table as a new process opens it, with its own rows. */
static void assert_exact(const struct rig *rig, const struct states *states)
{
	struct rig other = *rig;
	struct store state = *states->stores[*states->which];
	const struct key key = { .number = KEY };
	uint32_t row;

	state.size = states->sizes[*states->which];
	other.reader.memory = NULL;
	follow_state(&other, &state);
	assert_ok(reader_read(&other.reader, other.rows));
	row = rows_find(other.rows, &key);
	assert_int_not_equal(row, ROWS_OVERFLOW);
	assert_true(rows_is_touched(other.rows, row));
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(rows_cells(other.rows, row)[i] - rows_previous(other.rows, row)[i],
				 SINCE * (i ? KEY : 1));
	reader_close(&other.reader);
	rows_free(other.rows);
}

static uint32_t place_of(const struct rig *rig, uint32_t row)
{
	uint32_t place = 1;

	while (place < rig->reader.table.n_places && rig->reader.table.place_rows[place] != row)
		place++;
	assert_true(place < rig->reader.table.n_places);
	return place;
}

/* What another process changes of the table, so that the killed one can go on to its next instruction. */
static void swap_place(const struct table *table, uint32_t place, uint8_t *saved, bool is_back)
{
	for (uint32_t column = 0; column <= table->columns; column++) {
		uint8_t *at = column == table->columns ? (uint8_t *)&table->words[place] :
			table->values + ((size_t)column * table->capacity + place) * table->stride_bytes;
		size_t size = column == table->columns ? 8 : table->stride_bytes;

		memcpy(is_back ? at : saved, is_back ? saved : at, size);
		saved += size;
	}
}

/* All that is done between the grace period and a place that is vacant. */
static void remove_place(struct rig *rig, const struct states *states, uint32_t place)
{
	table_take_out(&rig->reader.table, rig->rows, place);
	save_rig(rig, states->stores[1]);
	states->sizes[1] = states->stores[1]->size;
	*states->which = 1;
	table_clear(&rig->reader.table, place);
}

static void a_kill_at_any_instruction_loses_and_repeats_nothing(void **state)
{
	const struct key key = { .number = KEY };
	unsigned int n_steps[2] = { 0 };
	uint8_t saved[8192];
	struct states states;
	struct store second;
	struct rig rig;
	uint32_t place;
	int status;
	pid_t pid;

	open_rig(&rig, true, 40, 3);
	for (int i = 0; i < BEFORE; i++)
		count(&rig, KEY, 1);
	read_rig(&rig);
	open_states(&states, &rig, &second);
	for (int i = 0; i < SINCE; i++)
		count(&rig, KEY, 1);
	place = place_of(&rig, rows_find(rig.rows, &key));
	table_retire(&rig.reader.table, place);
	pid = fork();
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		remove_place(&rig, &states, place);
		_exit(0);
	}
	assert_true(pid > 0);
	for (;; n_steps[*states.which]++) {
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (!WIFSTOPPED(status))
			break;
		swap_place(&rig.reader.table, place, saved, false);
		assert_exact(&rig, &states);
		swap_place(&rig.reader.table, place, saved, true);
		assert_ok(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL));
	}
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	assert_true(n_steps[0] > 100 && n_steps[1] > 20);
	assert_exact(&rig, &states);
	/* The place serves again. */
	assert_int_equal(rig.reader.table.words[place] & 1, 0);
	stores_close(&second, 1);
	close_rig(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kill_at_any_instruction_loses_and_repeats_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

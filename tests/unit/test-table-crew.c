/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both CPUs count in flat tables while the agent's side reads, grows and removes; not one count may be
 * lost, or be found under another key.
 */
#include "table-rig.h"

#include <pthread.h>

#define THREADS 4
#define PASSES	6
#define SAME_KEYS (80 * BURST)

struct worker {
	struct rig *rig;
	pthread_barrier_t *barrier;
	pthread_t thread;
	unsigned int cpu;
	uint32_t n_keys;
	const bool *stop; /* until then, keys at random; NULL: each key once, in step with the others */
	uint64_t random;
	uint64_t counted[KEYS];
	int errors;
};

static uint64_t draw(struct worker *worker)
{
	worker->random ^= worker->random << 13;
	worker->random ^= worker->random >> 7;
	worker->random ^= worker->random << 17;
	return worker->random;
}

/* cmocka's assertions belong to the main thread. */
static void burst(struct worker *worker, int program, uint64_t first, uint64_t n)
{
	uint64_t arguments[2] = { first, n };
	LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = arguments, .ctx_size_in = sizeof(arguments));

	worker->errors += bpf_prog_test_run_opts(program, &options) != 0;
	for (uint64_t i = 0; i < n; i++)
		worker->counted[first + i]++;
}

static void *work(void *user)
{
	struct worker *worker = user;

	worker->errors += enter_cpu(worker->cpu) != 0;
	pthread_barrier_wait(worker->barrier);
	for (uint64_t first = 0; !worker->stop && first < worker->n_keys; first += BURST)
		burst(worker, worker->rig->program, first, BURST);
	/* Now and then a program counts a while after it has found the place. */
	while (worker->stop && !__atomic_load_n(worker->stop, __ATOMIC_RELAXED)) {
		bool is_slow = draw(worker) % 4 == 0;
		uint64_t n = is_slow ? 1 : 1 + draw(worker) % BURST;

		burst(worker, is_slow ? worker->rig->slow_program : worker->rig->program,
		      draw(worker) % (worker->n_keys - n), n);
	}
	return NULL;
}

struct crew {
	pthread_barrier_t barrier;
	struct worker *workers;
	unsigned int n;
};

static void crew_start(struct crew *crew, struct rig *rig, uint32_t n_keys, const bool *stop)
{
	crew->n = THREADS;
	crew->workers = calloc(crew->n, sizeof(*crew->workers));
	assert_non_null(crew->workers);
	pthread_barrier_init(&crew->barrier, NULL, crew->n);
	for (unsigned int i = 0; i < crew->n; i++) {
		crew->workers[i] = (struct worker){ .rig = rig, .barrier = &crew->barrier, .cpu = i % n_cpus(),
						    .n_keys = n_keys, .stop = stop, .random = 88172645463325252u + i };
		assert_ok(pthread_create(&crew->workers[i].thread, NULL, work, &crew->workers[i]));
	}
}

static bool crew_is_done(struct crew *crew)
{
	bool is_done = true;

	for (unsigned int i = 0; i < crew->n; i++) {
		struct worker *worker = &crew->workers[i];

		if (worker->thread && pthread_tryjoin_np(worker->thread, NULL))
			is_done = false;
		else
			worker->thread = 0;
	}
	return is_done;
}

/* Returns how many counts there were; each of them was seen, those of named keys under their names. */
static uint64_t crew_check(struct crew *crew, const struct rig *rig, bool may_overflow)
{
	uint64_t total = 0, missing = 0;

	for (uint32_t key = 0; key < KEYS; key++) {
		uint64_t counted = 0;

		for (unsigned int i = 0; i < crew->n; i++)
			counted += crew->workers[i].counted[key];
		total += counted;
		missing += counted - rig->seen[key];
		if (may_overflow)
			assert_true(rig->seen[key] <= counted);
		else
			assert_int_equal(rig->seen[key], counted);
	}
	assert_int_equal(missing, rig->overflow);
	for (unsigned int i = 0; i < crew->n; i++)
		assert_int_equal(crew->workers[i].errors, 0);
	pthread_barrier_destroy(&crew->barrier);
	free(crew->workers);
	return total;
}

static void insert_at_once(bool is_hot, uint64_t n_room, uint32_t n_columns, bool may_overflow)
{
	struct crew crew;
	struct rig rig;

	open_rig(&rig, is_hot, n_room, n_columns);
	crew_start(&crew, &rig, SAME_KEYS, NULL);
	while (!crew_is_done(&crew))
		read_rig(&rig);
	read_rig(&rig);
	assert_int_equal(crew_check(&crew, &rig, may_overflow), THREADS * SAME_KEYS);
	/* A key has a second place only where its home moved when the rest of the table was opened. */
	if (!may_overflow)
		assert_true(rig.reader.table.n_live < SAME_KEYS + 512);
	close_rig(&rig);
}

static void both_cpus_insert_the_same_keys(void **state)
{
	insert_at_once(true, 6000, n_cpus() + 1, false);
	insert_at_once(true, 6000, 1, false); /* all of them late CPUs */
	insert_at_once(false, 6000, 1, false);
	insert_at_once(false, 1000, 1, true); /* spilled, and overflowing */
}

/* Keys come and go as fast as grace periods allow. They pretend to be idle, so even those that are being counted go. */
static void remove_at_once(bool is_hot, uint64_t n_room, uint32_t n_keys, bool may_overflow)
{
	bool stop = false;
	struct crew crew;
	struct rig rig;

	open_rig(&rig, is_hot, n_room, n_cpus() + 1);
	rig.idle = 1; /* too little for the hash map, where removal is safe only for idle keys */
	crew_start(&crew, &rig, n_keys, &stop);
	for (int n_passes = 0; n_passes < PASSES;) {
		read_rig(&rig);
		rig.now_ns += 10 * NS_PER_S;
		n_passes += sweep_for(&rig, 100000) == SWEEP_DONE;
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	while (!crew_is_done(&crew))
		;
	read_rig(&rig);
	crew_check(&crew, &rig, may_overflow);
	close_rig(&rig);
}

static void keys_that_count_are_removed_without_loss(void **state)
{
	remove_at_once(true, 2000, 1000, false);
	remove_at_once(false, 2000, 1000, false);
	remove_at_once(true, 100, 1000, true);
	remove_at_once(false, 6000, 3000, false); /* and the table grows */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_cpus_insert_the_same_keys),
		cmocka_unit_test(keys_that_count_are_removed_without_loss),
	};

	return kernel_refuses_programs() ? KERNEL_SKIPPED : cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spool against a model. Sessions are processes: each pushes growth, merges, delivers and ends at a random call
 * that changes a file, before it, after it or in the middle of what it writes. What the agent keeps in memory over its
 * end is in a shared mapping here. What has been delivered in the end is what has grown.
 */
#include "spool-rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "export/spool/requests.h"

#define WINDOWS_MAX 12 /* more are merged */
#define REQUESTS    3  /* of a window */
#define IDS	    (1 << 16)
#define SEEDS	    12
#define SESSIONS    25

/* --- calls that change files ---------------------------------------------------------------------------------- */

static unsigned int n_calls, end_at, fail_at; /* the how many-th; 0: never */

static bool counts(void)
{
	n_calls++;
	if (n_calls == end_at && draw(2))
		_exit(0);
	return n_calls >= fail_at && fail_at;
}

static ssize_t counted(ssize_t n)
{
	if (n_calls == end_at)
		_exit(0);
	return n;
}

ssize_t __real_pwritev64(int fd, const struct iovec *parts, int n, off_t offset);
ssize_t __wrap_pwritev64(int fd, const struct iovec *parts, int n, off_t offset);
ssize_t __wrap_pwritev64(int fd, const struct iovec *parts, int n, off_t offset)
{
	bool is_cut = counts() || n_calls == end_at;
	struct iovec less[2] = { parts[0], parts[1] };

	if (!is_cut)
		return __real_pwritev64(fd, parts, n, offset);
	if (less[1].iov_len)
		less[1].iov_len = draw((unsigned int)less[1].iov_len);
	return counted(__real_pwritev64(fd, less, 2, offset));
}

ssize_t __real_pwrite64(int fd, const void *data, size_t size, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t size, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t size, off_t offset)
{
	(void)counts(); /* in place: there is always room */
	return counted(__real_pwrite64(fd, data, size, offset));
}

int __real_ftruncate64(int fd, off_t size);
int __wrap_ftruncate64(int fd, off_t size);
int __wrap_ftruncate64(int fd, off_t size)
{
	(void)counts();
	return (int)counted(__real_ftruncate64(fd, size));
}

int __real_unlinkat(int parent, const char *name, int flags);
int __wrap_unlinkat(int parent, const char *name, int flags);
int __wrap_unlinkat(int parent, const char *name, int flags)
{
	(void)counts();
	return (int)counted(__real_unlinkat(parent, name, flags));
}

/* --- a process ------------------------------------------------------------------------------------------------ */

/* What outlives a process: the kernel's count, the receiver's, and the agent's state. */
static struct world {
	uint64_t grown, delivered, n_taken;
	bool has[IDS]; /* the receiver: whether it has a request */
	uint64_t next_id, time_ns;
	struct saved {
		uint64_t read, n_delivered; /* of grown; requests */
		uint64_t transaction;
		uint64_t replaced[1024];
		size_t n_replaced, n_items;
		struct value items[WINDOWS_MAX * REQUESTS * 4]; /* that are not in the spool */
		uint64_t times_ns[WINDOWS_MAX * REQUESTS * 4];
		uint8_t marks[WINDOWS_MAX * REQUESTS * 4];
	} saved[2];
	unsigned int current;
} *world;

static void begin(struct process *process, struct saved *saved)
{
	uint64_t points[N_POINTS];

	init(process);
	if (saved) {
		process->read = saved->read;
		process->n_delivered = saved->n_delivered;
		process->spool.transaction = saved->transaction;
		for (size_t i = 0; i < saved->n_replaced; i++)
			spool_replace(&process->spool, saved->replaced[i], 0);
		for (size_t i = 0; i < saved->n_items; i++) {
			process->n_delivered += saved->marks[i] == POINTS_DELIVERED;
			if (saved->marks[i] == POINTS_DELIVERED)
				continue;
			put(process, saved->items[i].id, saved->items[i].value, saved->times_ns[i]);
			TAILQ_LAST(&process->queue.items, queue_items)->is_doubtful = saved->marks[i];
			TAILQ_LAST(&process->queue.items, queue_items)->mark = &saved->marks[i];
		}
	}
	assert_ok(spool_open(&process->spool, &process->queue, points));
	assert_int_equal(points[POINTS_NOT_SENT], 0);
	process->n_delivered += points[POINTS_DELIVERED];
	queue_aim(&process->queue);
}

static void save(const struct process *process)
{
	struct saved *saved = &world->saved[!world->current];
	const struct spool *spool = &process->spool;
	struct queue_item *item;

	saved->read = process->read;
	saved->n_delivered = process->n_delivered;
	saved->transaction = spool->transaction;
	saved->n_replaced = saved->n_items = 0;
	for (size_t i = 0; i < spool->n_replaced; i++)
		saved->replaced[saved->n_replaced++] = spool->replaced[i].place;
	TAILQ_FOREACH(item, &process->queue.items, link)
		if (!item->place) {
			saved->times_ns[saved->n_items] = item->time_ns;
			saved->marks[saved->n_items] = queue_mark(&process->queue, item);
			item->mark = &saved->marks[saved->n_items];
			memcpy(&saved->items[saved->n_items++], item->data, sizeof(struct value));
		}
	world->current ^= 1;
}

/* The two oldest windows become one, if they can. */
static bool merge(struct process *process)
{
	struct queue *queue = &process->queue;
	uint64_t sum = 0, times_ns[2] = { 0 }, n_windows = 0;
	struct queue_item *item, *next, *gone[WINDOWS_MAX * REQUESTS];
	size_t n = 0;

	TAILQ_FOREACH(item, &queue->items, link) {
		if (!n_windows || item->time_ns != times_ns[n_windows - 1])
			times_ns[n_windows++ % 2] = item->time_ns;
		if (n_windows > 2 || item->is_doubtful || queue_load(queue, item))
			break;
		gone[n++] = item;
	}
	for (size_t i = 0; i < n; i++)
		sum += ((struct value *)gone[i]->data)->value;
	if (n < 2)
		return false;
	put(process, world->next_id++, sum, times_ns[1]);
	next = TAILQ_LAST(&queue->items, queue_items);
	TAILQ_REMOVE(&queue->items, next, link);
	TAILQ_INSERT_BEFORE(gone[0], next, link);
	for (size_t i = 0; i < n; i++)
		queue_remove(queue, gone[i]);
	queue_aim(queue);
	return true;
}

static void push(struct process *process)
{
	uint64_t growth, part;

	world->grown += draw(1000);
	growth = world->grown - process->read;
	process->read = world->grown;
	world->time_ns += 10;
	for (unsigned int i = 0; i < REQUESTS; i++) {
		part = i + 1 < REQUESTS ? growth / 2 : growth;
		growth -= part;
		put(process, world->next_id++, part, world->time_ns);
	}
	while (process->queue.n_items > (WINDOWS_MAX - 2) * REQUESTS && merge(process))
		;
	(void)spool_commit(&process->spool, &process->queue);
	queue_aim(&process->queue);
	save(process);
}

static void deliver(struct process *process)
{
	struct queue_item *item = queue_begin(&process->queue);
	struct value *value;

	if (!item)
		return;
	assert_ok(queue_load(&process->queue, item));
	value = (struct value *)item->data;
	assert_int_equal(item->size, sizeof(*value));
	for (size_t i = 0; i < sizeof(value->filler); i++)
		assert_int_equal((uint8_t)value->filler[i], (uint8_t)value->id);
	if (!draw(4)) {
		queue_end(&process->queue, POINTS_PUSHED); /* it does not answer */
		return;
	}
	if (!world->has[value->id]) /* what was being sent when its process ended comes again */
		world->delivered += value->value;
	world->n_taken += !world->has[value->id];
	world->has[value->id] = true;
	process->n_delivered++;
	queue_end(&process->queue, POINTS_DELIVERED);
}

static uint64_t bytes_on_disk(void)
{
	uint64_t bytes = 0;
	char path[128];
	struct stat status;

	for (unsigned int i = 1; i < 4096; i++) {
		snprintf(path, sizeof(path), "%s/spool/name/%08x", directory, i);
		bytes += stat(path, &status) ? 0 : (uint64_t)status.st_size;
	}
	return bytes;
}

static void session(bool has_state)
{
	struct process process;
	uint64_t before;

	begin(&process, has_state ? &world->saved[world->current] : NULL);
	if (!has_state)
		process.read = world->grown; /* counts from here on */
	save(&process);
	end_at = draw(3) ? 1 + draw(120) : 0;
	fail_at = draw(4) ? 0 : 1 + draw(40);
	n_calls = 0;
	for (unsigned int n = 5 + draw(20); n; n--) {
		before = world->time_ns;
		if (draw(2))
			push(&process);
		for (unsigned int i = draw(5); i && world->time_ns > before; i--)
			deliver(&process);
		if (fail_at && n_calls > fail_at + 20)
			fail_at = 0; /* there is room again */
	}
	assert_true(bytes_on_disk() < 2 * LIMIT_BYTES);
	_exit(0);
}

static void run_session(bool has_state)
{
	pid_t pid = fork();
	int status;

	seed = seed * 7 + 1;
	if (!pid) {
		if (!freopen("/dev/null", "w", stdout)) /* a failure goes on as a group of tests of its own */
			_exit(1);
		session(has_state);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void nothing_is_lost_or_counted_twice_wherever_a_process_ends(void **state)
{
	struct process process;

	unsigned int first = (unsigned int)strtoul(getenv("SPOOL_SEED") ?: "1", NULL, 10);

	for (unsigned int i = first; i < first + SEEDS; i++) {
		make_directory();
		memset(world, 0, sizeof(*world));
		world->saved[0].transaction = UINT64_MAX;
		seed = i;
		for (unsigned int j = 0; j < SESSIONS; j++)
			run_session(true);
		begin(&process, &world->saved[world->current]);
		fail_at = end_at = 0;
		push(&process);
		while (process.queue.n_items)
			deliver(&process);
		if (world->delivered != world->grown)
			print_message("seed %u\n", i);
		assert_int_equal(world->delivered, world->grown);
		assert_int_equal(process.n_delivered, world->n_taken);
		for (int j = 0; j < 2; j++)
			push(&process);
		assert_true(process.spool.n_segments <= 2);
		end(&process);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_lost_or_counted_twice_wherever_a_process_ends),
	};
	int n;

	world = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (world == MAP_FAILED || !mkdtemp(directory))
		return 1;
	n = cmocka_run_group_tests(tests, NULL, NULL);
	remove_directory();
	return n;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A spool that somebody has changed: what is lost is counted exactly, or its number is said not to be known. */
#include "spool-rig.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "export/spool/crc32c.h"
#include "export/spool/segment.h"

#define ITEMS 6

static int try_open(void)
{
	struct process process;
	uint64_t points[N_POINTS];
	int err;

	init(&process);
	err = spool_open(&process.spool, &process.queue, points);
	end(&process);
	return err;
}

static void write_items(void)
{
	struct process process;
	uint64_t points[N_POINTS];

	make_directory();
	init(&process);
	assert_ok(spool_open(&process.spool, &process.queue, points));
	assert_error(try_open(), EWOULDBLOCK); /* there is one already */
	for (unsigned int i = 0; i < ITEMS; i++) {
		put(&process, i, i, i / 2 + 1);
		if (i % 2)
			assert_ok(spool_commit(&process.spool, &process.queue));
	}
	end(&process);
}

static size_t read_file(uint8_t *bytes, size_t size)
{
	char path[128];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/spool/name/00000001", directory);
	fd = open(path, O_RDONLY);
	n = read(fd, bytes, size);
	close(fd);
	assert_true(n > 0 && (size_t)n < size);
	return (size_t)n;
}

/* The only segment. */
static void write_file(const uint8_t *bytes, size_t size)
{
	char path[128];
	int fd;

	for (unsigned int i = 1; i < 4; i++) {
		snprintf(path, sizeof(path), "%s/spool/name/%08x", directory, i);
		(void)unlink(path);
	}
	snprintf(path, sizeof(path), "%s/spool/name/00000001", directory);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, bytes, size), size);
	close(fd);
}

/* By count_items(). */
static struct spool_found found;
static uint64_t damaged, lost; /* records; points */

/* How many items are whole; they are in order. */
static unsigned int count_items(void)
{
	struct process process;
	uint64_t points[N_POINTS], last = 0;
	struct queue_item *item;
	unsigned int n = 0;

	init(&process);
	assert_ok(spool_open(&process.spool, &process.queue, points));
	lost = points[POINTS_NOT_SENT];
	damaged = process.spool.n_damaged;
	found = process.spool.found;
	TAILQ_FOREACH(item, &process.queue.items, link) {
		const struct value *value;

		assert_ok(queue_load(&process.queue, item));
		value = (struct value *)item->data;
		assert_true(!n || value->id > last);
		assert_int_equal(value->id, value->value);
		last = value->id;
		n++;
	}
	assert_int_equal(n, points[POINTS_PUSHED] - lost);
	end(&process);
	return n;
}

static void a_byte_that_changed_costs_its_record(void **state)
{
	static uint8_t bytes[1 << 16];
	size_t size;

	write_items();
	size = read_file(bytes, sizeof(bytes));
	for (size_t i = 0; i < size; i++) {
		uint8_t flip = (uint8_t)(1u << i % 8);
		unsigned int n;

		bytes[i] ^= flip;
		write_file(bytes, size);
		n = count_items();
		assert_in_range(n, ITEMS - 1, ITEMS);
		assert_true(n == ITEMS || damaged);
		assert_int_equal(damaged, found.n_damaged);
		assert_int_equal(lost, ITEMS - n);
		assert_int_equal(found.n_unknown, 0);
		assert_int_equal(count_items(), n); /* it is not said again */
		assert_int_equal(damaged + lost, 0);
		bytes[i] ^= flip;
	}
}

static void of_what_is_cut_whole_windows_stay(void **state)
{
	static uint8_t bytes[1 << 16];
	unsigned int last = 0;
	size_t size;

	write_items();
	size = read_file(bytes, sizeof(bytes));
	for (size_t i = 0; i <= size; i++) {
		unsigned int n;

		write_file(bytes, i);
		n = count_items();
		assert_true(n == last || n == last + 2);
		assert_int_equal(lost, 0);
		assert_true(!damaged || i % 8 < 4); /* unless too little of a record is there to know one */
		last = n;
		assert_int_equal(count_items(), n); /* and it is the same again */
	}
	assert_int_equal(last, ITEMS);
}

static void any_bytes_are_read(void **state)
{
	static uint8_t bytes[20000];

	seed = 1;
	write_items();
	for (unsigned int i = 0; i < 200; i++) {
		for (size_t j = 0; j < sizeof(bytes); j++)
			bytes[j] = (uint8_t)draw(256);
		write_file(bytes, 1 + draw(sizeof(bytes)));
		assert_int_equal(count_items(), 0);
		assert_true(damaged);
	}
}

static void links_and_directories_of_others_are_left_alone(void **state)
{
	char path[128], other[128];
	struct stat status;

	make_directory();
	snprintf(path, sizeof(path), "%s/spool", directory);
	assert_ok(symlink("/tmp", path));
	assert_error(try_open(), ENOTDIR);
	assert_ok(unlink(path));
	assert_ok(mkdir(path, 0700));
	assert_ok(chmod(path, 0777));
	assert_error(try_open(), ENOTSUP);
	write_items();
	snprintf(path, sizeof(path), "%s/spool/name/00000001", directory);
	snprintf(other, sizeof(other), "%s/spool/name/00000009", directory);
	assert_ok(link(path, other));
	assert_int_equal(count_items(), 0); /* both names have two links */
	assert_int_equal(damaged, 2);
	assert_ok(unlink(other));
	assert_ok(symlink(path, other));
	assert_int_equal(count_items(), ITEMS);
	assert_int_equal(damaged, 1);
	assert_int_equal(found.unread, 9);
	assert_int_equal(found.unread_error, -ELOOP);
	assert_ok(lstat(other, &status));
	assert_true(S_ISLNK(status.st_mode));
	assert_ok(unlink(other));
	assert_ok(mkfifo(other, 0600));
	assert_int_equal(count_items(), ITEMS);
	if (geteuid())
		return;
	snprintf(path, sizeof(path), "%s/spool/name", directory);
	assert_ok(chown(path, 1, 1));
	assert_error(try_open(), ENOTSUP);
}

static void requests_of_another_format_are_lost_and_counted(void **state)
{
	struct process process;
	uint64_t points[N_POINTS];

	write_items();
	init(&process);
	process.spool.format = 2;
	assert_ok(spool_open(&process.spool, &process.queue, points));
	assert_int_equal(points[POINTS_PUSHED], ITEMS);
	assert_int_equal(points[POINTS_NOT_SENT], ITEMS);
	assert_int_equal(process.spool.found.n_foreign, ITEMS);
	assert_int_equal(process.spool.n_damaged, 0);
	end(&process);
}

/* One item and its commit, in a segment of its own. */
static void write_segment(unsigned int id)
{
	struct process process;
	uint64_t points[N_POINTS];

	init(&process);
	assert_ok(spool_open(&process.spool, &process.queue, points));
	put(&process, id, id, id);
	assert_ok(spool_commit(&process.spool, &process.queue));
	end(&process);
}

static void what_cannot_be_counted_is_said_so_and_once(void **state)
{
	char path[128];
	int fd;

	write_items();
	for (unsigned int i = 0; i < 3; i++)
		write_segment(ITEMS + i);
	snprintf(path, sizeof(path), "%s/spool/name/00000003", directory);
	assert_ok(unlink(path));
	assert_int_equal(count_items(), ITEMS + 2);
	assert_int_equal(found.unread, 3);
	assert_int_equal(found.unread_error, -ENOENT);
	for (unsigned int i = 0; i < 3; i++)
		write_segment(ITEMS + 3 + i); /* what is before the gap is written again, and goes */
	assert_int_equal(count_items(), ITEMS + 5);
	assert_int_equal(damaged, 0);
	write_items();
	write_segment(ITEMS);
	snprintf(path, sizeof(path), "%s/spool/name/00000001", directory);
	assert_ok(unlink(path));
	snprintf(path, sizeof(path), "%s/spool/name/00000002", directory);
	fd = open(path, O_WRONLY);
	assert_int_equal(write(fd, "?", 1), 1);
	close(fd);
	assert_int_equal(count_items(), 0);
	assert_int_equal(found.n_unknown, 1);
	assert_int_equal(damaged + lost, 1);
	assert_int_equal(count_items() + damaged, 0);
}

static void crc32c_is_that_of_the_rfc(void **state)
{
	uint8_t zeros[32] = { 0 };

	assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(crc32c(0, zeros, sizeof(zeros)), 0x8a9136aa); /* RFC 3720, B.4 */
	assert_int_equal(crc32c(crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc32c_is_that_of_the_rfc),
		cmocka_unit_test(a_byte_that_changed_costs_its_record),
		cmocka_unit_test(of_what_is_cut_whole_windows_stay),
		cmocka_unit_test(any_bytes_are_read),
		cmocka_unit_test(links_and_directories_of_others_are_left_alone),
		cmocka_unit_test(requests_of_another_format_are_lost_and_counted),
		cmocka_unit_test(what_cannot_be_counted_is_said_so_and_once),
	};
	int n;

	if (!mkdtemp(directory))
		return 1;
	n = cmocka_run_group_tests(tests, NULL, NULL);
	remove_directory();
	return n;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A spool that holds anything. The input says which records a segment has: their checksums are right, unless it says
 * otherwise, since no bytes get past them by chance. What was found can be read, and is found again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export/spool/segment.h"
#include "export/spool/requests.h"
#include "util/cleanup.h"

#define LIMIT_BYTES ((uint64_t)64 << 10)
#define SEGMENTS    3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char directory[] = "/tmp/bpfpush-fuzz-spool-XXXXXX";

static void demand(bool is_true)
{
	if (!is_true)
		abort();
}

static void set_path(char path[64], const char *more)
{
	snprintf(path, 64, "%s%s", directory, more);
}

static void remove_all(void)
{
	char path[64], name[32];

	for (unsigned int i = 0; i < 16; i++) {
		snprintf(name, sizeof(name), "/spool/name/%08x", i);
		set_path(path, name);
		(void)unlink(path);
	}
	set_path(path, "/spool/name/damaged");
	(void)unlink(path);
}

static void clean_up(void)
{
	char path[64];

	remove_all();
	set_path(path, "/spool/name");
	(void)rmdir(path);
	set_path(path, "/spool");
	(void)rmdir(path);
	(void)rmdir(directory);
}

static void make_directory(void)
{
	char path[64];

	demand(mkdtemp(directory));
	set_path(path, "/spool");
	demand(!mkdir(path, 0700));
	set_path(path, "/spool/name");
	demand(!mkdir(path, 0700));
	atexit(clean_up);
}

/* A record of six bytes and those that it holds. The first has its kind, what is wrong with it, and its mark. */
static size_t write_record(int fd, uint64_t *offset, const uint8_t *data, size_t size)
{
	static const uint8_t marks[] = { 0, QUEUE_SENT, POINTS_DELIVERED, 77 };
	struct spool_head head = { .kind = data[0] & 1 ? SPOOL_COMMIT : SPOOL_REQUEST, .transaction = data[1],
				   .size = data[2], .time_ns = data[3], .n_points = data[4], .format = data[5] & 1,
				   .n_before = data[5] >> 1,
				   .mark = marks[data[0] >> 6] };

	if (head.size > size - 6)
		head.size = (uint32_t)size - 6;
	demand(!record_write(fd, *offset, &head, data + 6));
	if (data[0] & 2) /* in the head, or after it */
		demand(pwrite(fd, "?", 1, (off_t)(*offset + data[5] % 60)) == 1);
	*offset += data[0] & 4 ? 20 : spool_record_bytes(head.size);
	return 6 + head.size;
}

static void write_segments(const uint8_t *data, size_t size)
{
	char path[64], name[32];

	for (unsigned int i = 1; i <= SEGMENTS; i++) {
		uint64_t offset = 0;
		int fd;

		snprintf(name, sizeof(name), "/spool/name/%08x", i);
		set_path(path, name);
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		demand(fd >= 0);
		while (size >= 6 && (i == SEGMENTS || !(data[0] & 8) || !offset)) {
			size_t n = write_record(fd, &offset, data, size);

			data += n;
			size -= n;
		}
		close(fd);
	}
}

/* How many can be read. */
static unsigned int use(uint64_t until, bool is_to_grow)
{
	struct spool spool = SPOOL_INIT;
	uint64_t points[N_POINTS], others = 0;
	struct queue_item *item;
	struct queue queue;
	unsigned int n = 0;

	queue_init(&queue, 1000, NULL);
	queue.spool = &spool;
	spool.name = "name";
	spool.path = directory;
	spool.limit_bytes = LIMIT_BYTES;
	spool.transaction = until;
	demand(!spool_open(&spool, &queue, points));
	for (enum points fate = POINTS_DELIVERED; fate < N_POINTS; fate++)
		others += points[fate];
	TAILQ_FOREACH(item, &queue.items, link) {
		demand(!queue_load(&queue, item));
		n++;
	}
	demand(n == queue.n_items && queue.n_points == points[POINTS_PUSHED] - others);
	if (is_to_grow) {
		demand(!queue_put(&queue, malloc(10000), 10000, 1));
		demand(!spool_commit(&spool, &queue));
		demand(queue.spooled_bytes == queue.size_bytes);
	}
	queue_done(&queue);
	spool_close(&spool);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t until = size && data[0] & 128 ? data[0] & 15 : UINT64_MAX;
	unsigned int n;

	if (strstr(directory, "XXXXXX"))
		make_directory();
	remove_all();
	if (size)
		write_segments(data + 1, size - 1);
	n = use(until, false);
	demand(use(until, false) <= n); /* a commit that is not ours can say that its records do not count */
	(void)use(until, true);
	(void)use(UINT64_MAX, false);
	return 0;
}

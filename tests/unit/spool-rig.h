/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A process with a spool, whose requests are values. */

#include "test.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "export/spool/requests.h"

#define LIMIT_BYTES ((uint64_t)64 << 10)
#define VALUE_BYTES 700

struct value {
	uint64_t id, value;
	char filler[VALUE_BYTES];
};

struct process {
	struct queue_budget budget;
	struct queue queue;
	struct spool spool;
	uint64_t read, n_delivered;
};

static char directory[] = "/tmp/bpfpush-test-spool-XXXXXX";

static unsigned int seed;

static inline unsigned int draw(unsigned int n)
{
	return (unsigned int)(rand_r(&seed) >> 4) % n;
}

static inline void put(struct process *process, uint64_t id, uint64_t value, uint64_t time_ns)
{
	struct value *item = calloc(1, sizeof(*item));

	item->id = id;
	item->value = value;
	memset(item->filler, (int)id, sizeof(item->filler));
	process->queue.time_ns = time_ns;
	assert_ok(queue_put(&process->queue, (uint8_t *)item, sizeof(*item), 1));
}

static inline void init(struct process *process)
{
	*process = (struct process){ .spool = SPOOL_INIT, .spool.name = "name", .spool.path = directory,
				     .spool.limit_bytes = LIMIT_BYTES, .budget.limit_bytes = LIMIT_BYTES / 4 * 3 };
	queue_init(&process->queue, 100000, &process->budget);
	process->queue.limit_bytes = process->budget.limit_bytes;
	process->queue.spool = &process->spool;
}

static inline void end(struct process *process)
{
	queue_done(&process->queue);
	spool_close(&process->spool);
}

static inline void remove_directory(void)
{
	const char *const words[] = { "rm", "-rf", directory, NULL };
	pid_t pid = fork();

	if (!pid)
		execv("/bin/rm", (char *const *)words);
	waitpid(pid, NULL, 0);
}

static inline void make_directory(void)
{
	remove_directory();
	assert_ok(mkdir(directory, 0700));
}

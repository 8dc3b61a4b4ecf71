/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input: series as a process before left them. It may have been taken over, so any bytes may be there, and the
 * process that reads them can load programs. What is read is saved, and then read again: it must be the same.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "metric/series.h"
#include "metric/snapshot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool is_right, const char *what)
{
	if (is_right)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static void begin(struct metric metrics[3], struct metric *list[3], struct budget *budget)
{
	*budget = (struct budget){ .limit_series = 100 };
	for (unsigned int i = 0; i < 3; i++) {
		metrics[i] = (struct metric){
			.scope = "s", .name = "m", .unit = "1", .description = "", .kind = (enum metric_kind)i,
			.divisor = 1,
			.layout = { 0, 0, i == METRIC_HISTOGRAM ? 4 : 0 },
		};
		metric_init_series(&metrics[i], budget);
		list[i] = &metrics[i];
	}
}

/* Reads what in has, and appends what came of it to out. */
static void read_and_save(struct stored in, struct store *out)
{
	struct metric metrics[3], *list[3];
	struct restored restored = { 0 };
	struct budget budget;
	int err;

	begin(metrics, list, &budget);
	err = metrics_restore(list, 3, &in, &restored);
	demand(!err || err == -EINVAL, "another error");
	metrics_save(list, 3, out);
	restored_release(&restored, NULL, NULL);
	for (unsigned int i = 0; i < 3; i++)
		metric_done_series(&metrics[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct store first, second;

	if (!first.data)
		demand(!store_open(memfd_create("fuzz", MFD_CLOEXEC), &first) &&
		       !store_open(memfd_create("fuzz", MFD_CLOEXEC), &second), "no store");
	store_reset(&first);
	store_reset(&second);
	read_and_save((struct stored){ data, data + size, false }, &first);
	read_and_save((struct stored){ first.data, first.data + first.size, false }, &second);
	demand(first.size == second.size && !memcmp(first.data, second.data, first.size), "not read as it was saved");
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input: series as a process before left them. It may have been taken over, so any bytes may be there, and the
 * process that reads them can load programs. What is read is saved, and then read again: it must be the same.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "demand.h"
#include "metric/series.h"
#include "metric/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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

/* Reads what two stores have, of which the first has the names, and writes what came of it to out. */
static void read_and_save(struct stored names, struct stored in, struct store out[2])
{
	struct metric metrics[3], *list[3];
	struct restored restored = { .names = names };
	struct series_names names_out = { 0 };
	struct budget budget;
	int err;

	begin(metrics, list, &budget);
	err = metrics_restore(list, 3, &in, &restored);
	demand(!err || err == -EINVAL, "another error");
	names_begin(&names_out, &out[0]);
	store_reset(&out[1]);
	metrics_save(list, 3, &names_out, &out[1]);
	index_done(&names_out.texts);
	restored_release(&restored, NULL, NULL);
	for (unsigned int i = 0; i < 3; i++)
		metric_done_series(&metrics[i]);
}

static struct stored whole(const struct store *store)
{
	return (struct stored){ store->data, store->data + store->size, false };
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct store stores[4], *first = stores, *second = stores + 2;
	struct stored in = { data, data + size, false }, names;

	if (!first->data)
		demand(!stores_open(memfd_create("fuzz", MFD_CLOEXEC), stores, 4), "no store");
	names = stored_block(&in);
	if (in.is_bad)
		return 0;
	read_and_save(names, in, first);
	read_and_save(whole(&first[0]), whole(&first[1]), second);
	for (unsigned int i = 0; i < 2; i++)
		demand(first[i].size == second[i].size && !memcmp(first[i].data, second[i].data, first[i].size),
		       "not read as it was saved");
	return 0;
}

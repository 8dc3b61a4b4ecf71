/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input: collections as the service sends them to those who watch. The service may have been taken over, and root
 * may watch. What is read is sent on, and then read again: it must be the same.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "demand.h"
#include "metric/copy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A collection that could be read: a copy of it is the same to the last byte. */
static void send_on(const struct batch *batch, struct store stores[2])
{
	struct batch_copy *copy = batch_copy_new();
	struct stored all, in;

	for (unsigned int i = 0; i < 2; i++) {
		store_reset(&stores[i]);
		store_number(&stores[i], 0); /* no text lies at 0 */
		batch_write(i ? batch_copy_batch(copy) : batch, &stores[i]);
		in = all = (struct stored){ stores[i].data, stores[i].data + stores[i].size, false };
		(void)stored_number(&in);
		demand(i || !batch_copy_read(copy, &all, &in), "a copy cannot be read");
	}
	demand(stores[0].size == stores[1].size && !memcmp(stores[0].data, stores[1].data, stores[0].size),
	       "not read as it was sent");
	batch_copy_free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct store stores[2];
	struct stored all = { data, data + size, false }, in = all;
	struct batch_copy *copy = batch_copy_new();
	int err = 0;

	if (!stores[0].data)
		demand(!stores_open(memfd_create("fuzz", MFD_CLOEXEC), stores, 2), "no store");
	/* Each collection in it may refer to texts before it. */
	while (!err && in.at < in.end) {
		err = batch_copy_read(copy, &all, &in);
		demand(!err || err == -EINVAL || err == -ESTALE, "another error");
		if (!err)
			send_on(batch_copy_batch(copy), stores);
	}
	batch_copy_free(copy);
	return 0;
}

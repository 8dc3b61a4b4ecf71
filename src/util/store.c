/* SPDX-License-Identifier: Apache-2.0 */
/* In a row of numbers a 0 is followed by how many zeros there are. */
#include "util/store.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define STEP_BYTES ((size_t)64 << 10) /* whole pages, on all machines */

int stores_open(int fd, struct store *ret_stores, size_t n)
{
	uint8_t *data;

	if (ftruncate(fd, (off_t)(n * STORE_BYTES)) < 0)
		return -errno;
	data = mmap(NULL, n * STORE_BYTES, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	for (size_t i = 0; i < n; i++)
		ret_stores[i] = (struct store){ .data = data + i * STORE_BYTES };
	return 0;
}

void stores_close(struct store *stores, size_t n)
{
	if (stores->data)
		munmap(stores->data, n * STORE_BYTES);
	stores->data = NULL;
}

void store_reset(struct store *store)
{
	size_t kept = (store->size + store->size / 2 + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;

	if (kept < STORE_BYTES)
		(void)madvise(store->data + kept, STORE_BYTES - kept, MADV_REMOVE);
	store->size = 0;
	store->has_failed = false;
}

void store_tail_end(struct store_tail *tail)
{
	if (!tail->store->has_failed)
		__atomic_store_n(tail->bytes, tail->store->size - tail->begin, __ATOMIC_SEQ_CST);
}

struct stored store_tail_read(const struct store_tail *tail)
{
	const uint8_t *begin = tail->store ? tail->store->data + tail->begin : NULL;

	return (struct stored){ begin, begin ? begin + *tail->bytes : NULL, false };
}

void store_bytes(struct store *store, const void *data, size_t size)
{
	uint8_t *at = store_reserve(store, size);

	if (!at)
		return;
	memcpy(at, data, size);
	store->size += size;
}

void store_text(struct store *store, const char *text)
{
	store_bytes(store, text, strlen(text) + 1);
}

void store_numbers(struct store *store, const uint64_t *numbers, size_t n)
{
	uint8_t *at = store_reserve(store, n * STORE_NUMBER_BYTES);

	for (size_t i = 0, first; at && i < n;) {
		if (numbers[i]) {
			at = store_put(at, numbers[i++]);
			continue;
		}
		for (first = i; i < n && !numbers[i];)
			i++;
		*at++ = 0;
		at = store_put(at, i - first);
	}
	if (at)
		store->size = (size_t)(at - store->data);
}

size_t store_begin(struct store *store)
{
	store_bytes(store, &(uint64_t){ 0 }, sizeof(uint64_t));
	return store->size;
}

void store_end(struct store *store, size_t begin)
{
	uint64_t size = store->size - begin;

	if (!store->has_failed)
		memcpy(store->data + begin - sizeof(size), &size, sizeof(size));
}

const void *stored_bytes(struct stored *in, size_t size)
{
	const uint8_t *at = in->at;

	in->is_bad |= size > (size_t)(in->end - at);
	if (in->is_bad)
		return NULL;
	in->at += size;
	return at;
}

uint64_t stored_number(struct stored *in)
{
	uint64_t number = 0;

	for (unsigned int shift = 0; shift < 64; shift += 7) {
		const uint8_t *byte = stored_bytes(in, 1);

		if (!byte)
			return 0;
		number |= (uint64_t)(*byte & 0x7f) << shift;
		if (*byte < 0x80)
			return number;
	}
	in->is_bad = true;
	return 0;
}

const char *stored_text(struct stored *in)
{
	const uint8_t *end = in->is_bad || in->at == in->end ? NULL :
			     memchr(in->at, '\0', (size_t)(in->end - in->at));
	const char *text = (const char *)in->at;

	in->is_bad = !end;
	if (!end)
		return "";
	in->at = end + 1;
	return text;
}

void stored_numbers(struct stored *in, uint64_t *ret_numbers, size_t n)
{
	for (size_t i = 0, n_zeros; i < n;) {
		ret_numbers[i] = stored_number(in);
		if (ret_numbers[i++])
			continue;
		n_zeros = stored_number(in);
		in->is_bad |= !n_zeros || n_zeros > n - i + 1;
		for (size_t end = in->is_bad ? n : i + n_zeros - 1; i < end;)
			ret_numbers[i++] = 0;
	}
}

struct stored stored_block(struct stored *in)
{
	const void *size_at = stored_bytes(in, sizeof(uint64_t));
	uint64_t size = 0;
	const uint8_t *data;

	if (size_at)
		memcpy(&size, size_at, sizeof(size));
	data = stored_bytes(in, size);
	return data ? (struct stored){ data, data + size, false } :
	       (struct stored){ NULL, NULL, true };
}

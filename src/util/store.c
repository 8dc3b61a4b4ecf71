/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers take seven bits a byte, the lowest first. In a row of numbers a 0 is followed by how many zeros there are.
 * The mapping is larger than the file will ever be, and only the file grows.
 */
#include "util/store.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"

#define BYTES_MAX    ((size_t)1 << 30)
#define STEP_BYTES   ((size_t)64 << 10)
#define NUMBER_BYTES 10 /* at most */

int store_open(int fd, struct store *ret_store)
{
	struct store store = { .fd = fd };
	struct stat status;

	if (fstat(fd, &status) < 0 || (size_t)status.st_size > BYTES_MAX) {
		close(fd);
		return -EINVAL;
	}
	store.room = (size_t)status.st_size;
	store.data = mmap(NULL, BYTES_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (store.data == MAP_FAILED) {
		close(fd);
		return -ENOMEM;
	}
	*ret_store = store;
	return 0;
}

void store_done(struct store *store)
{
	if (!store->data)
		return;
	munmap(store->data, BYTES_MAX);
	close(store->fd);
	*store = (struct store){ .fd = -1 };
}

void store_reset(struct store *store)
{
	size_t wanted = store->size + store->size / 2 + STEP_BYTES;

	if (store->room > 2 * wanted && !ftruncate(store->fd, (off_t)wanted))
		store->room = wanted;
	store->size = 0;
	store->has_failed = false;
}

uint8_t *store_reserve(struct store *store, size_t size)
{
	size_t wanted = store->size + size;

	if (wanted > store->room) {
		wanted = (wanted + wanted / 4) / STEP_BYTES * STEP_BYTES + STEP_BYTES;
		if (store->has_failed || wanted > BYTES_MAX || ftruncate(store->fd, (off_t)wanted) < 0) {
			store->has_failed = true;
			return NULL;
		}
		store->room = wanted;
	}
	return store->data + store->size;
}

void store_bytes(struct store *store, const void *data, size_t size)
{
	uint8_t *at = store_reserve(store, size);

	if (!at)
		return;
	memcpy(at, data, size);
	store->size += size;
}

static uint8_t *put(uint8_t *at, uint64_t number)
{
	for (; number >= 0x80; number >>= 7)
		*at++ = (uint8_t)number | 0x80;
	*at++ = (uint8_t)number;
	return at;
}

void store_number(struct store *store, uint64_t number)
{
	uint8_t *at = store_reserve(store, NUMBER_BYTES);

	if (at)
		store->size = (size_t)(put(at, number) - store->data);
}

void store_text(struct store *store, const char *text)
{
	store_bytes(store, text, strlen(text) + 1);
}

void store_numbers(struct store *store, const uint64_t *numbers, size_t n)
{
	uint8_t *at = store_reserve(store, n * NUMBER_BYTES);

	for (size_t i = 0, first; at && i < n;) {
		if (numbers[i]) {
			at = put(at, numbers[i++]);
			continue;
		}
		for (first = i; i < n && !numbers[i];)
			i++;
		*at++ = 0;
		at = put(at, i - first);
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
	const uint8_t *end = in->is_bad || in->at == in->end ? NULL : memchr(in->at, '\0', (size_t)(in->end - in->at));
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
	return data ? (struct stored){ data, data + size, false } : (struct stored){ NULL, NULL, true };
}

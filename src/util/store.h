/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Numbers and texts one after the other in a part of a file in memory (memfd_create(2)), and their
 * reader. What is written is in the file with the instruction that writes it, so it is there even
 * if the process is killed at the next one. Numbers take seven bits a byte, the lowest first.
 *
 * A store has room for all that it will ever hold, and only what is written takes memory: addresses
 * in it stay valid. The reader takes any bytes. After the first that cannot be right, is_bad is
 * set, and numbers are 0 and texts are empty.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * The version of all that the agent saves. Raise it when a later process would read something
 * differently.
 */
#define STORE_FORMAT 14

#define STORE_BYTES	   ((size_t)1 << 30)
#define STORE_NUMBER_BYTES 10 /* at most */

struct store {
	uint8_t *data;
	size_t size;	 /* written */
	bool has_failed; /* it is full: something that was appended is missing */
};

/*
 * n of them, one after the other in the file, whose descriptor is not needed any more. Their size
 * is 0. -errno.
 */
int stores_open(int fd, struct store *ret_stores, size_t n);
void stores_close(struct store *stores, size_t n);
/* Begins again; gives back memory that is far from what the last content took. */
void store_reset(struct store *store);

/* size more bytes at data + size, for the caller to fill; NULL: has_failed. */
static inline uint8_t *store_reserve(struct store *store, size_t size)
{
	store->has_failed |= size > STORE_BYTES - store->size;
	return store->has_failed ? NULL : store->data + store->size;
}

static inline uint8_t *store_put(uint8_t *at, uint64_t number)
{
	for (; number >= 0x80; number >>= 7)
		*at++ = (uint8_t)number | 0x80;
	*at++ = (uint8_t)number;
	return at;
}

static inline void store_number(struct store *store, uint64_t number)
{
	uint8_t *at = store_reserve(store, STORE_NUMBER_BYTES);

	if (at)
		store->size = (size_t)(store_put(at, number) - store->data);
}

/* What is appended to a store that is whole already, record by record. */
struct store_tail {
	struct store *store; /* NULL: nothing is to be kept */
	size_t begin;	     /* in the store */
	uint64_t *bytes;     /* how much counts; in memory that lives as long as the store's */
};

/* What was appended since the last call counts from now on, if there was room for it. */
void store_tail_end(struct store_tail *tail);

void store_bytes(struct store *store, const void *data, size_t size);
void store_text(struct store *store, const char *text);
/* n numbers, of which many are 0. */
void store_numbers(struct store *store, const uint64_t *numbers, size_t n);
/* What lies between the two is a block, which a reader can skip. */
size_t store_begin(struct store *store);
void store_end(struct store *store, size_t begin);

struct stored {
	const uint8_t *at, *end;
	bool is_bad;
};

struct stored store_tail_read(const struct store_tail *tail);

const void *stored_bytes(struct stored *in, size_t size); /* NULL: is_bad */
uint64_t stored_number(struct stored *in);
const char *stored_text(struct stored *in);
void stored_numbers(struct stored *in, uint64_t *ret_numbers, size_t n);
struct stored stored_block(struct stored *in);

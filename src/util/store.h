/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Numbers and texts one after the other in a file in memory (memfd_create(2)), and their reader. What is written is
 * in the file with the instruction that writes it, so it is there even if the process is killed at the next one.
 *
 * The file grows where it lies: addresses in it stay valid. The reader takes any bytes. After the first that cannot
 * be right, is_bad is set, and numbers are 0 and texts are empty.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of all that the agent saves: to be raised with what a later process would read otherwise. */
#define STORE_FORMAT 4

struct store {
	int fd; /* owned */
	uint8_t *data;
	size_t size;	 /* written */
	size_t room;	 /* of the file */
	bool has_failed; /* it could not grow: what was appended since is missing */
};

/* Takes fd over, also on failure. Begins with what the file holds as room. -errno. */
int store_open(int fd, struct store *ret_store);
void store_done(struct store *store);
/* Begins again; gives memory back if the last content was much smaller than the file. */
void store_reset(struct store *store);

/* size more bytes at data + size, for the caller to fill; NULL: has_failed. */
uint8_t *store_reserve(struct store *store, size_t size);
void store_bytes(struct store *store, const void *data, size_t size);
void store_number(struct store *store, uint64_t number);
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

const void *stored_bytes(struct stored *in, size_t size); /* NULL: is_bad */
uint64_t stored_number(struct stored *in);
const char *stored_text(struct stored *in);
void stored_numbers(struct stored *in, uint64_t *ret_numbers, size_t n);
struct stored stored_block(struct stored *in);

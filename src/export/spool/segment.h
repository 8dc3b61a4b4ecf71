/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The files of a spool: a directory with segments, whose names are numbers of eight hexadecimal
 * digits, and records in them. A record is a head and as many bytes as it says, and begins at a
 * multiple of 8.
 *
 * Files are input, and may hold anything. Those that are links, belong to another user or are not
 * regular files are left alone. Numbers have the byte order of the machine, since a spool does not
 * travel.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum spool_kind {
	SPOOL_REQUEST = 1,
	/* its bytes are places: where its transaction began, and what that replaces */
	SPOOL_COMMIT,
};

struct spool_head {
	uint32_t magic;
	uint32_t head_crc; /* of what follows, up to the mark */
	uint32_t body_crc; /* of the bytes after the head */
	uint32_t size;	   /* of them */
	uint64_t transaction;
	uint64_t time_ns, n_points; /* as in struct queue_item */
	uint64_t n_before;	    /* points of all requests that were ever written before it */
	uint32_t format;	    /* of the bytes, as the exporter says */
	uint16_t kind;
	uint8_t mark, not_mark; /* changes in place; not_mark is ~mark */
};

/*
 * Where a record is: the number of its segment, and the offset there. 0: nowhere, since numbers
 * begin with 1.
 */
#define SPOOL_PLACE(segment, offset) ((uint64_t)(segment) << 32 | (offset))
#define SPOOL_SEGMENT(place)	     ((uint32_t)((place) >> 32))
#define SPOOL_OFFSET(place)	     ((uint32_t)(place))

/*
 * The directory spool/NAME below one that exists. Both are made, for their owner alone. Locked
 * until it is closed. -errno; -ENOTSUP: it belongs to another user, or others can write to it;
 * -EWOULDBLOCK: a process has it.
 */
int segment_directory(const char *path, const char *name);
/* The numbers of its segments, ascending; *ret_numbers is for free(). */
int segments_list(int directory, uint32_t **ret_numbers, size_t *ret_n);
/* -errno; -ENOTSUP: not a file of this user with one name. */
int segment_open(int directory, uint32_t number, int flags);
/* is_kept: for a person to look at, as the file "damaged", which one before it loses. */
int segment_remove(int directory, uint32_t number, bool is_kept);

/* How much room a record of size bytes takes. */
static inline uint64_t spool_record_bytes(uint64_t size)
{
	return (sizeof(struct spool_head) + size + 7) & ~UINT64_C(7);
}

/* Fills in what can be computed. head->size bytes at data. -errno: a part may be there. */
int record_write(int fd, uint64_t offset, struct spool_head *head, const void *data);
/* The size bytes after the head, for free(). -EBADMSG: they are not those that were written. */
int record_read(int fd, uint64_t offset, size_t size, uint8_t **ret_data);
int record_mark(int fd, uint64_t offset, uint8_t mark);

/* data: NULL if the bytes are not those that were written. */
typedef int record_found_fn(void *user, const struct spool_head *head, uint64_t offset,
			    const uint8_t *data);
/*
 * All records of size bytes of a segment. What is between them does not make a record, and is
 * skipped. Returns what found returned, if it is not 0. *ret_end: size, or where a record begins
 * that was not written to its end.
 */
int records_find(const uint8_t *bytes, size_t size, record_found_fn *found, void *user,
		 size_t *ret_end);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Records of a ring buffer or perf event array, counted by key or passed on as they come. A
 * record's key is the record itself, with zeroes where no member is. A row stays until its owner is
 * gone or it expires; its count is growth of the next reading. Records that the kernel had no room
 * for, that are too short, or whose key finds no room, count in the overflow row. A record may be
 * shorter than its structure if its last member is an array, but not in a perf event array.
 */

#include <stdbool.h>

#include "metric/rows.h"

struct bpf_map;
struct budget;
struct key_label;
struct records;
struct shape;

/* What becomes of records. All of it is borrowed. */
struct records_options {
	const struct shape *key;
	/* of the key, whose members count if they become attributes */
	const struct key_label *labels;
	const struct budget *budget; /* NULL: no limits */
	bool is_counted; /* in rows */
	/* gets each record, as a whole; NULL: none does */
	void (*take)(void *user, const void *record);
	void *user;
};

/* For a perf event array, records come from CPUs that are online. -errno. */
int records_open(const struct bpf_map *map, const struct records_options *options,
		 struct records **ret_records);
struct records *records_free(struct records *records);
/* Readable when records wait that the program has told of. */
int records_wake_fd(const struct records *records);
/* Records since the start that are not there. */
struct records_lost {
	uint64_t n_full;  /* the kernel had no room in a perf event array */
	uint64_t n_short; /* shorter than the structure */
};

struct records_lost records_lost(const struct records *records);
/*
 * Takes waiting records: all that wait now, or a turn's. rows: made for keys of key_bytes, with
 * one cell.
 */
void records_take(struct records *records, struct rows *rows, bool is_all);

DEFINE_CLEANUP(struct records *, records_free);

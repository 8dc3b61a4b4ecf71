/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Records of a ring buffer or perf event array, counted by key as they come. A record's key is the
 * record itself, with zeroes where no member is. A row stays until its owner is gone or it expires;
 * its count is growth of the next reading. Records that the kernel had no room for, that are too
 * short, or whose key finds no room, count in the overflow row.
 */

#include <stdbool.h>

#include "metric/rows.h"

struct bpf_map;
struct budget;
struct key_label;
struct records;
struct shape;

/*
 * labels: of the key, whose members count if they become attributes. budget NULL: no limits. All
 * but the map is borrowed. For a perf event array, records come from CPUs that are online. -errno.
 */
int records_open(const struct bpf_map *map, const struct shape *key, const struct key_label *labels,
		 const struct budget *budget, struct records **ret_records);
struct records *records_free(struct records *records);
/* Readable when records wait that the program has told of. */
int records_wake_fd(const struct records *records);
/*
 * Counts waiting records: all that wait now, or a turn's. rows: made for keys of key_bytes, with
 * one cell.
 */
void records_count(struct records *records, struct rows *rows, bool is_all);

DEFINE_CLEANUP(struct records *, records_free);

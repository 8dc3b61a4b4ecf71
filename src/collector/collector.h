/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A collector: NAME.conf and NAME.bpf.o side by side. Opening and checking need no privileges;
 * starting needs CAP_BPF and CAP_PERFMON; after that, reading needs neither.
 */

#include <stdbool.h>
#include <stdint.h>

#include "collector/descriptor.h"
#include "collector/label/label.h"
#include "collector/program.h"
#include "collector/setting.h"
#include "metric/metric.h"
#include "util/diag.h"

struct binding;
struct bpf_object;
struct btf;

/* To be read by all, and changed through the functions below. */
struct collector {
	char *name;
	char *directory;
	char *conf_path, *object_path;
	struct labels *labels;
	size_t series_limit;
	struct descriptor *descriptor;
	struct btf *btf;
	struct bpf_object *object; /* opened for checks; then the loaded one */
	struct settings settings;  /* among them each [param] of the descriptor */
	struct programs programs;
	struct binding *bindings;
	size_t n_bindings;
	struct metric **metrics; /* one for each name, each in one piece of memory */
	size_t n_metrics;
	struct label_context context;
	bool is_started;
	uint32_t n_readings;
};

/*
 * Parses the descriptor, opens the object and checks each against the other; every mistake goes to diag.
 * With any, *ret_collector is set to NULL. labels is borrowed and outlives the collector. 0, -ENOMEM, -EIO.
 */
int collector_open(const char *directory, const char *name, struct labels *labels, size_t series_limit,
		   struct diag *diag, struct collector **ret_collector);
struct collector *collector_free(struct collector *collector);

/* Changes a setting; path:line is where the text stands. Before collector_start(). -ENOMEM. */
int collector_set(struct collector *collector, const char *key, const char *value, const char *path,
		  unsigned int line, struct diag *diag);
/* Checks what the settings make of the maps (table sizes), after the last collector_set(). */
void collector_check(struct collector *collector, struct diag *diag);

/*
 * Loads and attaches. 0, even if some hooks could not be attached: .programs says which. -errno,
 * with the kernel's words in why: nothing of it runs.
 */
int collector_start(struct collector *collector, struct buf *why);
/*
 * One collection: runs the iterators, reads the maps, gives the growth to the series. previous_ns:
 * Unix time of the collection before, or of the start. The first -errno, if any; the rest is done
 * nevertheless.
 */
int collector_read(struct collector *collector, uint64_t previous_ns);

/* Ends all series. The next reading begins new ones, which hold what has grown since the last reading. */
void collector_restart(struct collector *collector);

struct collector_map {
	int fd; /* -1 before the start */
	const char *name;
	const char *type; /* "table", "hash", … */
	uint32_t max_entries;
	uint32_t n_keys;      /* as of the last reading; of maps that are exported */
	uint64_t overflowing; /* tables: slices that had no place for a key */
};
/* The i-th map of the object; false beyond the last. */
bool collector_map(const struct collector *collector, size_t i, struct collector_map *ret_map);
/* A table that had no place for a key at the last reading, so that numbers went to the overflow series; NULL: none. */
const char *collector_full_table(const struct collector *collector);
/* Its memory as the kernel accounts it ("memlock" of fdinfo); 0 before the start. A read of /proc. */
uint64_t collector_map_kernel_bytes(const struct collector_map *map);

/* Connects this collector's map of cgroup names, if it has one, to labels. After collector_start(). */
void collector_share(struct collector *collector);

/* Prints the data at one stage, for people: "descriptor", "shape" or "snapshot". -EINVAL: no such stage. */
int collector_dump(const struct collector *collector, const char *stop, FILE *f);

DEFINE_CLEANUP(struct collector *, collector_free);

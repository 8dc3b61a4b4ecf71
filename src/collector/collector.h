/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A collector: NAME.conf and NAME.bpf.o side by side, or an object that it shares with others.
 * Opening and checking need no privileges; starting needs CAP_BPF and CAP_PERFMON; after that,
 * reading needs neither.
 */

#include <stdbool.h>
#include <stdint.h>

#include "collector/parts.h"
#include "metric/event.h"
#include "util/diag.h"
#include "util/setting-table.h"

/* All of it is borrowed; labels and budget outlive the collector. */
struct collector_options {
	struct labels *labels;
	struct budget *budget; /* NULL: no limits */
	/* open already: an object that one of them has is shared */
	struct collector *const *others;
	size_t n_others;
	struct descriptor_entries *entries; /* in place of NAME.conf; NULL: none */
	bool is_strict;
};

/*
 * Parses the descriptor, opens the object and checks each against the other; every mistake goes to
 * diag. With any, *ret_collector is set to NULL. 0, -ENOMEM, -EIO.
 */
int collector_open(const char *directory, const char *name, const struct collector_options *options,
		   struct diag *diag, struct collector **ret_collector);
void collector_free(struct collector *collector);

/* Changes a setting, before collector_start(). -ENOMEM. */
int collector_set(struct collector *collector, const struct assignment *wanted, struct diag *diag);
/* The same for a metric of that name, or for all of them (NULL). */
int collector_set_metric(struct collector *collector, const char *metric,
			 const struct assignment *setting, struct diag *diag);
/* Names to choose from, each once; borrowed. */
struct names {
	const char *items[256];
	size_t n;
};

/* Does it want names of the kernel's functions, with the settings that it has now? */
bool collector_names_functions(const struct collector *collector);
/*
 * Before the start: finds them, once for all that want them, or says why it cannot. kept: NULL: see
 * label/label.h.
 */
void collectors_find_symbols(struct collector *const *items, size_t n, struct kept *kept);
/* Adds the attributes that series of the metric may have. */
void collector_list_attributes(const struct collector *collector, const struct metric *metric,
			       struct names *names);
/*
 * What the i-th [event MAP] or [span MAP] makes; adds the attributes that it may have, in their
 * order, unless names is NULL. NULL: there are fewer.
 */
const struct event_kind *collector_event(const struct collector *collector, size_t i,
					 struct names *names);
/* Of these events, since the start. */
struct event_losses collector_event_losses(const struct collector *collector, size_t i);
/*
 * Before the start: gives the tables of n collectors room for this many units. Returns the bytes
 * that they take.
 */
uint64_t collectors_size(struct collector *const *collectors, size_t n, uint64_t units);

/*
 * Loads and attaches the object, with all collectors that share it; for the next of them that is
 * done. 0, even if some hooks could not be attached: the object's programs say which. -errno, with
 * a sentence in why: nothing of it runs, or nothing that fills a map which it exports.
 */
int collector_start(struct collector *collector, struct buf *why);
/*
 * Of maps whose records are counted, or are events: the i-th descriptor, readable when some wait;
 * -1: i is too large.
 */
int collector_wake_fd(const struct collector *collector, size_t i);
/* Takes some of them, in between collections. */
void collector_wake(struct collector *collector);

/*
 * One collection is both calls, first collector_read() of all collectors in the order of their
 * opening, then collector_compute() of all. collector_read() runs the iterators, reads the maps,
 * and ends the series of rows that are gone, which makes room in the budget. collector_compute()
 * gives the growth to the series. The first collector_read() after the start
 * gives the baseline, from which growth counts. previous_ns: Unix time of the collection before,
 * or of the start. The first -errno, if any; the rest is still done.
 */
int collector_read(struct collector *collector);
int collector_compute(struct collector *collector, uint64_t previous_ns);

/*
 * Removes keys whose owners are gone from the kernel's maps, for at most left_ns, of which it takes
 * off what it needed. Called after each reading, with a clock that only goes forwards; saved_ns:
 * when the collection began whose state a later process would find. Returns in how many ns to call
 * it again: 0 in the next turn of the loop, UINT64_MAX not before the next reading.
 */
uint64_t collector_sweep(struct collector *collector, uint64_t now_ns, uint64_t saved_ns,
			 int64_t *left_ns);

/*
 * Ends all series. The next reading begins new ones, which hold what has grown since the last
 * reading.
 */
void collector_restart(struct collector *collector);

struct collector_map {
	int fds[4]; /* of all that it consists of */
	size_t n_fds; /* 0 before the start */
	const char *name;
	const char *type; /* "table", "hash", … */
	uint32_t max_entries;
	uint32_t n_keys;      /* as of the last reading; of maps that are exported */
	bool is_overflowing;  /* a table recently had no place for a key, or a record was lost */
	bool has_records;     /* they are counted */
	const struct binding *binding; /* that exports it, NULL: none */
};
/*
 * Brings .maps up to date. If the object is shared, they are the maps that this collector exports
 * and, for the first collector, those that none exports.
 */
void collector_find_maps(struct collector *collector);
/*
 * Of a started collector: calls tell for each reason why hooks are not attached, with a list of
 * their programs.
 */
typedef void collector_tell(const struct collector *collector, const char *programs,
			    const char *error, void *user);
void collector_each_refusal(const struct collector *collector, collector_tell *tell, void *user);
/*
 * Logs how the hooks of a started collector are attached, and a line for those of which no
 * alternative could be, or a line for each reason: the collector is partial then. Is it complete?
 */
bool collector_report_hooks(const struct collector *collector);
/* What a program has missed since the reading before. After collector_compute(). */
struct loss program_loss(const struct program *program);
/* After collector_compute() of all: tells the metrics of the collector what they lack. */
void collector_find_losses(struct collector *collector);
/*
 * Its memory as the kernel accounts it ("memlock" of fdinfo); 0 before the start. A read of /proc.
 */
uint64_t collector_map_kernel_bytes(const struct collector_map *map);

/*
 * Connects this collector's ring of cgroup names, if it has one, to labels. After
 * collector_start(). -errno.
 */
int collector_share(struct collector *collector);

/* Print the data at one stage, for people. */
void collector_dump_descriptor(const struct collector *collector, FILE *f);
void collector_dump_shape(const struct collector *collector, FILE *f);
void collector_dump_snapshot(const struct collector *collector, FILE *f);

DEFINE_CLEANUP(struct collector *, collector_free);

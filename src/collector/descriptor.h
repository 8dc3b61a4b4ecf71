/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * NAME.conf: what the numbers of an object mean. Text in, plain structure out; knows nothing of
 * BPF, so names of maps, members, programs and settings are checked against the object by
 * collector_open().
 *
 *     [collector]             description
 *                             object = NAME             shared with others; default: the
 *                                                       descriptor's own name
 *                             cost = CLASS, …           walk, rare, hot, clock: what "list
 *                                                       --available" shows
 *     [param NAME]            default, description      a "const volatile" variable of the object
 *                             symbol = NAME             it gets the address of this symbol of the
 *                                                       kernel
 *     [metric MAP[.MEMBER]]   name, unit, description, attribute = NAME=VALUE (repeatable)
 *                             kind = gauge, updowncounter
 *                             when = SETTING            neither filled nor read where that setting
 *                                                       is zero
 *                             buckets = LAYOUT          of a histogram that is not of hist.h
 *                             range = RANGE             of one of hist.h, where it is explicit
 *                             bucket = MEMBER           of the key: which bucket a value counts in
 *                             multiply = NUMBER         makes the metric's unit of what the kernel
 *                                                       counts
 *                             cpu = NAME                one series for each CPU, with this
 *                                                       attribute
 *                             cpus = sum, max, last     what a gauge shows that several CPUs have
 *                                                       set
 *                             expire = DURATION         a key that has not grown for that long ends
 *                             zero = yes                a series for each constant of the key's
 *                                                       enum, from the start
 *                             since = start, zero       what growth counts from
 *                             record = STRUCT           of a ring's records, which are counted
 *     [label MAP[.MEMBER]]    name                      of the attribute that a key member becomes;
 *                                                       MAP may be *
 *                             as = TYPE                 a type of label.h without "lbl_", or
 *                                                       kernel-enum NAME
 *                             prefix = TEXT             is cut off
 *                             value = NUMBER=TEXT       repeatable
 *                             match = REGEX             repeatable
 *                             other = TEXT, keep, drop  where neither a value nor a match fits
 *     [event MAP]             name, description, attribute = NAME=VALUE (repeatable)
 *                             record = STRUCT           of a ring, each of which is an event
 *                             severity = WORD           trace, debug, info (the default), warn,
 *                                                       error, fatal
 *                             when = SETTING            as of a metric
 *     [span MAP]              as [event MAP], without a severity; each record is a span of a trace
 *     [program NAME]          when = SETTING              loaded only where that setting is not
 *                                                         zero
 *                             map = MAP                 whose elements an iterator over a map
 *                                                       visits
 *                             runs = once               an iterator that runs only at the start
 *                             runs = seed               and again after the kernel has skipped a
 *                                                       program
 *                             backup = PROGRAM          counts what the kernel lets this one miss
 *                             events = MAP[.MEMBER]     a sum that grows by one with each run
 *                             target = TEXT             what follows the "/" of its section's name
 *                             binary = PATH             the file of that target
 *                             event = NAME              of a perf event, with frequency = or period
 *                                                       = NUMBER
 *                             interface = NAME          of XDP, repeatable, with mode = generic,
 *                                                       native
 *     [cgroups MAP]           match = REGEX             repeatable; the map holds the cgroups whose
 *                                                       path fits
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "util/diag.h"

/* Of a key that may be repeated. */
struct descriptor_item {
	const char *text;
	const char *value; /* of TEXT=VALUE; else NULL */
	unsigned int line;
};

struct descriptor_list {
	struct descriptor_item *items;
	size_t n;
};

struct descriptor_param {
	const char *name;
	const char *default_text; /* NULL: what the object holds */
	const char *description;  /* NULL: absent */
	const char *symbol;	  /* of the kernel; NULL: none */
	unsigned int line;
};

struct descriptor_metric {
	const char *map;
	const char *member; /* "": the value as a whole */
	const char *name;
	const char *unit;
	const char *description;
	const char *when; /* a setting; NULL: always */
	const char *kind; /* "gauge", "updowncounter"; NULL: it follows from the member's type */
	/* NULL: absent */
	const char *buckets, *range, *bucket, *multiply, *cpu, *cpus, *expire, *zero,
		*since, *record;
	struct descriptor_list attributes; /* each NAME=VALUE */
	unsigned int line;
};

/* What of says of a metric, it says of the event. */
struct descriptor_event {
	struct descriptor_metric of; /* its member is NULL; it has a record */
	const char *severity;	     /* NULL: info */
	bool is_span;
};

struct descriptor_label {
	const char *map; /* "*": every map's */
	const char *member;
	const char *name, *as, *prefix, *other; /* NULL: absent */
	struct descriptor_list values;		/* each NUMBER=TEXT */
	struct descriptor_list matches;
	unsigned int line;
};

struct descriptor_program {
	const char *name;
	const char *when; /* a setting; NULL: always */
	const char *map;  /* NULL: none */
	const char *runs; /* "once", "seed"; NULL: before each reading */
	const char *backup; /* another program or hook; NULL: none */
	const char *events; /* a metric's MAP[.MEMBER]; NULL: none counts the runs */
	const char *target, *binary, *event, *frequency, *period, *mode; /* NULL: absent */
	struct descriptor_list interfaces;
	unsigned int line;
};

struct descriptor_cgroups {
	const char *map;
	struct descriptor_list matches;
	unsigned int line;
};

struct descriptor {
	struct ini_file *file; /* owns the strings */
	uint64_t text_hash; /* of entries that were written for something else; 0: it is a file */
	const char *description;
	const char *object; /* NULL: of the descriptor's own name, and not shared */
	const char *cost;   /* NULL: not said */
	struct descriptor_param *params;
	struct descriptor_metric *metrics;
	struct descriptor_event *events;
	struct descriptor_label *labels;
	struct descriptor_program *programs;
	struct descriptor_cgroups *cgroups;
	size_t n_params, n_metrics, n_events, n_labels, n_programs, n_cgroups;
};

/*
 * A descriptor that was written for something else, whose place is reported for each mistake. A
 * section is "", its kind and its argument, a key is the key and its value; each of these ends in
 * NUL.
 */
struct descriptor_entries {
	struct buf *text;
	const char *path;
	/* the others: of its metrics' names, and of its labels */
	unsigned int line, metric_line, label_line;
};

/* Every mistake goes to diag; the rest of the file is still returned. -ENOMEM, -EIO. */
int descriptor_parse(FILE *f, const char *path, struct diag *diag,
		     struct descriptor **ret_descriptor);
/* They write to entries.text. */
void descriptor_write_section(struct buf *out, const char *kind, const char *argument);
void descriptor_write_key(struct buf *out, const char *key, const char *format, ...) _printf_(3, 4);
/* As descriptor_parse(); takes the text over. -ENOMEM. */
int descriptor_read_entries(struct descriptor_entries *entries, struct diag *diag,
			    struct descriptor **ret_descriptor);
void descriptor_free(struct descriptor *descriptor);

/* Prints all of it, a line for each section. */
void descriptor_dump(const struct descriptor *descriptor, FILE *f);

/* NULL: there is none. */
const struct descriptor_param *descriptor_find_param(const struct descriptor *descriptor,
						     const char *name);

/* Is it the metric of the section [metric place]? */
bool descriptor_is_metric_of(const struct descriptor_metric *metric, const char *place);

DEFINE_CLEANUP(struct descriptor *, descriptor_free);

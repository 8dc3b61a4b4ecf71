/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * NAME.conf: what the numbers of an object mean. Text in, plain structure out; knows nothing of BPF, so
 * names of maps, members, programs and settings are checked against the object by collector_open().
 *
 *     [collector]             description
 *                             object = NAME             shared with others; default: the descriptor's own name
 *     [param NAME]            default, description      a "const volatile" variable of the object
 *     [metric MAP[.MEMBER]]   name, unit, description, kind = gauge, attribute = NAME=VALUE (repeatable)
 *                             when = SETTING            neither filled nor read where that setting is zero
 *     [label MAP[.MEMBER]]    name                      of the attribute that a key member becomes
 *     [program NAME]          when = SETTING              loaded only where that setting is not zero
 *                             map = MAP                 whose elements an iterator over a map visits
 *                             runs = once               an iterator that runs only at the start
 *                             runs = seed               and again after the kernel has skipped a program
 *                             backup = PROGRAM          counts what the kernel lets this one miss
 *                             events = MAP[.MEMBER]     a sum that grows by one with each run
 */

#include <stdbool.h>
#include <stdio.h>

#include "util/diag.h"

struct ini_file;

struct descriptor_param {
	const char *name;
	const char *default_text; /* NULL: what the object holds */
	const char *description;  /* NULL: absent */
	unsigned int line;
};

struct descriptor_attribute {
	const char *name;
	const char *value;
	unsigned int line;
};

#define DESCRIPTOR_ATTRIBUTES_MAX 4

struct descriptor_metric {
	const char *map;
	const char *member; /* "": the value as a whole */
	const char *name;
	const char *unit;
	const char *description;
	const char *when; /* a setting; NULL: always */
	const char *kind; /* "gauge"; NULL: it follows from the member's type */
	struct descriptor_attribute attributes[DESCRIPTOR_ATTRIBUTES_MAX];
	unsigned int n_attributes;
	unsigned int line;
};

struct descriptor_label {
	const char *map;
	const char *member;
	const char *name;
	unsigned int line;
};

struct descriptor_program {
	const char *name;
	const char *when; /* a setting; NULL: always */
	const char *map;  /* NULL: none */
	const char *runs; /* "once", "seed"; NULL: before each reading */
	const char *backup; /* another program or hook; NULL: none */
	const char *events; /* a metric's MAP[.MEMBER]; NULL: none counts the runs */
	unsigned int line;
};

struct descriptor {
	struct ini_file *file; /* owns the strings */
	const char *description;
	const char *object; /* NULL: of the descriptor's own name, and not shared */
	struct descriptor_param *params;
	struct descriptor_metric *metrics;
	struct descriptor_label *labels;
	struct descriptor_program *programs;
	size_t n_params, n_metrics, n_labels, n_programs;
};

/* Every mistake goes to diag; the rest of the file is still returned. -ENOMEM, -EIO. */
int descriptor_parse(FILE *f, const char *path, struct diag *diag, struct descriptor **ret_descriptor);
struct descriptor *descriptor_free(struct descriptor *descriptor);

/* NULL: there is none. */
const struct descriptor_param *descriptor_find_param(const struct descriptor *descriptor, const char *name);

/* A metric's or an attribute's name: lower case, dotted (OpenTelemetry naming). */
bool descriptor_is_metric_name(const char *text);
/* Is it the metric of the section [metric place]? */
bool descriptor_is_metric_of(const struct descriptor_metric *metric, const char *place);

DEFINE_CLEANUP(struct descriptor *, descriptor_free);

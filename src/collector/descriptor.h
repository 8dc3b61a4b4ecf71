/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * NAME.conf: what the numbers of an object mean. Text in, plain structure out; knows nothing of BPF, so
 * names of maps, members, programs and settings are checked against the object by collector_open().
 *
 *     [collector]             description
 *     [param NAME]            default, description      a "const volatile" variable of the object
 *     [metric MAP[.MEMBER]]   name, unit, description, kind = gauge, attribute = NAME=VALUE (repeatable)
 *     [label MAP[.MEMBER]]    name                      of the attribute that a key member becomes
 *     [program NAME]          when = SETTING              loaded only where that setting is not zero
 *                             map = MAP                 whose elements an iterator over a map visits
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
	unsigned int line;
};

struct descriptor {
	struct ini_file *file; /* owns the strings */
	const char *description;
	struct descriptor_param *params;
	struct descriptor_metric *metrics;
	struct descriptor_label *labels;
	struct descriptor_program *programs;
	size_t n_params, n_metrics, n_labels, n_programs;
};

/* Every mistake goes to diag; the rest of the file is returned nevertheless. -ENOMEM, -EIO. */
int descriptor_parse(FILE *f, const char *path, struct diag *diag, struct descriptor **ret_descriptor);
struct descriptor *descriptor_free(struct descriptor *descriptor);

/* A metric's or an attribute's name: lower case, dotted (OpenTelemetry naming). */
bool descriptor_is_metric_name(const char *text);

DEFINE_CLEANUP(struct descriptor *, descriptor_free);

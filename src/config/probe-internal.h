/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A [probe] section between probe.c, which understands it, and probe-text.c, which writes its descriptor. */

#include "config/probe.h"

#define HAS_ARGUMENTS 1u
#define HAS_RESULT    2u /* it is where a function returns */
#define HAS_FIELDS    4u
#define IS_FUNCTION   8u /* which is entered, and returns */
#define IS_SAMPLED    16u

struct hook_kind {
	const char *name;
	const char *form; /* of what follows the name */
	unsigned int n_parts, can;
	/* Of the object: at the entry of a function, at its return, and the alternatives to these; or one alone. */
	const char *programs[4];
	const char *remedy; /* for a value that it does not have */
};

struct probe_measure {
	const char *name, *map;
	const char *unit;   /* NULL: it depends on the hook */
	const char *suffix; /* of the metric's name */
};

/* An argument, a result or a field. */
struct probe_value {
	const char *name; /* without its type; first, for array_find() */
	const char *from; /* the object's enum probe_from in lower case; NULL: there is none */
	unsigned int offset, bytes, is_signed;
	const char *text; /* its enum probe_text; NULL: it is a number */
};

#define EVENT_FIELDS 64

struct event_fields {
	struct probe_value items[EVENT_FIELDS];
	char declarations[EVENT_FIELDS][128]; /* hold the names */
	size_t n; /* 0: this kernel has no such event, or nobody here may know */
};

struct probe {
	/* As the section has them. */
	char *hook, *measure, *name, *unit, *description, *period, *frequency;
	struct setting_list by, common; /* common: what every collector has */
	struct assignments all;
	/* Understood. */
	const char *section; /* its name */
	char called[128];    /* the same in names of metrics and attributes */
	const struct hook_kind *kind;
	const char *target; /* of the hook, after its kind */
	const struct probe_measure *what;
	char word[128]; /* the name of what is measured */
	struct probe_value measured;
	int n_arguments; /* that the hook has, if it has some */
	unsigned int n_numbers; /* that it counts by */
	bool has_text;
	bool is_paired;	 /* what is known where the function is entered counts where it returns */
	bool is_classic; /* only a classic tracepoint has fields, and those of system calls are only classic */
	struct event_fields fields;
	struct buf *out;
	struct diag *diag;
};

/* What follows is written to probe->out. probe-text.c */

void probe_write_param(struct probe *probe, const char *name, const char *value);
/* A member of the key is an attribute of that name. */
void probe_write_label(struct probe *probe, const char *member, const char *first, const char *last);
void probe_write_value(struct probe *probe, const char *slot, const struct probe_value *value);
/* All else, once the values are known. */
void probe_write(struct probe *probe);

/* The fields of a classic tracepoint's record, CATEGORY:NAME, as tracefs describes them. event-format.c */
void event_fields_read(const char *event, struct event_fields *ret_fields);

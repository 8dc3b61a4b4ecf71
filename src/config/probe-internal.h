/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A [probe] section between probe.c, which understands it, and probe-text.c, which writes its descriptor. */

#include "config/probe.h"

#define HOOK_HAS_ARGUMENTS 1u
#define HOOK_HAS_RESULT	   2u /* it is where a function returns */
#define HOOK_HAS_FIELDS	   4u
#define HOOK_IS_FUNCTION   8u /* which is entered, and returns */
#define HOOK_IS_SAMPLED	   16u

struct hook_kind {
	const char *name;
	const char *form; /* of what follows the name */
	unsigned int n_parts, can;
	/* Of the object: at the entry of a function, at its return, and the alternatives to these; or one alone. */
	const char *programs[4];
	const char *remedy; /* for a value that it does not have */
};

/* What can be counted by, or measured if it has no param. */
struct probe_word {
	const char *name;
	unsigned int needs;	      /* of what a hook can */
	const char *param;	      /* that switches it on */
	const char *member, *attribute; /* of the key, if its label has to say */
};
#define PROBE_WORDS 12
extern const struct probe_word probe_words[PROBE_WORDS];

struct probe_measure {
	const char *name, *map;
	const char *unit;   /* NULL: it depends on the hook */
	const char *suffix; /* of the metric's name */
};

/* An argument, a result or a field. */
struct probe_value {
	char word[64];	  /* without its type */
	const char *from; /* the object's enum probe_from in lower case; NULL: there is none */
	unsigned int offset, bytes;
	bool is_signed, is_text;
	const char *text; /* its enum probe_text; NULL: it is a pointer */
};

/* What is counted by: numbers, then a text; then what is measured. */
enum probe_slot { PROBE_NUMBERS = 3, PROBE_TEXT = PROBE_NUMBERS, PROBE_MEASURED, PROBE_VALUES };

struct probe {
	/* As the section has them. */
	char *hook, *measure, *name, *unit, *description, *period, *frequency;
	struct setting_list by;
	/* Understood. */
	const char *section; /* its name */
	struct assignments all;
	const struct hook_kind *kind;
	const char *target; /* of the hook, after its kind */
	const struct probe_measure *what;
	bool is_paired;	    /* what is known where the function is entered counts where it returns */
	bool is_classic;    /* only a classic tracepoint has fields, and those of system calls are only classic */
	unsigned int words; /* a bit for each of probe_words that is on */
	struct probe_value values[PROBE_VALUES];
	struct descriptor_text *written;
};

/* probe-text.c. -ENOMEM. */
int probe_write(const struct probe *probe);

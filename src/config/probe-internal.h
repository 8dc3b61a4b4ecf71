/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A [probe] section between probe.c, which understands it, and probe-text.c, which writes its descriptor. */

#include "config/probe.h"

#define PROBE_NUMBERS 3 /* by0, by1, by2 of the object */

#define HOOK_HAS_ARGUMENTS 1u
#define HOOK_HAS_RESULT	   2u /* it is where a function returns */
#define HOOK_HAS_FIELDS	   4u
#define HOOK_IS_FUNCTION   8u /* which is entered, and returns */
#define HOOK_IS_SAMPLED	   16u

struct hook_kind {
	const char *name;
	const char *form; /* of what follows the name */
	unsigned int can;
	const char *enter[2], *leave[2]; /* programs of the object, which are alternatives; of one alone: enter */
	const char *remedy; /* for a value that it does not have */
};

/* An argument, a result or a field. */
struct probe_value {
	char word[64];	  /* without its type */
	const char *from; /* the object's enum probe_from in lower case; NULL: there is none */
	unsigned int offset, bytes;
	bool is_signed, is_text;
	const char *text; /* its enum probe_text; NULL: it is a pointer */
};

struct probe {
	/* As the section has them. */
	char *hook, *measure, *name, *unit, *description, *period, *frequency;
	struct setting_list by;
	/* Understood. */
	const char *section; /* its name */
	struct assignments all;
	const struct hook_kind *kind;
	const char *target; /* of the hook, after its kind */
	const char *what;   /* count, latency, sum, histogram */
	bool is_paired;	    /* what is known where the function is entered counts where it returns */
	bool by_unit, by_process, by_errno, by_cpu, by_comm;
	struct probe_value measured, text, numbers[PROBE_NUMBERS];
	size_t n_numbers;
};

/* probe-text.c. -ENOMEM. */
int probe_write(const struct probe *probe, struct probe_text *ret_text);

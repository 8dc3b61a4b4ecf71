/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A section of the configuration as a table: a key is a row. The same rows give parsing, defaults, the
 * "did you mean" of an unknown key, --help texts and the check that conf/bpfpush.conf names every key.
 *
 *     static const struct option table[] = {
 *             OPTION(struct otlp_options, timeout_ns, "timeout", OPTION_DURATION, "10s", "deadline of one request"),
 *     };
 */

#include <stddef.h>

#include "util/diag.h"

enum option_type {
	OPTION_BOOL,	 /* bool */
	OPTION_U64,	 /* uint64_t */
	OPTION_DURATION, /* uint64_t, ns */
	OPTION_SIZE,	 /* uint64_t, bytes */
	OPTION_TEXT,	 /* char *, owned by the structure; NULL where absent and without a default */
	OPTION_CHOICE,	 /* int: index in choices */
	OPTION_LIST,	 /* struct option_list: the key may be given again and again */
};

struct option_list {
	char **items;
	size_t n_items;
};

struct option {
	const char *key;
	enum option_type type;
	size_t offset;
	const char *default_text;     /* in the same words as in a file; NULL: zero, NULL or empty */
	const char *help;	      /* one line: why one would set it */
	const char *const *choices;   /* OPTION_CHOICE: ended by NULL */
	/* Checks text further, or NULL. What it says goes behind "path:line: key: ". 0 or -EINVAL. */
	int (*check)(const char *text, const char **ret_complaint);
	uint64_t minimum, maximum;    /* for the numbers; maximum 0: none */
};

#define OPTION(structure, member, name, kind, default_value, text, ...)                            \
	{                                                                                          \
		.key = (name), .type = (kind), .offset = offsetof(structure, member),              \
		.default_text = (default_value), .help = (text), ##__VA_ARGS__                     \
	}

/* Sets the defaults in a zeroed structure. -ENOMEM. */
int options_init(const struct option *table, size_t n_options, void *structure);
/*
 * Sets one key from text of path:line; a mistake (unknown key with the nearest valid one, bad value with
 * what is allowed) goes to diag and is no failure. Texts replace earlier ones; lists append. -ENOMEM.
 */
int option_set(const struct option *table, size_t n_options, void *structure, const char *key,
	       const char *value, const char *path, unsigned int line, struct diag *diag);
void options_done(const struct option *table, size_t n_options, void *structure);

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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/diag.h"

enum option_type {
	OPTION_BOOL,	 /* bool */
	OPTION_U64,	 /* uint64_t */
	OPTION_DURATION, /* uint64_t, ns */
	OPTION_SIZE,	 /* uint64_t, bytes */
	OPTION_TEXT,	 /* char *, owned by the structure; NULL where absent and without a default */
	OPTION_CHOICE,	 /* int: index in choices, which are matched in any case */
	OPTION_LIST,	 /* struct option_list: the key may be given again and again, one item each */
	OPTION_WORDS,	 /* struct option_list: likewise, but commas and blanks separate items too */
};

struct option_list {
	char **items;
	size_t n_items;
	bool is_default; /* the next item replaces them all */
};

struct option {
	const char *key;
	enum option_type type;
	size_t offset;
	const char *default_text;   /* in the same words as in a file; NULL: zero, NULL or empty */
	const char *help;	    /* one line: why one would set it */
	const char *const *choices; /* OPTION_CHOICE: ended by NULL */
	/* Checks text (of lists: an item) further, or NULL. What it says goes behind "path:line: key: ". 0 or -EINVAL. */
	int (*check)(const char *text, const char **ret_complaint);
	uint64_t minimum, maximum; /* for the numbers; maximum 0: none */
};

#define OPTION(structure, member, name, kind, default_value, text, ...)               \
	{                                                                             \
		.key = (name), .type = (kind), .offset = offsetof(structure, member), \
		.default_text = (default_value), .help = (text), ##__VA_ARGS__        \
	}

/* Sets the defaults in a zeroed structure. -ENOMEM. A default that the table itself refuses: -EINVAL. */
int options_init(const struct option *table, size_t n_options, void *structure);
const struct option *option_find(const struct option *table, size_t n_options, const char *key);
/* May the key be given more than once? NULL: no. */
bool option_is_list(const struct option *option);
/*
 * Sets one key from text of path:line; a mistake (unknown key with the nearest valid one, bad value with
 * what is allowed) goes to diag and is no failure: the value stays as it was. Texts replace earlier ones,
 * an empty one is NULL where there is no default; lists append, behind an empty value they begin anew. -ENOMEM.
 *
 * Values of OPTION_TEXT and OPTION_LIST are never repeated in a message: they may be secrets.
 */
int option_set(const struct option *table, size_t n_options, void *structure, const char *key,
	       const char *value, const char *path, unsigned int line, struct diag *diag);
/* Reports key, which is none of names: the nearest one or, where none is near, all of them. what: "key". */
void option_add_unknown(struct diag *diag, const char *path, unsigned int line, const char *what,
			const char *key, const char *const *names, size_t n_names);
void options_done(const struct option *table, size_t n_options, void *structure);

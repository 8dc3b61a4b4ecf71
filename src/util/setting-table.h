/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A section of the configuration as a table: a row for each key. The same rows give parsing,
 * defaults, limits, the "did you mean" of an unknown key, and the check that conf/bpfpush.conf and
 * the manual name every key.
 *
 *     static const struct setting_row rows[] = {
 *             SETTING(struct otlp_options, timeout_ns, "timeout", SETTING_DURATION, "10s"),
 *     };
 *     static const struct setting_table table = SETTING_TABLE(rows, struct otlp_options);
 */

#include <stdbool.h>

#include "util/diag.h"

enum setting_type {
	SETTING_BOOL,	  /* bool */
	SETTING_U64,	  /* uint64_t */
	SETTING_DURATION, /* uint64_t, ns */
	SETTING_SIZE,	  /* uint64_t, bytes */
	SETTING_TEXT,	  /* char *, owned by the structure; NULL if absent and without a default */
	SETTING_CHOICE,	  /* int: index in choices, which are matched in any case */
	SETTING_LIST,	  /* struct setting_list: the key may be repeated, one item each time */
	/* struct setting_list: the same, but commas and blanks separate items too */
	SETTING_WORDS,
};

struct setting_list {
	char **items;
	size_t n_items;
	bool is_default; /* the next item replaces them all */
};

void setting_list_clear(struct setting_list *list);
/* A copy of text, at the end. -ENOMEM. */
int setting_list_add(struct setting_list *list, const char *text);

struct setting_row {
	const char *key; /* first, for diag_add_unknown() */
	enum setting_type type;
	size_t offset;
	const char *default_text;   /* written as in a file; NULL: zero, NULL or empty */
	const char *const *choices; /* SETTING_CHOICE: ended by NULL */
	/*
	 * Checks the text (for lists: an item) further, or NULL. *ret_complaint follows "path:line:
	 * key: " in the message. 0, -EINVAL with *ret_complaint set, -ENOMEM.
	 */
	int (*check)(const char *text, const char **ret_complaint);
	uint64_t minimum, maximum; /* for numbers; maximum 0: none */
	bool takes_zero;	   /* although it is below the minimum */
	/* For options of commands. */
	const char *argument; /* what --help calls the value; NULL: there is none */
	const char *help;
	unsigned int commands; /* a set of enum command_name */
};

struct setting_table {
	const struct setting_row *rows;
	size_t n_rows;
	size_t size_bytes; /* of the structure that the rows describe */
};

#define SETTING(structure, member, name, kind, default_value, ...)                               \
	{                                                                                        \
		.key = (name), .type = (kind), .offset = offsetof(structure, member),            \
		.default_text = (default_value), ##__VA_ARGS__                                   \
	}
#define SETTING_TABLE(rows, structure) { (rows), ARRAY_SIZE(rows), sizeof(structure) }

/* One "key = value" as it was written. */
struct assignment {
	const char *key;
	const char *value;
	const char *path; /* of the file, or the name of another origin, with line 0 */
	unsigned int line;
	unsigned int earlier_line; /* where the same file has given the key already; 0: nowhere */
};

/* All of one section, and its own place. */
struct assignments {
	struct assignment *items;
	size_t n;
	const char *path;
	unsigned int line;
};

/* The last one of key, or of key and this text. NULL: none. */
const struct assignment *assignments_find(const struct assignments *all, const char *key,
					  const char *text);
/* Like assignments_find(), but if there is none, one with only the section's place. */
struct assignment assignments_place(const struct assignments *all, const char *key,
				    const char *text);
/* Reports "key: …" where that stands. */
#define assignments_complain(all, diag, key, text, format, ...)                                  \
	({                                                                                       \
		struct assignment at_ = assignments_place(all, key, text);                       \
		diag_add(diag, at_.path, at_.line, "%s: " format, key, ##__VA_ARGS__);           \
	})

/*
 * Sets the defaults in a zeroed structure, whose texts and lists setting_table_done() frees, also
 * after a failure: -ENOMEM; -EINVAL if a row refuses its own default.
 */
int setting_table_init(const struct setting_table *table, void *structure);
void setting_table_done(const struct setting_table *table, void *structure); /* NULL: nothing */

const struct setting_row *setting_table_find(const struct setting_table *table, const char *key);
/* May the key be given more than once? NULL: no. */
bool setting_row_is_list(const struct setting_row *row);
/*
 * Sets one key. A mistake (an unknown key with the nearest valid one, a bad value with the values
 * that are allowed) goes to diag and is not a failure: the value stays as it was. A later text
 * replaces an earlier one, but two in one file are a mistake; an empty text is NULL where there is
 * no default. Lists grow; an empty value empties them. -ENOMEM.
 *
 * Values of SETTING_TEXT and SETTING_LIST are never repeated in a message: they may be secrets.
 */
int setting_table_set(const struct setting_table *table, void *structure,
		      const struct assignment *assignment, struct diag *diag);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a descriptor may say: a kind of section is a row in grammar_sections[], a key of it a row in
 * grammar_keys[].
 */

#include <stdbool.h>
#include <stddef.h>

struct grammar_section {
	const char *name;
	/* what messages call it; NULL: the section has none */
	const char *argument;
	size_t list_offset, n_offset, item_bytes;    /* of its list in the descriptor */
	size_t argument_offset, line_offset;	     /* in an item */
	/* of what follows the dot in the argument; 0: it is one name */
	size_t member_offset;
	/* of a bool in an item that tells the items of sections with one list apart; 0: none */
	size_t flag_offset;
	bool flag;
};

enum grammar_form { GRAMMAR_TEXT,   /* a const char * */
		    GRAMMAR_LIST,   /* a struct descriptor_list of texts */
		    GRAMMAR_PAIRS }; /* the same of TEXT=VALUE */

struct grammar_key {
	const char *section, *name;
	size_t offset; /* in the item */
	/* Returns NULL, or the end of the message "KEY "VALUE" …". No function: pattern decides. */
	const char *(*check)(const char *value);
	bool is_required;
	enum grammar_form form;
	bool is_kept; /* even if check refuses it, so that it does not count as missing as well */
	const char *words[7]; /* those that it may be, ended by NULL; none: any text */
	struct grammar_pattern *pattern; /* that a text has to match; NULL: none */
};

#define GRAMMAR_SECTIONS 8
#define GRAMMAR_KEYS 52
extern const struct grammar_section grammar_sections[GRAMMAR_SECTIONS];
extern const struct grammar_key grammar_keys[GRAMMAR_KEYS];

/* NULL, or the end of the message "KEY "VALUE" …". */
const char *grammar_check(const struct grammar_key *key, const char *word);
/*
 * A metric's or an attribute's name is lower case and dotted (OpenTelemetry naming). NULL, or why
 * it is not one: the end of a message.
 */
const char *grammar_check_name(const char *word);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An INI file as a flat list of entries with their places. The only door to inih, and strict where
 * inih is lenient or silent: over-long lines and section names, NUL and control bytes, invalid UTF-8,
 * text behind "]", empty or odd keys, inline comments and continuation lines are errors with a line,
 * never a guess. A comment is a whole line that begins with '#' or ';'.
 *
 *     [kind argument]      a section; argument may be absent
 *     key = value          value may be empty, key is of A-Z a-z 0-9 _ . -
 */

#include <stdio.h>

#include "util/diag.h"

struct ini_entry {
	const char *section;  /* "metric" of "[metric map.field]" */
	const char *argument; /* "map.field", or "" */
	const char *key;      /* NULL: the section's own line, so that empty sections are seen too */
	const char *value;    /* NULL where key is NULL */
	unsigned int line;
};

struct ini_file {
	char *path;
	struct ini_entry *entries; /* in the order of the file */
	size_t n_entries;
};

/*
 * Reads f to its end. Mistakes go to diag, and what could be read is returned all the same, so that a
 * caller can report its own findings too. -ENOMEM, -EIO; a file larger than 1 MiB is a mistake.
 */
int ini_read(FILE *f, const char *path, struct diag *diag, struct ini_file **ret_file);
struct ini_file *ini_file_free(struct ini_file *file);

DEFINE_CLEANUP(struct ini_file *, ini_file_free);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An INI file as a flat list of entries with their places. The only door to inih, and strict where
 * inih is lenient or silent: what it would cut, join or guess is a mistake with a line.
 *
 *     # comment: a whole line that begins with '#' or ';', after any blanks
 *     [kind argument]      a section; the argument is one word and may be absent
 *     key = value          the value goes to the end of the line and may be empty
 *
 * - kind and key are of A-Z a-z 0-9 _ . - ; '=' alone separates (inih takes ':' too, so would cut a URL).
 * - There are no comments behind a value. A value that begins with '#' or ';', or holds one of them
 *   behind a blank, is a mistake: it cannot be told from a comment (inih cuts at " ;", keeps " #").
 *   "a;b" and "a#b" are values like any other. There are no quotes and no escapes.
 * - Blanks before a line mean nothing; no line continues another (in inih an indented line does).
 * - A line of more than INI_LINE_BYTES is a mistake (inih reads its first 197 bytes and drops the rest);
 *   long lists are several lines with the same key, where the key allows it.
 * - Text must be UTF-8 without control characters but tab; lines end in LF or CR LF; a byte order mark
 *   before the first is skipped.
 * - Behind a bad section line, keys are skipped up to the next section, never taken for the one before.
 */

#include <stdio.h>

#include "util/diag.h"

#define INI_LINE_BYTES 197	 /* of one line without its end */
#define INI_FILE_BYTES (1 << 20) /* of one file */
#define INI_MISTAKES   100	 /* after so many the rest of a file is not read */
#define INI_ENTRIES    10000	 /* of one file, sections included */

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
	char *strings; /* what the entries point to */
};

/*
 * Reads f to its end. Mistakes go to diag, and what could be read is returned all the same, so that a
 * caller can report its own findings too. -ENOMEM, or -EIO and the like, when reading failed (a directory:
 * -EISDIR), which is not in diag; a file larger than INI_FILE_BYTES is a mistake and has no entries.
 */
int ini_read(FILE *f, const char *path, struct diag *diag, struct ini_file **ret_file);
/*
 * The entry before entry, in the same file, that says the same: the same key in a section of the same
 * name, or the same section again. NULL: it is the first. For "duplicate" mistakes; INI_ENTRIES bounds the cost.
 */
const struct ini_entry *ini_find_earlier(const struct ini_file *file, const struct ini_entry *entry);
struct ini_file *ini_file_free(struct ini_file *file);

DEFINE_CLEANUP(struct ini_file *, ini_file_free);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An INI file as a flat list of entries with their places. The only door to inih, and strict where
 * inih is lenient or silent: a line that inih would cut, join or guess at is a mistake.
 *
 *     # comment: a whole line that begins with '#' or ';', after any blanks
 *     [kind argument]      a section; the argument is one word and may be absent
 *     key = value          the value goes to the end of the line and may be empty
 *
 * - Kinds and keys are names (parse_is_name()). Only '=' separates (inih takes ':' too, and would
 *   cut a URL).
 * - A comment cannot follow a value. A value that begins with '#' or ';', or contains one of
 *   them after a blank, is a mistake, because it looks like a comment (inih cuts at " ;" and keeps
 *   " #"). "a;b" and "a#b" are ordinary values. Quotes and escapes mean nothing.
 * - Blanks at the beginning of a line mean nothing; no line continues another (in inih an indented
 *   line does).
 * - Text must be UTF-8 without control characters other than tab; lines end in LF or CR LF; a byte
 *   order mark at the beginning is skipped.
 * - After a bad section line, keys are skipped up to the next section and never taken for the one
 *   before.
 */

#include "util/diag.h"

#define INI_LINE_BYTES 16384	 /* of one line without its end */
#define INI_FILE_BYTES (1 << 20) /* of one file */
#define INI_MISTAKES   100	 /* after so many the rest of a file is not read */
#define INI_ENTRIES    10000	 /* of one file, sections included */

struct ini_entry {
	const char *section;  /* "metric" of "[metric map.field]" */
	const char *argument; /* "map.field", or "" */
	/* NULL: the section's own line, so that empty sections are seen too */
	const char *key;
	const char *value;    /* NULL where key is NULL */
	unsigned int line;
};

struct ini_file {
	char *path;
	struct ini_entry *entries; /* in the order of the file */
	size_t n_entries;
	char *text; /* what the entries point to */
};

/*
 * Reads f to its end. Mistakes go to diag, and what could be read is returned all the same, so that
 * a caller can report its own findings too. -ENOMEM, or -EIO and the like, when reading failed (a
 * directory: -EISDIR), which is not in diag; a file larger than INI_FILE_BYTES is a mistake and has
 * no entries.
 */
int ini_read(FILE *f, const char *path, struct diag *diag, struct ini_file **ret_file);
/*
 * The entry before entry, in the same file, that says the same: the same key in a section of the
 * same name, or the same section again. NULL: it is the first. For "duplicate" mistakes;
 * INI_ENTRIES bounds the cost.
 */
const struct ini_entry *ini_find_earlier(const struct ini_file *file,
					 const struct ini_entry *entry);
struct ini_file *ini_file_free(struct ini_file *file);

DEFINE_CLEANUP(struct ini_file *, ini_file_free);

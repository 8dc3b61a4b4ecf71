/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The mistakes in text that a person wrote: every one, not only the first, each as
 *     path:line: what is wrong, and what to write instead
 * with '?' for what a terminal might obey. Those of a file are together, sorted by line; files, and
 * messages about one line, are in the order in which they were found. Line 0 leaves the line out
 * (the file as a whole). If memory runs out, buf_error(&diag->text) says so.
 */

#include "util/array.h"
#include "util/buf.h"

#define DIAG_SHOWN_MAX 200 /* the others are only counted */

struct diag {
	struct buf text; /* the lines, each ended by a newline */
	unsigned int n_errors;
};

#define DIAG_INIT ((struct diag){ 0 })

void diag_add(struct diag *diag, const char *path, unsigned int line, const char *format, ...)
	_printf_(4, 5);
/*
 * Reports word, which is the name of none of the n items: with the nearest name or, if none is
 * near, with all. items: as for array_find(). what: "key". word NULL: there should be one.
 */
#define diag_add_unknown(diag, path, line, what, word, items, n) \
	diag_add_none_of(diag, path, line, what, word, items, n, sizeof(*(items)))
void diag_add_none_of(struct diag *diag, const char *path, unsigned int line, const char *what,
		      const char *word, const void *items, size_t n, size_t item_bytes);
/* array_find(), and the report if there is none. */
#define diag_find(diag, path, line, what, word, items, n)                                        \
	({                                                                                       \
		__typeof__(&(items)[0]) found_ = (word) ? array_find(items, n, word) : NULL;     \
		if (!found_)                                                                     \
			diag_add_unknown(diag, path, line, what, word, items, n);                \
		found_;                                                                          \
	})
void diag_done(struct diag *diag);

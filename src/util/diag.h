/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The mistakes in text that a person wrote: every one, not only the first, each as
 *     path:line: what is wrong, and what to write instead
 * in the order in which they were found. Line 0 leaves the line out (the file as a whole). If
 * memory runs out, buf_error(&diag->text) says so.
 */

#include "util/buf.h"

struct diag {
	struct buf text; /* the lines, each ended by a newline */
	unsigned int n_errors;
};

#define DIAG_INIT ((struct diag){ 0 })

void diag_add(struct diag *diag, const char *path, unsigned int line, const char *format, ...)
	_printf_(4, 5);
/*
 * Reports word, which is not in names: with the nearest name or, if none is near, with all. what:
 * "key".
 */
void diag_add_unknown(struct diag *diag, const char *path, unsigned int line, const char *what, const char *word,
		      const char *const *names, size_t n_names);
void diag_done(struct diag *diag);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where the exporters for people and scripts write: standard output or a file that is appended to.
 * This module has what they share: settings, opening and counting. Each exporter only makes the
 * text.
 *
 * A reader that does not read (a pager at the end of a pipe, a stopped terminal) must not delay the
 * agent. If it has not taken all of a batch after a moment, the rest is kept, and further batches
 * are dropped as a whole until it has. Only with a single batch (is_once) does the exporter wait as
 * long as it takes.
 *
 * If a batch cannot be written as a whole (a full disk), the file is cut back to where the batch
 * began. If that is impossible (in a pipe, or because another program has appended), the next batch
 * begins with a newline. The same holds if the file ended in an incomplete line before.
 */

#include <stdbool.h>

#include "export/exporter.h"
#include "util/buf.h"

struct output_options {
	char *path; /* "-": standard output */
};

extern const struct setting_table output_settings;

/* Options begin with a struct output_options. */
void output_options_check(const void *options, const struct assignments *given, struct diag *diag);

struct output {
	int fd;
	bool is_terminal;
	bool can_block;	   /* no regular file */
	bool is_torn;	   /* the output ends in the middle of a line */
	int patience_ms;   /* without progress; -1: forever */
	size_t n_written;  /* of out */
	size_t n_points;   /* in out */
	size_t n_lost;	   /* since it failed first */
	/*
	 * Points of this batch that the exporter has left out because its format cannot express
	 * them. The exporter counts them here, after output_is_ready(), which sets this to 0.
	 */
	size_t n_unsupported;
	struct buf out;	       /* what the next write takes */
	struct buf head;       /* the exporter's: the last line of headings */
};

/*
 * What the struct exporter_ops of all of them have. The state of the exporter is a struct output.
 */
#define OUTPUT_OPS										  \
	.check = output_options_check, .state_bytes = sizeof(struct output), .open = output_open, \
	.waiting = output_waiting, .close = output_close

int output_open(struct exporter *exporter, const void *options);
void output_close(struct exporter *exporter);
struct exporter_waiting output_waiting(const struct exporter *exporter);
/* The points of a batch. */
size_t output_count(const struct batch *batch);
/* Is all that was in out written? Tries to write it. */
bool output_is_idle(struct exporter *exporter);
/*
 * May a text with so many points or events be appended to out? If not, the reader has not taken the
 * last one yet, and they are counted as lost.
 */
bool output_is_ready(struct exporter *exporter, size_t n_points);
/*
 * Writes out, which holds all of them but n_unsupported, and accounts for all of them: the exporter
 * itself counts nothing else. What cannot be written is logged once. 0 (also where the reader is
 * slow), or -errno of the buffer or the file. A reader that is gone is an error, not a signal.
 */
int output_flush(struct exporter *exporter, size_t n_points);
/* What a terminal wants, see https://no-color.org; and its width, 80 if it is not known. */
bool output_has_colour(int fd, unsigned int *ret_width);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where the exporters for people and scripts write: standard output or a file that is appended to.
 * What they have in common as options, opening and counting is here; each brings what it writes.
 */

#include <stdbool.h>

#include "export/exporter.h"
#include "util/buf.h"

struct stream_options {
	char *path; /* "-": standard output */
};

#define STREAM_N_OPTIONS 1
extern const struct option stream_option_table[STREAM_N_OPTIONS];

struct stream {
	int fd;
	bool is_owned;
	bool is_terminal;
	unsigned int n_pushed; /* batches */
	struct buf out;	       /* what the next write takes */
};

/* The two below are those of struct exporter_ops; the state of the exporter is a struct stream. */
int stream_open(struct exporter *exporter, const void *options);
void stream_close(struct exporter *exporter);
/*
 * Writes out, which holds n_points, and empties it. What cannot be written is counted and logged once.
 * 0, or -errno of the buffer or the file. A reader that is gone is an error, not a signal.
 */
int stream_flush(struct exporter *exporter, size_t n_points);
/* Columns and lines of the terminal; 80 and 24 where it does not say. */
void stream_window(const struct stream *stream, unsigned int *ret_columns, unsigned int *ret_lines);

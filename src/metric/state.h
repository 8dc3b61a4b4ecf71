/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Series and rows on their way from one process to the next. What is read may be damaged, or of a
 * process with other metrics: what does not fit is left out.
 *
 * A row names its series by numbers, so that its key need not be decoded again: what the key means
 * may be gone.
 */

#include "metric/delta.h"
#include "util/store.h"

/*
 * What series are called, and since when they count: it does not change, so it is written once.
 * What belongs to a series that has ended stays, until all is written again.
 */
struct series_names {
	struct store *store;
	size_t n, n_live; /* of series */
	struct index texts; /* where the last ones lie: a text is not written again */
};

/* Has much of what is there ended? Nothing is there at first. */
bool names_are_stale(const struct series_names *names);
/* All names are to be written to store. */
void names_begin(struct series_names *names, struct store *store);

/*
 * What one series is called, for those who write all else themselves; in the reader, the names are
 * all that was written. *ret_reason: of an overflow series, else OVERFLOWS. -EINVAL.
 */
void name_save(const struct series *series, struct series_names *names);
int name_read(struct stored *in, const struct stored *names, struct attributes *ret_attributes,
	      enum overflow *ret_reason, uint64_t *ret_start_ns);

/* Numbers the series that have a point in the last batch, from 1 on. */
void metrics_save(struct metric *const *metrics, size_t n, struct series_names *names,
		  struct store *out);

/*
 * The series of the process before, by their numbers; NULL: they do not go on. Each is held as by a
 * source.
 */
struct restored {
	struct stored names;
	struct series **series;
	size_t n_series;
	/* the configuration has changed what keys become: rows look for their series again */
	bool has_other_names;
	uint64_t time_ns;     /* of the last batch */
};

/* -ENOMEM, -EINVAL; what was read until then goes on. */
int metrics_restore(struct metric *const *metrics, size_t n, struct stored *in,
		    struct restored *restored);
/* Releases those for which is_held() is false, or all (NULL). */
void restored_release(struct restored *restored,
		      bool (*is_held)(void *user, const struct series *series), void *user);

void rows_save(struct rows *rows, size_t n_metrics, struct store *out);
/*
 * Into rows that are new and empty. They have numbers from 0 on, in the order in which they were
 * saved. -ENOMEM, -EINVAL.
 */
int rows_restore(const struct delta *delta, struct rows *rows, struct stored *in,
		 const struct restored *restored);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What once and report make of the batches: the answer to a question, and heat maps of it. */

#include "command/setup.h"

struct answer {
	struct view *view;
	bool has_heats;
	bool has_intervals;   /* each batch has an answer, of its interval */
	/* the answer to each batch has totals since the start, as files have them */
	bool has_totals;
	/* by the metrics of the view, NULL: it is not a histogram; made with the first batch */
	struct heat **heats;
	size_t n_series;
	bool is_failing; /* without memory, the answer would not be complete */
};

/*
 * Before anything is attached: can path be written? NULL: standard output. Else false, after a
 * message that names option.
 */
bool answer_can_write(const char *option, const char *path);
/* Can a heat map be in such a file? Else false, after a message. */
bool answer_can_be_drawn(const struct arguments *arguments);
/*
 * answer: of zeros, outlives the counting. Nothing if nothing is asked. EXIT_USE after a message;
 * EXIT_INTERNAL.
 */
enum exit_code answer_begin(struct answer *answer, const struct arguments *arguments,
			    struct setup *setup);
/*
 * For agent_options.view. The answer to the whole run comes with the last batch, unless it has
 * intervals.
 */
const struct batch *answer_take(void *answer, const struct batch *batch);
/* Writes the heat maps, if there are any. EXIT_OUTPUT after a message. */
enum exit_code answer_write(const struct answer *answer, const struct arguments *arguments);
void answer_done(struct answer *answer);

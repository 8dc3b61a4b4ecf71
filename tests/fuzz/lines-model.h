/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What lines a batch must have, in order, from the numbers of its series alone; and whether those that there are
 * say it. What they are called is not foretold: a name must be well formed and belong to one line of one series.
 */

#include "export/lines/lines.h"
#include "lines-grammar.h"
#include "util/buf.h"

/* Which line of its series; those of buckets follow from ROLE_BUCKET on. */
enum { ROLE_ONLY,
       ROLE_COUNT,
       ROLE_SUM,
       ROLE_BUCKET };

struct expected {
	unsigned int role;
	bool is_sample; /* n values in (lower, upper] of bucket role - ROLE_BUCKET; else raw / divisor */
	bool is_negative, is_counter;
	uint64_t raw, divisor, n;
};

#define BUCKETS_MAX 512

struct model_totals {
	uint64_t sum, count, bucket[BUCKETS_MAX];
};

struct model_series {
	const struct series *series; /* NULL: has ended */
	unsigned __int128 said;	     /* of a sum in whole units, also what no line could say */
	uint64_t time_s;	     /* of the batch before */
	struct model_totals last;    /* in that batch */
	struct model_totals before;  /* in the last one of another time, from which Graphite's lines count */
	int64_t last_gauge;	     /* the rest is about the writer with the small limit */
	bool is_gauge_sent;
	unsigned int losses;
};

struct model {
	enum dialect_id dialect;
	const struct lines_options *options;
	bool is_default_template;
	unsigned int n_resource_tags; /* that the default template gives */
	uint64_t time_s;
	/* Names seen so far. */
	struct known {
		char *name;
		unsigned int series, role;
	} *known;
	size_t n_known;
};

#define EXPECTED_MAX 1100 /* lines of a series */

/* Fills lines and says how many; *ret_is_refused: a part of the point has no words in the dialect. */
size_t model_expect(const struct model *model, struct model_series *series, struct expected lines[EXPECTED_MAX],
		    bool *ret_is_refused);
/* text is the line of series (its number is index) that expected says; aborts where it is not. */
void model_check(struct model *model, unsigned int index, const struct series *series, const struct expected *expected,
		 struct grammar_text text);
void model_done(struct model *model);

/* Aborts, saying what is wrong with text. */
void model_assert(bool is_right, const char *what, struct grammar_text text);

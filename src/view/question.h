/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a person asks about series: which of them, and told apart by what.
 *
 * An attribute is written with its name, or with the end of it after a dot ("syscall.name" means
 * bpfpush.syscall.name). "unit" means whichever attribute says whose a series is
 * (attribute_owner()), and in a list of attributes, "process" means the process with its executable
 * and unit, and "none" that nothing is told apart.
 *
 *     ATTRIBUTE            it has this attribute
 *     !ATTRIBUTE           it has not
 *     ATTRIBUTE=PATTERN    it has, and the value matches, as in fnmatch(3) without backslashes
 *     ATTRIBUTE!=PATTERN   it has not, or the value does not match
 */

#include "metric/metric.h"
#include "util/diag.h"

struct condition {
	char *attribute;     /* "unit" or the end of a name; owned */
	const char *pattern; /* in .attribute; NULL: any value */
	bool is_negated;
};

struct question {
	/* their names or their ends, or names of collectors; none: all. Owned */
	struct setting_list metrics;
	struct setting_list by;	      /* attributes; none: all that a series has. Owned */
	struct condition *conditions; /* a series meets all of them */
	size_t n_conditions;
	/* scope of metrics that are outside the question, as they are; NULL: none */
	const char *exempt;
};

/*
 * by, where: of the command line. Mistakes go to diag. -ENOMEM; question_done() frees after that,
 * too.
 */
int question_init(struct question *question, const struct setting_list *by,
		  const struct setting_list *where, struct diag *diag);
void question_done(struct question *question);
/* Adds a condition as above. -ENOMEM. */
int question_add(struct question *question, const char *text, struct diag *diag);

/* Is nothing asked? Then the answer is the batch itself. */
bool question_is_empty(const struct question *question);
bool question_wants_metric(const struct question *question, const struct metric *metric);
/* Is it among those asked for? An overflow series always is: what was asked for may be in it. */
bool question_wants(const struct question *question, const struct series *series);
/* May another event of the same owner be among them? */
bool question_wants_owner(const struct question *question, const struct attributes *attributes);
bool question_wants_event(const struct question *question, const struct attributes *attributes);
/*
 * The attributes that it is told apart by, in the order of the series. Texts are borrowed from it.
 */
void question_choose(const struct question *question, const struct series *series,
		     struct attributes *ret_attributes);
/* The attribute whose name fits the word, as above, or NULL. */
const struct attribute *question_find(const char *word, const struct series *series);
/* Does name fit the word, as above? */
bool question_is_named(const char *word, const char *name);
/* Or one of these words? */
bool question_lists(const struct setting_list *list, const char *name);

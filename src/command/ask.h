/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the command line asks of collectors that are open, and not started yet. */

#include "agent/collector-set.h"
#include "command/arguments.h"
#include "view/question.h"

/*
 * Is it about an attribute of processes, which collectors have only if they count each process by
 * itself?
 */
bool ask_is_of_processes(const struct arguments *arguments);
/* Does once ask for nothing in detail, so that the answer is one table of units or processes? */
bool ask_is_general(const struct arguments *arguments);
/*
 * Sets what --set, --duration and --per-process say, or what ask_is_of_processes() implies, and
 * makes the question of --by, --where and the words (ended by NULL), some of which may be metrics.
 * What nothing that counts here has is a mistake, which goes to diag. -ENOMEM; question_done()
 * frees after that, too.
 */
int ask_collectors(const struct arguments *arguments, char *const *words,
		   const struct collector_set *set,
		   struct diag *diag, struct question *ret_question);

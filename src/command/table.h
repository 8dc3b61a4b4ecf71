/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What once prints if nothing is asked for in detail: the table of top, with a row for each unit or
 * process.
 */

#include "command/setup.h"
#include "top/top.h"

struct table {
	struct top *top; /* NULL: another answer is wanted */
	int fd;		 /* of a file, or -1 */
};

#define TABLE_INIT { .fd = -1 }

/*
 * Before anything is attached, and only if nothing is asked for in detail. EXIT_* after a message;
 * EXIT_INTERNAL.
 */
enum exit_code table_begin(struct table *table, const struct arguments *arguments,
			   struct setup *setup);
/* A last line for a terminal. Could all be written? Else EXIT_OUTPUT after a message. */
enum exit_code table_end(const struct table *table, const struct arguments *arguments);
void table_done(struct table *table);

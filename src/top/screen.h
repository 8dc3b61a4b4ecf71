/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The terminal: the only user of ncurses. Texts are clean UTF-8 in one line (grid_clean()), with
 * SGR sequences.
 */

#include <stdbool.h>

/* Can standard input and output be one? Needs no screen_begin(). */
bool screen_is_possible(void);
/*
 * If standard error is a terminal, too, messages wait until screen_end(). Blocks SIGWINCH and
 * SIGTSTP: they are to end in screen_resize() and screen_suspend(). -ENOTTY: the terminal cannot do
 * it.
 */
int screen_begin(void);
/* The terminal is as before. Safe twice. */
void screen_end(void);
/* Has the size changed? */
void screen_resize(void);
/*
 * Gives the terminal back and stops the process, until the shell continues it. The picture is then
 * to be shown.
 */
void screen_suspend(void);
unsigned int screen_lines(void), screen_columns(void);
/* Those of heat_print(). */
bool screen_has_colours(void);

/*
 * A line of the next picture, cut at its end. SGR sequences: those of grid.h and of heat_print(),
 * without colours in another way. is_chosen: the whole line stands out.
 */
void screen_put(unsigned int line, const char *text, bool is_chosen);
void screen_show(void);

/* A character; less than 0: minus a KEY_ of ncurses; 0: no more now. */
int screen_key(void);
/* The last message since screen_begin(), or "". Valid until the next call. */
const char *screen_message(void);

/* SPDX-License-Identifier: Apache-2.0 */
/* The screen of a program without one: it is possible nowhere, so nothing else is called. */
#include <errno.h>

#include "top/screen.h"

bool screen_is_possible(void)
{
	return false;
}

int screen_begin(void)
{
	return -ENOTTY;
}

void screen_end(void)
{
}

void screen_resize(void)
{
}

void screen_suspend(void)
{
}

unsigned int screen_lines(void)
{
	return 0;
}

unsigned int screen_columns(void)
{
	return 0;
}

bool screen_has_colours(void)
{
	return false;
}

void screen_put(unsigned int line, const char *text, bool is_chosen)
{
}

void screen_show(void)
{
}

int screen_key(void)
{
	return 0;
}

const char *screen_message(void)
{
	return "";
}

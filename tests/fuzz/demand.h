/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* What must hold for any input. */
static inline void demand(bool is_right, const char *what)
{
	if (is_right)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

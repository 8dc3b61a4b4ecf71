/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static unsigned int n_left = UINT_MAX;
static bool has_failed;

void alloc_fail_at(unsigned int n)
{
	n_left = n;
	has_failed = false;
}

bool alloc_end(void)
{
	n_left = UINT_MAX;
	return has_failed;
}

static bool must_fail(void)
{
	if (n_left == UINT_MAX)
		return false;
	if (n_left) {
		n_left--;
		return false;
	}
	has_failed = true;
	errno = ENOMEM;
	return true;
}

#define WRAP(type, name, parameters, ...)                               \
	type __real_##name parameters;                                  \
	type __wrap_##name parameters;                                  \
	type __wrap_##name parameters                                   \
	{                                                               \
		return must_fail() ? NULL : __real_##name(__VA_ARGS__); \
	}

WRAP(void *, malloc, (size_t size), size)
WRAP(void *, calloc, (size_t n, size_t size), n, size)
WRAP(void *, realloc, (void *old, size_t size), old, size)
WRAP(void *, reallocarray, (void *old, size_t n, size_t size), old, n, size)
WRAP(char *, strdup, (const char *text), text)
WRAP(char *, strndup, (const char *text, size_t length), text, length)

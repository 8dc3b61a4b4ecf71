/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * You can check ownership by reading one function: every owning variable is declared with
 * _cleanup_(), and everything that leaves the function goes through TAKE_PTR() or TAKE_FD().
 */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(function) __attribute__((cleanup(function)))
#define _printf_(at, first) __attribute__((format(printf, at, first)))
#define _unused_ __attribute__((unused))

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#define TAKE_PTR(pointer) TAKE(pointer, NULL)
#define TAKE_FD(fd)	  TAKE(fd, -1)
#define TAKE(variable, nothing)                                                                    \
	({                                                                                         \
		__typeof__(variable) taken_ = (variable);                                          \
		(variable) = (nothing);                                                            \
		taken_;                                                                            \
	})

/* DEFINE_CLEANUP(struct x *, x_free) gives x_freep() for _cleanup_(). The function takes NULL. */
#define DEFINE_CLEANUP(type, function)                                                             \
	static inline void function##p(type *pointer)                                              \
	{                                                                                          \
		function(*pointer);                                                                \
	}                                                                                          \
	struct cleanup_needs_semicolon_

static inline void freep(void *pointer)
{
	free(*(void **)pointer);
}

static inline void closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void fclosep(FILE **file)
{
	if (*file)
		fclose(*file);
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An allocator that fails when a test says so: what our code calls (malloc, calloc, realloc,
 * reallocarray, strdup, strndup), not what libraries do inside. Needs the linker's --wrap (meson.build).
 */

#include <errno.h>
#include <stdbool.h>

void alloc_fail_at(unsigned int n); /* from the n-th allocation from now on, counted from 0, all fail */
bool alloc_end(void);		    /* from now on none fails; has one failed? */

/* Runs call with the first, second, third … allocation failing until none fails; each must give -ENOMEM. */
#define assert_survives_failing_allocations(call, after) \
	for (unsigned int n_ = 0;; n_++) {               \
		int r_;                                  \
                                                         \
		assert_true(n_ < 100000);                \
		alloc_fail_at(n_);                       \
		r_ = (call);                             \
		if (!alloc_end()) {                      \
			assert_int_equal(r_, 0);         \
			after;                           \
			break;                           \
		}                                        \
		assert_int_equal(r_, -ENOMEM);           \
		after;                                   \
	}

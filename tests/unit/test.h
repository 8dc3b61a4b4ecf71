/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* cmocka with what it wants included before, and two words that say what a call must return. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define assert_ok(call)		  assert_int_equal((call), 0)
#define assert_error(call, errno_) assert_int_equal((call), -(errno_))

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* For messages: "%u mistake%s", n, plural(n). */
static inline const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

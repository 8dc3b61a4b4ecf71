/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which series are there, whether their rows grow or not. */

#include "collector/binding/binding.h"

/*
 * After a reading of rows that each belong to a CPU: those of CPUs that are offline are not
 * exported meanwhile.
 */
void cpus_choose(struct binding *binding);
/*
 * After a reading of a map with has_zero: there are rows of constants that do not count, too.
 * -ENOMEM.
 */
int zeros_touch(struct binding *binding);

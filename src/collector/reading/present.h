/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which series are there, whether their rows grow or not. */

#include "collector/binding.h"

/* After a reading of rows that each belong to a CPU: those of CPUs that are offline are not exported meanwhile. */
void cpus_choose(struct binding *binding);
/*
 * Sees to the series of constants that do not count yet, where a section says zero = yes. Between series_begin() and
 * series_end(). -ENOMEM.
 */
int zeros_compute(struct binding *binding, uint64_t previous_ns);
/* Before the metrics forget their series. */
void zeros_release(struct binding *binding);

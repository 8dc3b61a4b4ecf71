/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The capabilities of the calling thread, as sets of bits: 1 << CAP_... */

#include <stdbool.h>
#include <stdint.h>

/* Those that it has or could turn on. */
uint64_t rights_permitted(void);
/*
 * Does this process, which is not the service itself, have rights as the service has (ExecReload=),
 * or more? Then the service cannot use what this process cannot use.
 */
bool rights_judge(void);
/*
 * From now on it has only effective, and could turn on only permitted; what it starts inherits
 * neither. What is not in permitted is gone for good. -errno.
 */
int rights_set(uint64_t permitted, uint64_t effective);

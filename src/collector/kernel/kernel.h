/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What every collector needs of this machine. It is asked before anything is loaded, so that what is missing is
 * said once, in one sentence with the remedy, and not by the verifier for each program.
 */

#include <stdbool.h>

#include "util/buf.h"

/* 0, or with the sentence in why: -EPERM (rights are missing), -EOPNOTSUPP (nothing could run here). */
int kernel_check(struct buf *why);
/* May this thread read maps, with the capabilities that it has now? */
bool kernel_can_read(void);
/* Is this Linux of that version or a later one? For what cannot be tried. */
bool kernel_is_since(unsigned int major, unsigned int minor);

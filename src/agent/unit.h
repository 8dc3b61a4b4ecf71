/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The service's unit, as systemd knows it. */

#include <stdint.h>

#include "util/buf.h"

#define UNIT_NAME     "bpfpush.service"
#define UNIT_DROP_INS "/etc/systemd/system/" UNIT_NAME ".d"

/*
 * The capabilities that it starts its processes with, as a set of bits. -ENOENT: systemd knows no
 * such unit; -errno.
 */
int unit_rights(uint64_t *ret_rights);
/* How many descriptors it may have open, and systemd keeps of them. Errors as above. */
int unit_limits(uint64_t *ret_open, uint64_t *ret_kept);
/* "active", "activating" and so on, to be freed; NULL: it is not known. */
char *unit_state(void);
/*
 * Lets systemd read its files again, and restarts the service if it runs. -errno, with systemd's
 * words in why.
 */
int unit_apply(struct buf *why);

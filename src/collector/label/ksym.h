/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Kernel addresses to function names, from /proc/kallsyms. Opened without CAP_SYSLOG it may show
 * only zeros; then none is found.
 */

#include <stdint.h>

#include "util/cleanup.h"

struct ksyms;

/* Reads f from its beginning. -EBADF if it is NULL, -ENODATA if it shows no addresses, -ENOMEM. */
int ksyms_new(FILE *f, struct ksyms **ret_ksyms);
struct ksyms *ksyms_free(struct ksyms *ksyms);
/*
 * The function that contains address, or NULL. If several begin at the same address, it is the last
 * one in the file. A function ends where the next symbol begins; the last one of the kernel or of a
 * module ends with its page. Owned by ksyms.
 */
const char *ksyms_find(const struct ksyms *ksyms, uint64_t address);

DEFINE_CLEANUP(struct ksyms *, ksyms_free);

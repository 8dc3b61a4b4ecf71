/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Kernel addresses to function names, from /proc/kallsyms (all zeros without CAP_SYSLOG: then none is found). */

#include <stdint.h>

#include "util/cleanup.h"

struct ksyms;

/* -ENOENT and its like where path cannot be read, -ENODATA where it shows no addresses, -ENOMEM. */
int ksyms_new(const char *path, struct ksyms **ret_ksyms);
struct ksyms *ksyms_free(struct ksyms *ksyms);
/* The symbol that begins last at or before the address (of several the file's last), or NULL. Owned by ksyms. */
const char *ksyms_find(const struct ksyms *ksyms, uint64_t address);

DEFINE_CLEANUP(struct ksyms *, ksyms_free);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether programs can be attached, as far as that can be known without a right. */

#include <stdint.h>

struct collector;
struct diag;
struct program;

/* While it is opened: complains of what no machine could attach. */
void hook_check(const struct collector *collector, const struct program *program);
/*
 * The same of collectors that share an object: only one of them may say where a program is
 * attached.
 */
void hook_check_sharing(const struct collector *collector, const struct collector *other);
/*
 * After programs_choose(): adds the hooks for which this machine has neither a place nor one for an
 * alternative; of several that lack the same, the first. With a set of capabilities that is not all
 * (UINT64_MAX), adds only the first hook, which whoever has no more cannot attach.
 */
void hooks_look(const struct collector *collector, uint64_t rights, struct diag *diag);
/* The memory of what it has looked at. */
void hooks_forget(void);

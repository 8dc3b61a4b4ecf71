/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether programs can be attached, as far as that can be known without a right. */

struct collector;
struct diag;
struct program;

/* While it is opened: complains of what no machine could attach. */
void hook_check(const struct collector *collector, const struct program *program);
/*
 * After programs_choose(): adds each hook of a collector for which this machine has neither a place nor one for an
 * alternative.
 */
void hooks_look(const struct collector *collector, struct diag *diag);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The keys of a [metric] section that say how its map is read: cpu, cpus, expire, zero, since,
 * record. Some are about the whole map, so all of its sections must agree on them.
 */

#include "collector/binding/binding.h"

/* What .first says of the whole map. Before it is checked, once its labels are known. */
void options_set(struct binding *binding, uint32_t max_entries);
/* Every mismatch goes to .diag. field: of the value that the section exports. */
void options_check(const struct binding *binding, const struct descriptor_metric *described,
		   const struct field *field);
/*
 * Makes the shapes of .first->record, which is the key, and of its count; none after a complaint.
 * -ENOMEM.
 */
int option_bind_record(struct binding *binding);
/* The member that is the key's only attribute, if it is an enum; else NULL. */
const struct field *option_find_enum(const struct binding *binding);

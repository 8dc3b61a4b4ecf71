/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The labels of a key: what the type of each member says of it, and what a [label] section says
 * instead.
 */

#include "collector/label/label.h"

struct binding;

/* .labels of .key, before anything is shown of it. Mistakes go to .diag. -ENOMEM. */
int key_labels_new(struct binding *binding);
void key_labels_free(struct binding *binding);
/* Does the member become, or may it become, an attribute of that name? */
bool key_label_makes(const struct key_label *label, const char *attribute);
/* Reports members that become attributes of one name. */
void key_labels_check(const struct binding *binding);

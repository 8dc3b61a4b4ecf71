/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The labels of a key: what the type of each member says of it, and what a [label] section says instead. */

#include "collector/label/label.h"
#include "util/diag.h"

struct descriptor;

/* A map, and where it is described; all of it is borrowed. */
struct key_origin {
	const char *collector, *map;
	unsigned int line; /* of the first section that exports it */
	const struct descriptor *descriptor;
	const struct label_context *context;
	struct diag *diag;
	const char *path; /* of the descriptor */
	const struct field *bucket; /* a member that becomes no attribute; or NULL */
};

/* A label for each member of the key, to be freed. Mistakes go to .diag. -ENOMEM. */
int key_labels_new(const struct key_origin *origin, const struct shape *key, struct key_label **ret_labels);
struct key_label *key_labels_free(struct key_label *labels, size_t n);
/* Does the member become, or may it become, an attribute of that name? */
bool key_label_makes(const struct key_label *label, const char *attribute);
/* Reports members that become attributes of one name. */
void key_labels_check(const struct key_origin *origin, const struct key_label *labels, size_t n);

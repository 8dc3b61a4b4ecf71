/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which series has which name, so that no two have one. A name is known by its hash, and a series by its
 * identity (name_identity()), not by its address: one that ended and came back has its name again.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct claims {
	struct claim {
		uint64_t name; /* 0: free */
		uint64_t identity;
	} *slots;
	size_t n_slots, n;
};

uint64_t claims_hash(const void *name, size_t size); /* never 0 */
/* Does it belong to somebody else than identity? */
bool claims_is_taken(const struct claims *claims, uint64_t name, uint64_t identity);
/* -ENOMEM. A name that somebody else has stays his. */
int claims_add(struct claims *claims, uint64_t name, uint64_t identity);
void claims_reset(struct claims *claims); /* forgets all */
void claims_done(struct claims *claims);

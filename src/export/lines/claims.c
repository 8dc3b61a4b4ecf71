/* SPDX-License-Identifier: Apache-2.0 */
#include "export/lines/claims.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/hash.h"

uint64_t claims_hash(const void *name, size_t size)
{
	uint64_t hash = hash_bytes(name, size);

	return hash ? hash : 1;
}

/* Where name is, or would be; there is always a free slot. */
static struct claim *find(const struct claims *claims, uint64_t name)
{
	size_t at = name & (claims->n_slots - 1);

	while (claims->slots[at].name && claims->slots[at].name != name)
		at = (at + 1) & (claims->n_slots - 1);
	return &claims->slots[at];
}

bool claims_is_taken(const struct claims *claims, uint64_t name, uint64_t identity)
{
	const struct claim *claim;

	if (!claims->n_slots)
		return false;
	claim = find(claims, name);
	return claim->name && claim->identity != identity;
}

static int grow(struct claims *claims)
{
	struct claims larger = { .n_slots = claims->n_slots ? 2 * claims->n_slots : 64, .n = claims->n };

	larger.slots = calloc(larger.n_slots, sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < claims->n_slots; i++)
		if (claims->slots[i].name)
			*find(&larger, claims->slots[i].name) = claims->slots[i];
	free(claims->slots);
	*claims = larger;
	return 0;
}

int claims_add(struct claims *claims, uint64_t name, uint64_t identity)
{
	struct claim *claim;

	if (2 * (claims->n + 1) > claims->n_slots && grow(claims) < 0)
		return -ENOMEM;
	claim = find(claims, name);
	if (!claim->name) {
		*claim = (struct claim){ .name = name, .identity = identity };
		claims->n++;
	}
	return 0;
}

void claims_reset(struct claims *claims)
{
	if (claims->slots)
		memset(claims->slots, 0, claims->n_slots * sizeof(*claims->slots));
	claims->n = 0;
}

void claims_done(struct claims *claims)
{
	free(claims->slots);
	*claims = (struct claims){ 0 };
}

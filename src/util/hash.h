/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * A quick hash of some bytes, for tables in memory. The seed varies by process, against chosen
 * collisions.
 */
extern uint64_t hash_seed;

static inline uint64_t hash_bytes(const void *data, size_t size)
{
	const uint8_t *byte = data;
	uint64_t hash = hash_seed ^ (size * 0x9e3779b97f4a7c15ull), word;

	for (; size >= 8; size -= 8, byte += 8) {
		memcpy(&word, byte, 8);
		hash = (hash ^ word) * 0x9fb21c651e98df25ull;
		hash ^= hash >> 32;
	}
	if (size) {
		word = 0;
		memcpy(&word, byte, size);
		hash = (hash ^ word) * 0x9fb21c651e98df25ull;
		hash ^= hash >> 32;
	}
	hash *= 0x9e3779b97f4a7c15ull;
	return hash ^ (hash >> 29);
}

/*
 * FNV-1a, which has no seed: for what goes into a name, and has to be the same after a restart.
 * Continues hash, at first HASH_STABLE_START.
 */
#define HASH_STABLE_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t hash_stable(uint64_t hash, const void *data, size_t size)
{
	for (const uint8_t *byte = data; size--; byte++)
		hash = (hash ^ *byte) * UINT64_C(0x100000001b3);
	return hash;
}

/* Of the words of text, but not of those with digits: they may differ each time. */
uint64_t hash_words(uint64_t hash, const char *text);
/* Its end counts, so that two texts are not taken for one. NULL is "". */
static inline uint64_t hash_text(uint64_t hash, const char *text)
{
	text = text ?: "";
	return hash_stable(hash, text, strlen(text) + 1);
}

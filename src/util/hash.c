/* SPDX-License-Identifier: Apache-2.0 */
#include "util/hash.h"

#include <string.h>
#include <sys/random.h>

uint64_t hash_seed;

__attribute__((constructor)) static void seed(void)
{
	if (getrandom(&hash_seed, sizeof(hash_seed), GRND_NONBLOCK) != sizeof(hash_seed))
		hash_seed = (uint64_t)(uintptr_t)&hash_seed;
}

uint64_t hash_words(uint64_t hash, const char *text)
{
	for (size_t size; *text; text += size + (text[size] == ' ')) {
		size = strcspn(text, " ");
		if (strcspn(text, "0123456789") >= size)
			hash = hash_stable(hash, text, size);
	}
	return hash;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "util/array.h"

#include <stdlib.h>
#include <string.h>

void *array_add(void *list, size_t *n, size_t item_bytes)
{
	char *items;

	memcpy(&items, list, sizeof(items));
	/* There is room for a power of two of them, so the next larger one is needed when it is full. */
	if (!(*n & (*n - 1))) {
		items = reallocarray(items, *n ? *n * 2 : 1, item_bytes);
		if (!items)
			return NULL;
		memcpy(list, &items, sizeof(items));
	}
	return memset(items + (*n)++ * item_bytes, 0, item_bytes);
}

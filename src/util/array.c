/* SPDX-License-Identifier: Apache-2.0 */
#include "util/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void *array_add(void *list, size_t *n, size_t item_bytes)
{
	char *items;

	memcpy(&items, list, sizeof(items));
	/*
	 * There is room for a power of two of them, so the next larger one is needed when it is
	 * full.
	 */
	if (!(*n & (*n - 1))) {
		items = reallocarray(items, *n ? *n * 2 : 1, item_bytes);
		if (!items)
			return NULL;
		memcpy(list, &items, sizeof(items));
	}
	return memset(items + (*n)++ * item_bytes, 0, item_bytes);
}

int array_append_bytes(void *list, size_t *n, const void *item, size_t item_bytes)
{
	void *place = array_add(list, n, item_bytes);

	if (place)
		memcpy(place, item, item_bytes);
	return place ? 0 : -ENOMEM;
}

void array_free(void *list, size_t *n)
{
	void *items;

	memcpy(&items, list, sizeof(items));
	free(items);
	memset(list, 0, sizeof(items));
	*n = 0;
}

static size_t room_for(size_t n)
{
	size_t room = 1;

	while (room < n)
		room *= 2;
	return room;
}

void array_shrink(void *list, size_t n_before, size_t n, size_t item_bytes)
{
	char *items;

	if (room_for(n) == room_for(n_before))
		return;
	memcpy(&items, list, sizeof(items));
	items = reallocarray(items, room_for(n), item_bytes);
	if (items)
		memcpy(list, &items, sizeof(items));
}

const char *array_name(const void *items, size_t i, size_t item_bytes)
{
	const char *name;

	memcpy(&name, (const char *)items + i * item_bytes, sizeof(name));
	return name;
}

const void *array_find_name(const void *items, size_t n, size_t item_bytes, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(array_name(items, i, item_bytes), name))
			return (const char *)items + i * item_bytes;
	return NULL;
}

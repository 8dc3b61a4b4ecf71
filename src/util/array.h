/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/*
 * Makes room for one more item at the end of a list on the heap and counts it. list points to the
 * pointer to the list, which is NULL while *n is 0. Returns the new item, zeroed, or NULL without
 * memory, and then nothing has changed. A list grows only through this.
 *
 *     struct thing *thing = array_add(&things, &n_things, sizeof(*thing));
 */
void *array_add(void *list, size_t *n, size_t item_bytes);
/* Adds a copy of *item, like array_add(); the types are compared. 0, -ENOMEM. */
#define array_append(list, n, item) \
	array_append_bytes(list, n, 1 ? (item) : *(list), sizeof(*(item)))
int array_append_bytes(void *list, size_t *n, const void *item, size_t item_bytes);
/* Frees the list, which is empty then. */
void array_free(void *list, size_t *n);

/*
 * After *n has become less than n_before: gives back the room that array_add() would not have made
 * for n.
 */
void array_shrink(void *list, size_t n_before, size_t n, size_t item_bytes);

/*
 * The first of n items that has this name, or NULL. items: an array of names, none of them NULL, or
 * of structures that begin with one.
 */
#define array_find(items, n, name) \
	((__typeof__(&(items)[0]))array_find_name(items, n, sizeof(*(items)), name))
const void *array_find_name(const void *items, size_t n, size_t item_bytes, const char *name);
/* The name of the i-th of such items. */
const char *array_name(const void *items, size_t i, size_t item_bytes);

/*
 * item: a pointer to each of n items in turn. items may be NULL if n is 0: nothing is ever added to
 * NULL.
 */
#define array_for_each(item, items, n) \
	for (__typeof__((items) + 0) item = (items); (n) && item < (items) + (n); item++)

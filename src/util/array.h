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

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "collector/parts.h"

/*
 * Gives an opened object's maps their sizes, for object->units. Returns the bytes that the tables
 * will take.
 */
uint64_t sizes_set(const struct object *object, struct bpf_object *bpf);

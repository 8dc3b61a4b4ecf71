/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Is an object's BTF whole? libbpf before 1.3 does not ask: it reads address 0 for a type that is not there,
 * and later ones too follow a typedef of itself for ever. So a damaged file is refused before libbpf opens it.
 */

#include <stdbool.h>

struct btf;

/* Every type, member and parameter refers to names and types that are there, and no typedef to itself. */
bool btf_is_whole(const struct btf *btf);

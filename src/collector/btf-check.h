/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Is an object's BTF whole? libbpf before 1.3 does not check: it reads address 0 for a type that
 * does not exist. Later versions too follow a typedef of itself forever. So a damaged file is
 * refused before libbpf opens it.
 */

#include <stdbool.h>

struct btf;

/*
 * Every type, member and parameter refers to types that exist and to names that exist and can be
 * printed, and no typedef refers to itself.
 */
bool btf_is_whole(const struct btf *btf);

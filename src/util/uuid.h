/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

#define UUID_TEXT_BYTES 37 /* with its NUL */

/*
 * The name-based UUID, version 5 (RFC 9562, 5.5: SHA-1), of name in a namespace, which is a UUID as text.
 * -EINVAL: the namespace is none.
 */
int uuid_from_name(const char *space, const char *name, char ret_text[UUID_TEXT_BYTES]);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "util/buf.h"

/* text as a JSON string, quotes included (RFC 8259, 7). text is UTF-8. */
void json_append_text(struct buf *out, const char *text);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The only door to zlib. */

#include "util/buf.h"

/* Appends data to out as one gzip member (RFC 1952), quickly rather than small. -ENOMEM. */
int gzip_append(struct buf *out, const void *data, size_t size);

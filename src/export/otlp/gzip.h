/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The only door to zlib. */

#include "util/buf.h"

/*
 * Appends data, of less than 2 GiB, to out as one gzip member (RFC 1952), quickly rather than
 * small. -ENOMEM.
 */
int gzip_append(struct buf *out, const void *data, size_t size);
/*
 * Appends what such a member holds, which may be 64 MiB, the most that a request may have; data
 * that does not begin as one is taken as it is. -EBADMSG: it breaks off or is damaged; -EFBIG;
 * -ENOMEM.
 */
int gzip_read(struct buf *out, const void *data, size_t size);

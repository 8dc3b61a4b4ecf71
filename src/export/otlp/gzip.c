/* SPDX-License-Identifier: Apache-2.0 */
#include "export/otlp/gzip.h"

#include <errno.h>
#include <limits.h>
#include <zlib.h>

/*
 * A window of 8 KiB and little other memory. Points repeat what was some hundred bytes before, so
 * requests are only 3 % larger, and compressing takes 80 KiB instead of the default's 256.
 */
#define GZIP_WINDOW (13 + 16) /* 16 stands for the gzip format */
#define GZIP_MEMORY 6

int gzip_append(struct buf *out, const void *data, size_t size)
{
	z_stream stream = { .next_in = (Bytef *)data };
	uint8_t *end = NULL;
	uLong bound;
	int err;

	if (size > UINT_MAX / 2)
		return -ENOMEM;
	err = deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY, Z_DEFAULT_STRATEGY);
	if (err != Z_OK)
		return -ENOMEM;
	bound = deflateBound(&stream, size);
	end = buf_reserve(out, bound);
	if (!end) {
		deflateEnd(&stream);
		return -ENOMEM;
	}
	stream.avail_in = (uInt)size;
	stream.next_out = end;
	stream.avail_out = (uInt)bound;
	err = deflate(&stream, Z_FINISH);
	if (err == Z_STREAM_END)
		out->size += stream.total_out;
	deflateEnd(&stream);
	return err == Z_STREAM_END ? 0 : -ENOMEM;
}

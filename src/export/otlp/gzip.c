/* SPDX-License-Identifier: Apache-2.0 */
#include "export/otlp/gzip.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

/*
 * Bodies have long repeats some KiB apart. The full window finds them: a body is a seventh smaller
 * than with 8 KiB, and takes a quarter less time. Little more memory would help: this needs 192
 * KiB, for a moment. Of one body of 57 KB, level 1 leaves 15.4 %, level 2 14.6 % in the same time,
 * and level 6 12.1 % in five times the time.
 */
#define GZIP_WINDOW (15 + 16) /* 16 stands for the gzip format */
#define GZIP_MEMORY 7
#define GZIP_LEVEL  2

int gzip_append(struct buf *out, const void *data, size_t size)
{
	z_stream stream = { .next_in = (Bytef *)data, .avail_in = (uInt)size };
	int err = deflateInit2(&stream, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY,
			       Z_DEFAULT_STRATEGY);

	if (err != Z_OK)
		return -ENOMEM;
	stream.avail_out = (uInt)deflateBound(&stream, size);
	stream.next_out = buf_reserve(out, stream.avail_out);
	err = stream.next_out ? deflate(&stream, Z_FINISH) : Z_MEM_ERROR;
	if (err == Z_STREAM_END)
		out->size += stream.total_out;
	deflateEnd(&stream);
	return err == Z_STREAM_END ? 0 : -ENOMEM;
}

#define GZIP_STEP	65536 /* of what is read */
#define GZIP_BYTES_MAX ((size_t)64 << 20)

int gzip_read(struct buf *out, const void *data, size_t size)
{
	static const uint8_t magic[] = { 0x1f, 0x8b };
	z_stream stream = { .next_in = (Bytef *)data, .avail_in = (uInt)size };
	int err;

	out->limit_bytes = out->size + GZIP_BYTES_MAX + GZIP_STEP;
	if (size < sizeof(magic) || memcmp(data, magic, sizeof(magic))) {
		buf_append(out, data, size);
		return buf_error(out);
	}
	if (inflateInit2(&stream, GZIP_WINDOW) != Z_OK)
		return -ENOMEM;
	do {
		stream.next_out = buf_reserve(out, GZIP_STEP);
		stream.avail_out = GZIP_STEP;
		err = stream.next_out ? inflate(&stream, Z_NO_FLUSH) : Z_MEM_ERROR;
		if (stream.next_out)
			out->size += GZIP_STEP - stream.avail_out;
	} while (err == Z_OK);
	inflateEnd(&stream);
	if (err == Z_STREAM_END && !stream.avail_in)
		return 0;
	return buf_error(out) ?: -EBADMSG;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdlib.h>
#include <zlib.h>

#include "alloc.h"
#include "export/otlp/gzip.h"

static void what_is_compressed_inflates_to_the_same(void **state)
{
	const size_t sizes[] = { 0, 1, 1000, 1 << 20 };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		_cleanup_(buf_done) struct buf out = BUF_INIT;
		_cleanup_(freep) uint8_t *data = malloc(sizes[i] + 1), *back = malloc(sizes[i] + 1);
		z_stream stream = { 0 };

		for (size_t j = 0; j < sizes[i]; j++)
			data[j] = (uint8_t)(j * j >> 5);
		buf_append_text(&out, "head");
		assert_ok(gzip_append(&out, data, sizes[i]));
		assert_memory_equal(out.data, "head\x1f\x8b", 6);
		stream.next_in = out.data + 4;
		stream.avail_in = (uInt)out.size - 4;
		stream.next_out = back;
		stream.avail_out = (uInt)sizes[i] + 1;
		assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
		assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
		assert_int_equal(stream.total_out, sizes[i]);
		assert_int_equal(stream.avail_in, 0);
		assert_memory_equal(back, data, sizes[i]);
		inflateEnd(&stream);
	}
}

static void without_memory_it_says_so(void **state)
{
	_cleanup_(buf_done) struct buf out = BUF_INIT;

	alloc_fail_at(0);
	assert_error(gzip_append(&out, "x", 1), ENOMEM);
	assert_true(alloc_end());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_compressed_inflates_to_the_same),
		cmocka_unit_test(without_memory_it_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

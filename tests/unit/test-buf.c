/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <stdlib.h>

#include "alloc.h"
#include "util/buf.h"
#include "util/diag.h"

static void what_is_appended_is_there(void **state)
{
	_cleanup_(buf_done) struct buf buf = BUF_INIT;

	assert_string_equal(buf_text(&buf), "");
	buf_append(&buf, "ab", 2);
	buf_append_text(&buf, "cd");
	buf_append_byte(&buf, 'e');
	buf_printf(&buf, "%d-%s", 42, "x");
	assert_string_equal(buf_text(&buf), "abcde42-x");
	assert_int_equal(buf.size, 9);
	assert_ok(buf_error(&buf));
}

static void it_grows_over_every_step(void **state)
{
	_cleanup_(buf_done) struct buf buf = BUF_INIT;

	for (unsigned int i = 0; i < 10000; i++)
		buf_append_byte(&buf, (uint8_t)i);
	assert_int_equal(buf.size, 10000);
	for (unsigned int i = 0; i < 10000; i++)
		assert_int_equal(buf.data[i], (uint8_t)i);
	buf_reset(&buf);
	for (int i = 0; i < 100; i++)
		buf_printf(&buf, "%0*d", i, 0);
	assert_int_equal(strlen(buf_text(&buf)), 1 + 99 * 100 / 2);
}

static void much_memory_goes_when_little_is_used(void **state)
{
	static const char text[1 << 20];
	struct buf buf = BUF_INIT;
	size_t most;

	buf_append(&buf, text, sizeof(text));
	most = buf.capacity;
	buf_reset(&buf);
	assert_int_equal(buf.capacity, most);
	buf_append_text(&buf, "little");
	buf_reset(&buf);
	assert_int_equal(buf.capacity, 0);
	buf_append_text(&buf, "more");
	assert_string_equal(buf_text(&buf), "more");
	buf_done(&buf);
}

static void errors_stick_until_reset(void **state)
{
	_cleanup_(buf_done) struct buf buf = { .limit_bytes = 8 };

	buf_append_text(&buf, "12345678");
	assert_ok(buf_error(&buf));
	assert_string_equal(buf_text(&buf), "12345678");
	buf_append_byte(&buf, '9');
	assert_error(buf_error(&buf), EFBIG);
	assert_string_equal(buf_text(&buf), "");
	assert_null(buf_reserve(&buf, 0));
	buf_reset(&buf);
	buf_printf(&buf, "%s", "123456789");
	assert_error(buf_error(&buf), EFBIG);
	buf_reset(&buf);
	buf_append_text(&buf, "ok");
	assert_string_equal(buf_text(&buf), "ok");
}

static void a_size_that_overflows_is_refused(void **state)
{
	_cleanup_(buf_done) struct buf buf = BUF_INIT;

	buf_append_byte(&buf, 1);
	assert_null(buf_reserve(&buf, SIZE_MAX));
	assert_error(buf_error(&buf), EFBIG);
	buf_reset(&buf);
	buf_append_byte(&buf, 1);
	assert_null(buf_reserve(&buf, SIZE_MAX - 1));
	assert_error(buf_error(&buf), EFBIG);
}

static void without_memory_it_says_so(void **state)
{
	_cleanup_(buf_done) struct buf buf = BUF_INIT;

	alloc_fail_at(0);
	buf_append_text(&buf, "x");
	assert_true(alloc_end());
	assert_error(buf_error(&buf), ENOMEM);
	assert_string_equal(buf_text(&buf), "");
}

static void mistakes_are_lines_with_places(void **state)
{
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;

	diag_add(&diag, "a.conf", 7, "bad %s", "key");
	diag_add(&diag, "b.conf", 0, "absent");
	assert_int_equal(diag.n_errors, 2);
	assert_string_equal(buf_text(&diag.text), "a.conf:7: bad key\nb.conf: absent\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_appended_is_there),
		cmocka_unit_test(it_grows_over_every_step),
		cmocka_unit_test(much_memory_goes_when_little_is_used),
		cmocka_unit_test(errors_stick_until_reset),
		cmocka_unit_test(a_size_that_overflows_is_refused),
		cmocka_unit_test(without_memory_it_says_so),
		cmocka_unit_test(mistakes_are_lines_with_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

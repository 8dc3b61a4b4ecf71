/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <stdlib.h>

#include "alloc.h"
#include "export/lines/pack.h"

struct pieces {
	char text[16][64];
	size_t n_points[16], n;
	int error; /* what put() gives back */
};

static int put(void *user, uint8_t *data, size_t size, size_t n_points)
{
	struct pieces *pieces = user;

	assert_true(pieces->n < 16 && size < 64);
	memcpy(pieces->text[pieces->n], data, size);
	pieces->text[pieces->n][size] = '\0';
	pieces->n_points[pieces->n++] = n_points;
	free(data);
	return pieces->error;
}

/* "NAME:1|c", or "NAME 1 9". */
static int add(struct pack *pack, const char *text)
{
	const struct line_name name = { .text = text, .path_size = (uint16_t)strlen(text) };
	const struct line line = { .name = &name, .suffix = "", .ending = "" };

	pack->failure = 0;
	pack_line(pack, &line, "1", "|c");
	return pack->failure;
}

static int add_point(struct pack *pack, const char *text)
{
	int err = add(pack, text);

	if (!err)
		pack->n_points++;
	return err;
}

static void datagrams_hold_whole_lines_up_to_their_limit_and_no_newline_at_the_end(void **state)
{
	struct pieces pieces = { 0 };
	struct pack pack = { .dialect = &dialect_table[DIALECT_PLAIN], .limit_bytes = 11, .put = put, .user = &pieces };

	assert_ok(add_point(&pack, "a"));
	assert_ok(add_point(&pack, "b")); /* 11 with the newline between them */
	assert_ok(add_point(&pack, "c"));
	assert_ok(add_point(&pack, "1234567"));
	assert_ok(add_point(&pack, "d"));
	assert_ok(pack_flush(&pack));
	assert_ok(pack_flush(&pack));
	assert_int_equal(pieces.n, 4);
	assert_string_equal(pieces.text[0], "a:1|c\nb:1|c");
	assert_string_equal(pieces.text[1], "c:1|c");
	assert_string_equal(pieces.text[2], "1234567:1|c");
	assert_string_equal(pieces.text[3], "d:1|c");
	assert_int_equal(pieces.n_points[0], 2);
	assert_int_equal(pieces.n_points[1], 1);
	assert_int_equal(pieces.n_points[2], 1);
	assert_int_equal(pieces.n_points[3], 1);
	buf_done(&pack.buf);
}

static void every_line_of_a_stream_ends(void **state)
{
	struct pieces pieces = { 0 };
	struct pack pack = { .dialect = &dialect_table[DIALECT_DOTTED], .limit_bytes = 12, .put = put, .user = &pieces,
			     .time = " 9\n" };

	assert_ok(add_point(&pack, "a"));
	assert_ok(add_point(&pack, "b"));
	assert_ok(add_point(&pack, "c"));
	assert_ok(pack_flush(&pack));
	assert_int_equal(pieces.n, 2);
	assert_string_equal(pieces.text[0], "a 1 9\nb 1 9\n");
	assert_string_equal(pieces.text[1], "c 1 9\n");
	buf_done(&pack.buf);
}

static void a_point_counts_where_its_last_line_is(void **state)
{
	struct pieces pieces = { 0 };
	struct pack pack = { .dialect = &dialect_table[DIALECT_PLAIN], .limit_bytes = 11, .put = put, .user = &pieces };

	assert_ok(add(&pack, "a"));
	assert_ok(add(&pack, "b"));
	assert_ok(add_point(&pack, "c"));
	assert_ok(pack_flush(&pack));
	assert_int_equal(pieces.n, 2);
	assert_string_equal(pieces.text[0], "a:1|c\nb:1|c");
	assert_int_equal(pieces.n_points[0], 0);
	assert_string_equal(pieces.text[1], "c:1|c");
	assert_int_equal(pieces.n_points[1], 1);
	buf_done(&pack.buf);
}

static void a_line_over_the_limit_is_left_out_and_nothing_else(void **state)
{
	struct pieces pieces = { 0 };
	struct pack pack = { .dialect = &dialect_table[DIALECT_PLAIN], .limit_bytes = 11, .put = put, .user = &pieces };

	assert_ok(add_point(&pack, "a"));
	assert_error(add_point(&pack, "12345678"), EMSGSIZE);
	assert_ok(add_point(&pack, "b"));
	assert_ok(pack_flush(&pack));
	assert_int_equal(pieces.n, 1);
	assert_string_equal(pieces.text[0], "a:1|c\nb:1|c");
	assert_int_equal(pieces.n_points[0], 2);
	buf_done(&pack.buf);
}

static void an_error_of_the_taker_is_told_once_at_the_flush(void **state)
{
	struct pieces pieces = { .error = -EIO };
	struct pack pack = { .dialect = &dialect_table[DIALECT_PLAIN], .limit_bytes = 8, .put = put, .user = &pieces };

	assert_ok(add_point(&pack, "1234"));
	assert_ok(add_point(&pack, "abcd"));
	assert_error(pack_flush(&pack), EIO);
	pieces.error = 0;
	assert_ok(pack_flush(&pack));
	assert_int_equal(pieces.n, 2);
	buf_done(&pack.buf);
}

static int add_three(struct pack *pack, size_t *n_added)
{
	static const char *const names[] = { "1234", "abcd", "efgh" };
	int err = 0;

	*n_added = 0;
	for (size_t i = 0; i < 3; i++) {
		int r = add_point(pack, names[i]);

		*n_added += !r;
		if (r)
			err = r;
	}
	return err;
}

static void without_memory_a_line_is_lost_and_those_before_it_are_not(void **state)
{
	struct pieces pieces = { 0 };
	struct pack pack = { .dialect = &dialect_table[DIALECT_PLAIN], .limit_bytes = 8, .put = put, .user = &pieces };
	size_t n_added, n_points;

	assert_survives_failing_allocations(add_three(&pack, &n_added), {
		assert_int_equal(pack_flush(&pack), n_added < 3 ? -ENOMEM : 0);
		n_points = 0;
		for (size_t i = 0; i < pieces.n; i++)
			n_points += pieces.n_points[i];
		assert_int_equal(n_points, n_added);
		pieces.n = 0;
		buf_done(&pack.buf);
	});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(datagrams_hold_whole_lines_up_to_their_limit_and_no_newline_at_the_end),
		cmocka_unit_test(every_line_of_a_stream_ends),
		cmocka_unit_test(a_point_counts_where_its_last_line_is),
		cmocka_unit_test(a_line_over_the_limit_is_left_out_and_nothing_else),
		cmocka_unit_test(an_error_of_the_taker_is_told_once_at_the_flush),
		cmocka_unit_test(without_memory_a_line_is_lost_and_those_before_it_are_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

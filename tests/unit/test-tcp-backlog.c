/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#define CHUNK 65536
#define LINE 64

/* A chunk of lines that say which one of it they are. */
static uint8_t *chunk(unsigned int n)
{
	char *data = malloc(CHUNK + 1);

	assert_non_null(data);
	for (unsigned int i = 0; i < CHUNK / LINE; i++)
		snprintf(data + i * LINE, LINE + 1, "chunk.%06u.line.%06u %036u 1\n", n, i, i);
	return (uint8_t *)data;
}

static void put_chunks(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		put_data(chunk(i), CHUNK, CHUNK / LINE);
}

static unsigned int chunk_number(const struct buf *buf, size_t offset)
{
	assert_true(offset + LINE <= buf->size);
	assert_memory_equal(buf->data + offset, "chunk.", 6);
	return (unsigned int)strtoul((const char *)buf->data + offset + 6, NULL, 10);
}

/* Are the chunks first, first + 1 … in text from offset on, whole and alone? */
static void assert_chunks(const struct buf *text, size_t offset, unsigned int first, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++, offset += CHUNK) {
		_cleanup_(freep) uint8_t *expected = chunk(first + i);

		assert_true(offset + CHUNK <= text->size);
		assert_memory_equal(text->data + offset, expected, CHUNK);
	}
	assert_int_equal(text->size, offset);
}

static void a_backlog_goes_over_several_connections_each_line_once(void **state)
{
	size_t most = 0;

	receiver_init(&receiver, "127.0.0.1", 0);
	tcp_new_to(&receiver);
	put_chunks(56);
	flush(tcp, false, 0);
	/* The last one is confirmed at once too: it is larger than what may stay in doubt. */
	while (!exporter_is_idle(&world.exporter)) {
		receiver_read(&receiver);
		most = receiver.last.size > most ? receiver.last.size : most;
		turn();
	}
	assert_int_equal(receiver.n_accepted, 4);
	assert_int_equal(receiver.n_ended, 4);
	assert_true(most <= 1 << 20);
	assert_chunks(&receiver.text, 0, 0, 56);
	assert_int_equal(stats->points[POINTS_DELIVERED], 56 * CHUNK / LINE);
	assert_int_equal(stats->requests, 56);
	assert_int_equal(stats->retries, 0);
	assert_int_equal(stats->bytes_sent, 56 * CHUNK);
}

static void an_interrupted_backlog_repeats_one_connection(void **state)
{
	size_t n_cut;

	receiver_init(&receiver, "127.0.0.1", 0);
	tcp_new_to(&receiver);
	put_chunks(40);
	flush(tcp, false, 0);
	RUN_UNTIL((receiver_read(&receiver), receiver.n_ended == 1));
	/* Of the second one a part is read, then it breaks. */
	RUN_UNTIL(receiver_accept(&receiver));
	run_for(20);
	{
		static char room[100000];
		ssize_t n = recv(receiver.fd, room, sizeof(room), 0);

		assert_true(n > 0);
		buf_append(&receiver.text, room, (size_t)n);
	}
	receiver_hang_up(&receiver);
	n_cut = receiver.text.size;
	buf_reset(&receiver.text);
	RUN_UNTIL((receiver_read(&receiver), exporter_is_idle(&world.exporter)));
	assert_true(n_cut > 16 * CHUNK);
	assert_chunks(&receiver.text, 0, 16, 24);
	assert_int_equal(receiver.n_accepted, 4);
	assert_int_equal(stats->points[POINTS_DELIVERED], 40 * CHUNK / LINE);
	assert_int_equal(stats->requests, 40 + stats->retries);
	assert_true(stats->retries <= 16);
	assert_false(stats->is_failing);
}

static void a_receiver_that_does_not_read_is_waited_for_within_the_queue(void **state)
{
	struct sender_options options;
	unsigned int first;
	size_t n_chunks;

	receiver_init(&receiver, "127.0.0.1", 0);
	options = tcp_options_for("127.0.0.1", port_of(receiver.listener));
	world.budget.limit_bytes = 80 * CHUNK;
	options.timeout_ns = 500 * MS;
	tcp_new(&options);
	for (unsigned int i = 0; i < 200; i++) {
		put_data(chunk(i), CHUNK, CHUNK / LINE);
		flush(tcp, false, 0);
		turn();
	}
	assert_int_equal(exporter_waiting(&world.exporter).n_bytes, 80 * CHUNK);
	assert_int_equal(exporter_waiting(&world.exporter).n_points, 80 * CHUNK / LINE);
	assert_int_equal(stats->points[POINTS_QUEUE_FULL], 120 * CHUNK / LINE);
	assert_int_equal(stats->points[POINTS_DELIVERED], 0);
	RUN_UNTIL(stats->is_failing); /* it takes no more, or does not close */
	assert_int_equal(exporter_waiting(&world.exporter).n_points, 80 * CHUNK / LINE);

	/* It begins to read: the connections of before first, then what is kept. */
	RUN_UNTIL((receiver_read(&receiver), exporter_is_idle(&world.exporter)));
	assert_int_equal(stats->points[POINTS_DELIVERED], 80 * CHUNK / LINE);
	assert_int_equal(stats->points[POINTS_QUEUE_FULL], 120 * CHUNK / LINE);
	n_chunks = receiver.last.size / CHUNK;
	assert_int_equal(receiver.last.size, n_chunks * CHUNK);
	first = chunk_number(&receiver.last, 0);
	assert_int_equal(first + n_chunks, 200);
	assert_chunks(&receiver.last, 0, first, (unsigned int)n_chunks);
	assert_false(stats->is_failing);
}

static void of_a_line_that_is_sent_in_part_no_end_is_made(void **state)
{
	uint8_t *data = malloc(8 << 20);
	static char room[65536];
	ssize_t n;

	assert_non_null(data);
	memset(data, 'x', 8 << 20);
	data[(8 << 20) - 1] = '\n';
	receiver_init(&receiver, "127.0.0.1", 0);
	tcp_new_to(&receiver);
	put_data(data, 8 << 20, 1);
	flush(tcp, false, 0);
	RUN_UNTIL(receiver_accept(&receiver) && stats->bytes_sent > 0);
	run_for(20);
	assert_int_equal(stats->requests, 0);
	tcp = socket_free(tcp);
	while ((n = recv(receiver.fd, room, sizeof(room), 0)) > 0)
		;
	assert_int_equal(n, -1);
	assert_int_equal(errno, ECONNRESET);
}

/* It ends its side while our bytes are on their way. What came before that may have been read, and comes again. */
static void an_end_amid_what_is_sent_confirms_nothing(void **state)
{
	size_t n_first;

	world.budget.limit_bytes = 64 << 20;
	receiver_init(&receiver, "127.0.0.1", 0);
	tcp_new_to(&receiver);
	put_data(chunk(0), CHUNK, CHUNK / LINE);
	{
		/* One that fits in no buffer: it is sent in part. */
		uint8_t *data = malloc(200 * CHUNK);

		assert_non_null(data);
		for (unsigned int i = 0; i < 200; i++) {
			_cleanup_(freep) uint8_t *part = chunk(1 + i);

			memcpy(data + (size_t)i * CHUNK, part, CHUNK);
		}
		put_data(data, 200 * CHUNK, 200 * CHUNK / LINE);
	}
	flush(tcp, false, 0);
	RUN_UNTIL(receiver_accept(&receiver) && stats->bytes_sent > CHUNK);
	run_for(20);
	assert_int_equal(stats->requests, 1);
	assert_ok(shutdown(receiver.fd, SHUT_WR));
	RUN_UNTIL(stats->is_failing);
	assert_non_null(strstr(stats->problem, "the receiver ended the connection by itself"));
	assert_int_equal(stats->points[POINTS_DELIVERED], 0);
	RUN_UNTIL((receiver_read(&receiver), exporter_is_idle(&world.exporter)));
	assert_chunks(&receiver.last, 0, 0, 201);
	n_first = receiver.text.size - receiver.last.size;
	assert_true(n_first < 201 * CHUNK);
	assert_int_equal(receiver.n_accepted, 2);
	assert_int_equal(receiver.n_ended, 1); /* the first was reset, for it ended in a part */
	assert_int_equal(stats->points[POINTS_DELIVERED], 201 * CHUNK / LINE);
	assert_int_equal(stats->requests, 3);
	assert_int_equal(stats->retries, 1);
	assert_false(stats->is_failing);
}

/* As programs on Twisted close, Carbon among them: an end of the stream first, then what says that bytes were left. */
static void a_reset_right_behind_an_end_says_that_something_was_not_read(void **state)
{
	receiver_init(&receiver, "127.0.0.1", 0);
	tcp_new_to(&receiver);
	put_data(chunk(0), CHUNK, CHUNK / LINE);
	flush(tcp, false, 0);
	RUN_UNTIL(receiver_accept(&receiver) && stats->requests == 1);
	run_for(20);
	assert_ok(shutdown(receiver.fd, SHUT_RDWR));
	turn();
	receiver_hang_up(&receiver);
	flush(tcp, true, 0);
	RUN_UNTIL((receiver_read(&receiver), exporter_is_idle(&world.exporter)));
	assert_chunks(&receiver.text, 0, 0, 1);
	assert_int_equal(stats->points[POINTS_DELIVERED], CHUNK / LINE);
	assert_int_equal(stats->retries, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(a_backlog_goes_over_several_connections_each_line_once),
		RIG_TEST(an_interrupted_backlog_repeats_one_connection),
		RIG_TEST(a_receiver_that_does_not_read_is_waited_for_within_the_queue),
		RIG_TEST(an_end_amid_what_is_sent_confirms_nothing),
		RIG_TEST(of_a_line_that_is_sent_in_part_no_end_is_made),
		RIG_TEST(a_reset_right_behind_an_end_says_that_something_was_not_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include "alloc.h"

static void the_end_of_a_connection_confirms_what_was_on_it(void **state)
{
	struct sender_options options;

	receiver_init(&receiver, "127.0.0.1", 0);
	options = tcp_options_for("127.0.0.1", port_of(receiver.listener));
	options.confirm_every_ns = 500 * MS;
	tcp_new(&options);
	put("a 1 1\n", 1);
	put("b 2 1\nc 3 1\n", 2);
	assert_false(exporter_is_idle(&world.exporter));
	flush(tcp, false, 0);
	RUN_UNTIL(receiver_read(&receiver) == 18);
	assert_int_equal(stats->points[POINTS_DELIVERED], 0);
	assert_int_equal(exporter_waiting(&world.exporter).n_points, 3);
	assert_int_equal(exporter_waiting(&world.exporter).n_bytes, 18);
	assert_int_equal(stats->requests, 2);
	assert_int_equal(stats->bytes_sent, 18);
	assert_int_equal(receiver.n_ended, 0);

	RUN_UNTIL((receiver_read(&receiver), exporter_is_idle(&world.exporter)));
	assert_int_equal(stats->points[POINTS_DELIVERED], 3);
	assert_int_equal(exporter_waiting(&world.exporter).n_points, 0);
	assert_int_equal(exporter_waiting(&world.exporter).n_bytes, 0);
	assert_int_equal(receiver.n_ended, 1);

	/* Nothing more is asked of a receiver to whom there is nothing to say. */
	run_for(600);
	receiver_read(&receiver);
	assert_int_equal(receiver.n_accepted, 1);
	put("d 4 2\n", 4);
	flush(tcp, false, 0);
	RUN_UNTIL((receiver_read(&receiver), exporter_is_idle(&world.exporter)));
	assert_int_equal(receiver.n_accepted, 2);
	assert_true(is_text(&receiver.text, "a 1 1\nb 2 1\nc 3 1\nd 4 2\n"));
	assert_int_equal(stats->points[POINTS_DELIVERED], 7);
	assert_int_equal(stats->requests, 3);
	assert_int_equal(stats->retries, 0);
	assert_false(stats->is_failing);
}

static void a_receiver_that_is_not_there_is_waited_for(void **state)
{
	unsigned int port = free_port(SOCK_STREAM, "127.0.0.1");
	const struct sender_options options = tcp_options_for("127.0.0.1", port);

	tcp_new(&options);
	put("a 1 1\n", 1);
	flush(tcp, false, 0);
	RUN_UNTIL(stats->is_failing);
	run_for(100);
	put("b 2 2\n", 1);
	flush(tcp, false, 0);
	assert_int_equal(exporter_waiting(&world.exporter).n_points, 2);
	assert_int_equal(stats->requests, 0);

	receiver_init(&receiver, "127.0.0.1", port);
	RUN_UNTIL(receiver_read(&receiver) == 12);
	assert_true(stats->is_failing); /* until it is known to have arrived, which is asked for at once */
	RUN_UNTIL((receiver_read(&receiver), exporter_is_idle(&world.exporter)));
	assert_true(is_text(&receiver.text, "a 1 1\nb 2 2\n"));
	assert_int_equal(stats->points[POINTS_DELIVERED], 2);
	assert_int_equal(stats->retries, 0);
	assert_int_equal(stats->points[POINTS_QUEUE_FULL], 0);
	assert_false(stats->is_failing);
}

static void at_the_end_all_is_confirmed_at_once(void **state)
{
	receiver_init(&receiver, "127.0.0.1", 0);
	tcp_new_to(&receiver);
	put("a 1 1\n", 1);
	flush(tcp, false, 0);
	RUN_UNTIL(receiver_read(&receiver) == 6);
	run_for(50);
	receiver_read(&receiver);
	assert_int_equal(receiver.n_ended, 0);
	put("b 2 2\n", 2);
	flush(tcp, true, 0);
	RUN_UNTIL((receiver_read(&receiver), exporter_is_idle(&world.exporter)));
	assert_int_equal(receiver.n_accepted, 1);
	assert_int_equal(receiver.n_ended, 1);
	assert_int_equal(stats->points[POINTS_DELIVERED], 3);
}

static void a_small_queue_is_confirmed_before_it_is_full(void **state)
{
	struct sender_options options;

	receiver_init(&receiver, "127.0.0.1", 0);
	options = tcp_options_for("127.0.0.1", port_of(receiver.listener));
	world.budget.limit_bytes = 32;
	tcp_new(&options);
	for (unsigned int i = 1; i <= 10; i++) {
		put("abcdef 1 1\n", 1);
		flush(tcp, false, 0);
		RUN_UNTIL((receiver_read(&receiver), exporter_is_idle(&world.exporter)));
		assert_int_equal(receiver.n_ended, i);
	}
	assert_int_equal(stats->points[POINTS_DELIVERED], 10);
	assert_int_equal(stats->points[POINTS_QUEUE_FULL], 0);
}

static void a_queue_that_is_nearly_full_goes_when_the_receiver_is_known_to_be_there(void **state)
{
	unsigned int port = free_port(SOCK_STREAM, "127.0.0.1");
	struct sender_options options = tcp_options_for("127.0.0.1", port);

	options.proof_ns = 1000 * MS;
	world.budget.limit_bytes = 48;
	tcp_new(&options);
	for (unsigned int i = 0; i < 7; i++)
		put("a 1 1\n", 1);
	flush(tcp, false, 0);
	RUN_UNTIL(stats->is_failing);
	receiver_init(&receiver, "127.0.0.1", port);
	RUN_UNTIL(receiver_read(&receiver));
	run_for(100);
	assert_int_equal(receiver_read(&receiver), 6);
	assert_int_equal(receiver.n_ended, 0);
	RUN_UNTIL((receiver_read(&receiver), exporter_is_idle(&world.exporter)));
	assert_int_equal(receiver.text.size, 42);
	assert_int_equal(stats->points[POINTS_DELIVERED], 7);
	assert_int_equal(stats->retries, 0);
}

static void what_a_connection_took_along_unread_comes_again(void **state)
{
	receiver_init(&receiver, "127.0.0.1", 0);
	tcp_new_to(&receiver);
	put("a 1 1\n", 1);
	put("b 2 1\n", 1);
	flush(tcp, false, 0);
	RUN_UNTIL(receiver_accept(&receiver) && stats->requests == 2);
	run_for(20);
	receiver_hang_up(&receiver); /* with all of it unread: a reset */
	RUN_UNTIL(receiver_read(&receiver) == 12);
	assert_int_equal(receiver.n_accepted, 2);
	assert_true(is_text(&receiver.text, "a 1 1\nb 2 1\n"));
	assert_int_equal(stats->points[POINTS_DELIVERED], 0);
	assert_int_equal(stats->requests, 4);
	assert_int_equal(stats->retries, 2);
	assert_int_equal(stats->bytes_sent, 24);
	assert_true(stats->is_failing);

	flush(tcp, true, 0);
	RUN_UNTIL((receiver_read(&receiver), exporter_is_idle(&world.exporter)));
	assert_int_equal(stats->points[POINTS_DELIVERED], 2);
	assert_int_equal(stats->requests, 4);
	assert_false(stats->is_failing);
}

/* As a proxy does whose receiver went away: all is acknowledged, and then there is an orderly end. */
static void an_end_that_comes_by_itself_confirms_nothing(void **state)
{
	receiver_init(&receiver, "127.0.0.1", 0);
	tcp_new_to(&receiver);
	put("a 1 1\n", 5);
	flush(tcp, false, 0);
	RUN_UNTIL(receiver_read(&receiver) == 6);
	receiver_hang_up(&receiver);
	RUN_UNTIL(stats->is_failing);
	assert_non_null(strstr(stats->problem, "the receiver ended the connection by itself; its lines are sent again"));
	assert_int_equal(stats->points[POINTS_DELIVERED], 0);
	assert_int_equal(exporter_waiting(&world.exporter).n_points, 5);

	RUN_UNTIL((receiver_read(&receiver), exporter_is_idle(&world.exporter)));
	assert_true(is_text(&receiver.text, "a 1 1\na 1 1\n"));
	assert_int_equal(receiver.n_accepted, 2);
	assert_int_equal(stats->points[POINTS_DELIVERED], 5);
	assert_int_equal(stats->retries, 1);
	assert_false(stats->is_failing);
}

static void an_end_of_a_connection_with_nothing_unconfirmed_is_no_failure(void **state)
{
	struct sender_options options;

	receiver_init(&receiver, "127.0.0.1", 0);
	options = tcp_options_for("127.0.0.1", port_of(receiver.listener));
	options.confirm_every_ns = 0;
	tcp_new(&options);
	put("a 1 1\n", 1);
	flush(tcp, false, 0);
	RUN_UNTIL((receiver_read(&receiver), exporter_is_idle(&world.exporter)));
	receiver_hang_up(&receiver);
	RUN_UNTIL(tcp->state == SOCKET_CLOSED);
	put("b 2 2\n", 1);
	flush(tcp, false, 0);
	RUN_UNTIL((receiver_read(&receiver), exporter_is_idle(&world.exporter)));
	assert_true(is_text(&receiver.text, "a 1 1\nb 2 2\n"));
	assert_int_equal(receiver.n_accepted, 2);
	assert_int_equal(stats->retries, 0);
	assert_false(stats->is_failing);
}

/* It lies unread in our socket when we are about to shut down our side. */
static void an_end_that_was_there_before_our_own_is_no_answer_to_it(void **state)
{
	receiver_init(&receiver, "127.0.0.1", 0);
	tcp_new_to(&receiver);
	put("a 1 1\n", 5);
	flush(tcp, false, 0);
	RUN_UNTIL(receiver_read(&receiver) == 6);
	run_for(20);
	receiver_hang_up(&receiver);
	flush(tcp, true, 0);
	assert_int_equal(stats->points[POINTS_DELIVERED], 0);
	assert_true(stats->is_failing);
	RUN_UNTIL((receiver_read(&receiver), exporter_is_idle(&world.exporter)));
	assert_true(is_text(&receiver.text, "a 1 1\na 1 1\n"));
	assert_int_equal(stats->points[POINTS_DELIVERED], 5);
}

/*
 * A proxy that is there while its receiver is not: it takes all, tries for a while to connect, and ends. An end that
 * is asked for too early would look like the answer to ours.
 */
static void a_proxy_without_a_receiver_confirms_nothing(void **state)
{
	struct sender_options options;

	receiver_init(&receiver, "127.0.0.1", 0);
	receiver.stays_open = true;
	options = tcp_options_for("127.0.0.1", port_of(receiver.listener));
	options.confirm_every_ns = 10 * MS;
	options.proof_ns = 2000 * MS;
	tcp_new(&options);
	put("a 1 1\n", 1);
	for (unsigned int i = 1; i <= 5; i++) {
		flush(tcp, false, 0);
		RUN_UNTIL(receiver_read(&receiver) == 6 * i);
		run_for(50);
		receiver_read(&receiver);
		receiver_hang_up(&receiver);
		RUN_UNTIL(tcp->state != SOCKET_OPEN);
		assert_int_equal(stats->points[POINTS_DELIVERED], 0);
		assert_true(stats->is_failing);
	}
	assert_int_equal(receiver.n_ended, 0);

	/* The receiver is there: it says so by an end, after the time of proof. */
	receiver.stays_open = false;
	RUN_UNTIL((receiver_read(&receiver), exporter_is_idle(&world.exporter)));
	assert_int_equal(receiver.n_accepted, 6);
	assert_int_equal(receiver.n_ended, 1);
	assert_int_equal(stats->points[POINTS_DELIVERED], 1);
	assert_int_equal(stats->retries, 5);
	assert_false(stats->is_failing);
}

static void a_receiver_that_takes_all_and_never_closes_gets_it_again(void **state)
{
	_cleanup_(buf_done) struct buf expected = BUF_INIT;
	struct sender_options options;

	receiver_init(&receiver, "127.0.0.1", 0);
	receiver.stays_open = true;
	options = tcp_options_for("127.0.0.1", port_of(receiver.listener));
	options.timeout_ns = 100 * MS;
	tcp_new(&options);
	put("a 1 1\n", 1);
	flush(tcp, true, 0);
	RUN_UNTIL((receiver_read(&receiver), stats->retries));
	assert_int_equal(receiver.n_ended > 0, true);
	assert_true(stats->is_failing);
	assert_int_equal(stats->points[POINTS_DELIVERED], 0);
	assert_int_equal(exporter_waiting(&world.exporter).n_points, 1);
	receiver_hang_up(&receiver);
	receiver.stays_open = false;
	RUN_UNTIL((receiver_read(&receiver), exporter_is_idle(&world.exporter)));
	/* A busy machine may not let the receiver close in time, so that there are more repeats. */
	for (uint64_t i = 0; i < stats->requests; i++)
		buf_append_text(&expected, "a 1 1\n");
	assert_true(is_text(&receiver.text, buf_text(&expected)));
	assert_int_equal(stats->points[POINTS_DELIVERED], 1);
	assert_int_equal(stats->retries, stats->requests - 1);
	assert_false(stats->is_failing);
}

/* confirm_every is an hour: whether the receiver reads is known much earlier. */
static void the_first_connection_is_confirmed_soon(void **state)
{
	struct sender_options options;

	receiver_init(&receiver, "127.0.0.1", 0);
	options = tcp_options_for("127.0.0.1", port_of(receiver.listener));
	options.timeout_ns = 2000 * MS;
	tcp_new(&options);
	put("a 1 1\n", 1);
	flush(tcp, false, 0);
	RUN_UNTIL((receiver_read(&receiver), stats->points[POINTS_DELIVERED] == 1));
	put("b 2 2\n", 1);
	flush(tcp, false, 0);
	RUN_UNTIL(receiver_read(&receiver) == 12);
	tcp->options.timeout_ns = 100 * MS; /* only now: a busy machine may take longer to connect */
	run_for(150);
	flush(tcp, false, 0);
	receiver_read(&receiver);
	assert_int_equal(receiver.n_ended, 1);
	assert_int_equal(stats->points[POINTS_DELIVERED], 1);
	assert_int_equal(receiver.n_accepted, 2);
	assert_false(stats->is_failing);
}

static void without_confirming_the_acknowledgement_counts_and_the_connection_stays(void **state)
{
	struct sender_options options;

	receiver_init(&receiver, "127.0.0.1", 0);
	receiver.stays_open = true;
	options = tcp_options_for("127.0.0.1", port_of(receiver.listener));
	options.confirm_every_ns = 0;
	tcp_new(&options);
	for (size_t i = 1; i <= 3; i++) {
		put("a 1 1\n", 1);
		flush(tcp, false, 0);
		RUN_UNTIL(exporter_is_idle(&world.exporter));
		assert_int_equal(stats->points[POINTS_DELIVERED], i);
	}
	tcp->options.timeout_ns = 100 * MS; /* only now: a busy machine may take longer to connect */
	put("a 1 1\n", 1);
	flush(tcp, true, 0);
	RUN_UNTIL(exporter_is_idle(&world.exporter));
	run_for(250);
	assert_int_equal(receiver_read(&receiver), 24);
	assert_int_equal(receiver.n_accepted, 1);
	assert_int_equal(receiver.n_ended, 0);
	assert_int_equal(stats->points[POINTS_DELIVERED], 4);
	assert_false(stats->is_failing);
}

static void what_the_receiver_says_is_thrown_away(void **state)
{
	static const char words[100000];
	size_t n_said = 0;

	receiver_init(&receiver, "127.0.0.1", 0);
	tcp_new_to(&receiver);
	put("a 1 1\n", 1);
	flush(tcp, false, 0);
	RUN_UNTIL(receiver_read(&receiver) == 6);
	while (n_said < 10000000) {
		ssize_t n = send(receiver.fd, words, sizeof(words), MSG_NOSIGNAL);

		n_said += n > 0 ? (size_t)n : 0;
		turn();
	}
	put("b 1 1\n", 1);
	flush(tcp, true, 0);
	RUN_UNTIL((receiver_read(&receiver), exporter_is_idle(&world.exporter)));
	assert_true(is_text(&receiver.text, "a 1 1\nb 1 1\n"));
	assert_int_equal(receiver.n_accepted, 1);
	assert_int_equal(stats->points[POINTS_DELIVERED], 2);
}

static void a_receiver_that_hangs_up_on_all_is_not_hammered(void **state)
{
	uint64_t start_ns = now_ns();

	receiver_init(&receiver, "127.0.0.1", 0);
	tcp_new_to(&receiver);
	put("a 1 1\n", 1);
	flush(tcp, false, 0);
	while (receiver.n_accepted < 20) {
		RUN_UNTIL(receiver_accept(&receiver));
		receiver_hang_up(&receiver);
	}
	/* Some 25 ms lie between two attempts, or 450 ms between the first and this one. */
	assert_true(now_ns() - start_ns > 100 * MS);
	assert_int_equal(stats->points[POINTS_DELIVERED], 0);
	assert_true(stats->is_failing);
	RUN_UNTIL(receiver_read(&receiver) == 6);
	flush(tcp, true, 0);
	RUN_UNTIL((receiver_read(&receiver), exporter_is_idle(&world.exporter)));
	assert_int_equal(stats->points[POINTS_DELIVERED], 1);
}

static void the_second_address_of_a_name_is_used_when_the_first_refuses(void **state)
{
	struct sender_options options;

	needs_hosts();
	hosts_write("::1 two.example\n127.0.0.1 two.example\n");
	receiver_init(&receiver, "127.0.0.1", 0);
	options = tcp_options_for("two.example", port_of(receiver.listener));
	tcp_new(&options);
	put("a 1 1\n", 1);
	flush(tcp, true, 0);
	RUN_UNTIL((receiver_read(&receiver), exporter_is_idle(&world.exporter)));
	assert_int_equal(stats->points[POINTS_DELIVERED], 1);
	assert_false(stats->is_failing); /* that was no trouble at all */
}

static void a_receiver_that_moves_is_found_at_its_new_address(void **state)
{
	struct sender_options options;
	struct receiver old, new;
	unsigned int port;

	needs_hosts();
	hosts_write("127.0.0.1 moves.example\n");
	receiver_init(&old, "127.0.0.1", 0);
	port = port_of(old.listener);
	options = tcp_options_for("moves.example", port);
	tcp_new(&options);
	put("a 1 1\n", 1);
	flush(tcp, false, 0);
	RUN_UNTIL(receiver_accept(&old) && stats->requests == 1);
	run_for(20);
	close(old.listener);
	old.listener = -1;
	receiver_hang_up(&old); /* with the line unread */
	hosts_write("127.0.0.2 moves.example\n");
	receiver_init(&new, "127.0.0.2", port);
	RUN_UNTIL(receiver_read(&new) == 6);
	flush(tcp, true, 0);
	RUN_UNTIL((receiver_read(&new), exporter_is_idle(&world.exporter)));
	assert_int_equal(stats->points[POINTS_DELIVERED], 1);
	assert_int_equal(stats->retries, 1);
	receiver_done(&old);
	receiver_done(&new);
}

static void a_name_that_means_another_address_is_followed_when_the_connection_is_renewed(void **state)
{
	struct sender_options options;
	struct receiver old, new;
	unsigned int port;

	needs_hosts();
	hosts_write("127.0.0.1 moves.example\n");
	receiver_init(&old, "127.0.0.1", 0);
	port = port_of(old.listener);
	receiver_init(&new, "127.0.0.2", port);
	options = tcp_options_for("moves.example", port);
	options.confirm_every_ns = 50 * MS;
	tcp_new(&options);
	put("a 1 1\n", 1);
	flush(tcp, false, 0);
	RUN_UNTIL((receiver_read(&old), exporter_is_idle(&world.exporter)));
	assert_int_equal(old.n_ended, 1);
	hosts_write("127.0.0.2 moves.example\n");
	run_for(1050); /* what was looked up is taken for true for a second */
	put("b 2 2\n", 1);
	flush(tcp, false, 0);
	RUN_UNTIL((receiver_read(&old), receiver_read(&new), exporter_is_idle(&world.exporter)));
	assert_true(is_text(&old.text, "a 1 1\n"));
	assert_true(is_text(&new.text, "b 2 2\n"));
	assert_int_equal(stats->points[POINTS_DELIVERED], 2);
	assert_int_equal(stats->retries, 0);
	receiver_done(&old);
	receiver_done(&new);
}

/* Its queue of connections is full: the kernel does not answer. */
static void a_connection_that_is_not_answered_is_given_up_in_time(void **state)
{
	struct sender_options options;
	struct sockaddr_in address;
	socklen_t size = sizeof(address);
	int others[8];

	receiver_init(&receiver, "127.0.0.1", 0);
	assert_ok(listen(receiver.listener, 0));
	assert_ok(getsockname(receiver.listener, (struct sockaddr *)&address, &size));
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		others[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		(void)connect(others[i], (struct sockaddr *)&address, size);
	}
	options = tcp_options_for("127.0.0.1", port_of(receiver.listener));
	options.timeout_ns = 50 * MS;
	tcp_new(&options);
	put("a 1 1\n", 1);
	flush(tcp, true, 0);
	RUN_UNTIL(stats->is_failing);
	assert_int_equal(stats->requests, 0);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		close(others[i]);
	RUN_UNTIL((receiver_read(&receiver), exporter_is_idle(&world.exporter)));
	assert_int_equal(stats->points[POINTS_DELIVERED], 1);
	assert_false(stats->is_failing);
}

static void without_memory_lines_are_refused_to_their_giver(void **state)
{
	const struct sender_options options = tcp_options_for("127.0.0.1", 1);
	uint8_t *data;

	assert_survives_failing_allocations(socket_new(&tcp_ops, &world.exporter, &options, &tcp),
					    tcp = socket_free(tcp));
	tcp_new(&options);
	data = copy("a 1 1\n");
	alloc_fail_at(0);
	assert_error(exporter_enqueue(&world.exporter, data, 6, 1), ENOMEM);
	assert_true(alloc_end());
	assert_true(exporter_is_idle(&world.exporter));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(the_end_of_a_connection_confirms_what_was_on_it),
		RIG_TEST(a_receiver_that_is_not_there_is_waited_for),
		RIG_TEST(at_the_end_all_is_confirmed_at_once),
		RIG_TEST(a_small_queue_is_confirmed_before_it_is_full),
		RIG_TEST(a_queue_that_is_nearly_full_goes_when_the_receiver_is_known_to_be_there),
		RIG_TEST(what_a_connection_took_along_unread_comes_again),
		RIG_TEST(an_end_that_comes_by_itself_confirms_nothing),
		RIG_TEST(an_end_of_a_connection_with_nothing_unconfirmed_is_no_failure),
		RIG_TEST(an_end_that_was_there_before_our_own_is_no_answer_to_it),
		RIG_TEST(a_proxy_without_a_receiver_confirms_nothing),
		RIG_TEST(a_receiver_that_takes_all_and_never_closes_gets_it_again),
		RIG_TEST(the_first_connection_is_confirmed_soon),
		RIG_TEST(without_confirming_the_acknowledgement_counts_and_the_connection_stays),
		RIG_TEST(what_the_receiver_says_is_thrown_away),
		RIG_TEST(a_receiver_that_hangs_up_on_all_is_not_hammered),
		RIG_TEST(the_second_address_of_a_name_is_used_when_the_first_refuses),
		RIG_TEST(a_receiver_that_moves_is_found_at_its_new_address),
		RIG_TEST(a_name_that_means_another_address_is_followed_when_the_connection_is_renewed),
		RIG_TEST(a_connection_that_is_not_answered_is_given_up_in_time),
		RIG_TEST(without_memory_lines_are_refused_to_their_giver),
	};
	int failed;

	hosts_begin();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	hosts_end();
	return failed;
}

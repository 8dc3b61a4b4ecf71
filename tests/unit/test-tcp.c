/* SPDX-License-Identifier: Apache-2.0 */
#include "receiver.h"

#include "alloc.h"

static void the_end_of_a_connection_confirms_what_was_on_it(void **state)
{
	struct exporter_stats *stats;
	struct tcp_sender *client;
	struct receiver receiver;
	struct tcp_options options;
	struct world world;

	receiver_init(&receiver, "127.0.0.1", 0);
	options = options_for("127.0.0.1", port_of(receiver.listener));
	options.confirm_every_ns = 100 * MS;
	client = client_new(&world, &options);
	stats = &world.exporter.stats;
	put(client, "a 1 1\n", 1);
	put(client, "b 2 1\nc 3 1\n", 2);
	assert_false(exporter_is_idle(&world.exporter));
	tcp_sender_flush(client, false);
	RUN_UNTIL(&world, receiver_read(&receiver) == 18);
	assert_int_equal(stats->points[POINTS_DELIVERED], 0);
	assert_int_equal(exporter_waiting(&world.exporter).n_points, 3);
	assert_int_equal(exporter_waiting(&world.exporter).n_bytes, 18);
	assert_int_equal(stats->requests, 2);
	assert_int_equal(stats->bytes_sent, 18);
	assert_int_equal(receiver.n_ended, 0);

	RUN_UNTIL(&world, (receiver_read(&receiver), exporter_is_idle(&world.exporter)));
	assert_int_equal(stats->points[POINTS_DELIVERED], 3);
	assert_int_equal(exporter_waiting(&world.exporter).n_points, 0);
	assert_int_equal(exporter_waiting(&world.exporter).n_bytes, 0);
	assert_int_equal(receiver.n_ended, 1);

	/* Nothing more is asked of a receiver to whom there is nothing to say. */
	run_for(&world, 250);
	receiver_read(&receiver);
	assert_int_equal(receiver.n_accepted, 1);
	put(client, "d 4 2\n", 4);
	tcp_sender_flush(client, false);
	RUN_UNTIL(&world, (receiver_read(&receiver), exporter_is_idle(&world.exporter)));
	assert_int_equal(receiver.n_accepted, 2);
	assert_true(is_text(&receiver.text, "a 1 1\nb 2 1\nc 3 1\nd 4 2\n"));
	assert_int_equal(stats->points[POINTS_DELIVERED], 7);
	assert_int_equal(stats->requests, 3);
	assert_int_equal(stats->retries, 0);
	assert_false(stats->is_failing);
	tcp_sender_free(client);
	world_done(&world);
	receiver_done(&receiver);
}

static void a_receiver_that_is_not_there_is_waited_for(void **state)
{
	unsigned int port = free_port(SOCK_STREAM, "127.0.0.1");
	const struct tcp_options options = options_for("127.0.0.1", port);
	struct exporter_stats *stats;
	struct tcp_sender *client;
	struct receiver receiver;
	struct world world;

	client = client_new(&world, &options);
	stats = &world.exporter.stats;
	put(client, "a 1 1\n", 1);
	tcp_sender_flush(client, false);
	RUN_UNTIL(&world, stats->is_failing);
	run_for(&world, 100);
	put(client, "b 2 2\n", 1);
	tcp_sender_flush(client, false);
	assert_int_equal(exporter_waiting(&world.exporter).n_points, 2);
	assert_int_equal(stats->requests, 0);

	receiver_init(&receiver, "127.0.0.1", port);
	RUN_UNTIL(&world, receiver_read(&receiver) == 12);
	assert_true(stats->is_failing); /* until it is known to have arrived, which is asked for at once */
	RUN_UNTIL(&world, (receiver_read(&receiver), exporter_is_idle(&world.exporter)));
	assert_true(is_text(&receiver.text, "a 1 1\nb 2 2\n"));
	assert_int_equal(stats->points[POINTS_DELIVERED], 2);
	assert_int_equal(stats->retries, 0);
	assert_int_equal(stats->points[POINTS_QUEUE_FULL], 0);
	assert_false(stats->is_failing);
	tcp_sender_free(client);
	world_done(&world);
	receiver_done(&receiver);
}

static void at_the_end_all_is_confirmed_at_once(void **state)
{
	struct tcp_sender *client;
	struct receiver receiver;
	struct world world;

	receiver_init(&receiver, "127.0.0.1", 0);
	client = client_to(&world, &receiver);
	put(client, "a 1 1\n", 1);
	tcp_sender_flush(client, false);
	RUN_UNTIL(&world, receiver_read(&receiver) == 6);
	run_for(&world, 50);
	receiver_read(&receiver);
	assert_int_equal(receiver.n_ended, 0);
	put(client, "b 2 2\n", 2);
	tcp_sender_flush(client, true);
	RUN_UNTIL(&world, (receiver_read(&receiver), exporter_is_idle(&world.exporter)));
	assert_int_equal(receiver.n_accepted, 1);
	assert_int_equal(receiver.n_ended, 1);
	assert_int_equal(world.exporter.stats.points[POINTS_DELIVERED], 3);
	tcp_sender_free(client);
	world_done(&world);
	receiver_done(&receiver);
}

static void a_small_queue_is_confirmed_before_it_is_full(void **state)
{
	struct tcp_options options;
	struct tcp_sender *client;
	struct receiver receiver;
	struct world world;

	receiver_init(&receiver, "127.0.0.1", 0);
	options = options_for("127.0.0.1", port_of(receiver.listener));
	options.queue_bytes = 32;
	client = client_new(&world, &options);
	for (unsigned int i = 1; i <= 10; i++) {
		put(client, "abcdef 1 1\n", 1);
		tcp_sender_flush(client, false);
		RUN_UNTIL(&world, (receiver_read(&receiver), exporter_is_idle(&world.exporter)));
		assert_int_equal(receiver.n_ended, i);
	}
	assert_int_equal(world.exporter.stats.points[POINTS_DELIVERED], 10);
	assert_int_equal(world.exporter.stats.points[POINTS_QUEUE_FULL], 0);
	tcp_sender_free(client);
	world_done(&world);
	receiver_done(&receiver);
}

static void what_a_connection_took_along_unread_comes_again(void **state)
{
	struct exporter_stats *stats;
	struct tcp_sender *client;
	struct receiver receiver;
	struct world world;

	receiver_init(&receiver, "127.0.0.1", 0);
	client = client_to(&world, &receiver);
	stats = &world.exporter.stats;
	put(client, "a 1 1\n", 1);
	put(client, "b 2 1\n", 1);
	tcp_sender_flush(client, false);
	RUN_UNTIL(&world, receiver_accept(&receiver) && stats->requests == 2);
	run_for(&world, 20);
	receiver_hang_up(&receiver); /* with all of it unread: a reset */
	RUN_UNTIL(&world, receiver_read(&receiver) == 12);
	assert_int_equal(receiver.n_accepted, 2);
	assert_true(is_text(&receiver.text, "a 1 1\nb 2 1\n"));
	assert_int_equal(stats->points[POINTS_DELIVERED], 0);
	assert_int_equal(stats->requests, 4);
	assert_int_equal(stats->retries, 2);
	assert_int_equal(stats->bytes_sent, 24);
	assert_true(stats->is_failing);

	tcp_sender_flush(client, true);
	RUN_UNTIL(&world, (receiver_read(&receiver), exporter_is_idle(&world.exporter)));
	assert_int_equal(stats->points[POINTS_DELIVERED], 2);
	assert_int_equal(stats->requests, 4);
	assert_false(stats->is_failing);
	tcp_sender_free(client);
	world_done(&world);
	receiver_done(&receiver);
}

static void a_receiver_that_has_read_all_and_closes_confirms_it(void **state)
{
	struct exporter_stats *stats;
	struct tcp_sender *client;
	struct receiver receiver;
	struct world world;

	receiver_init(&receiver, "127.0.0.1", 0);
	client = client_to(&world, &receiver);
	stats = &world.exporter.stats;
	put(client, "a 1 1\n", 5);
	tcp_sender_flush(client, false);
	RUN_UNTIL(&world, receiver_read(&receiver) == 6);
	receiver_hang_up(&receiver);
	RUN_UNTIL(&world, exporter_is_idle(&world.exporter));
	assert_int_equal(stats->points[POINTS_DELIVERED], 5);
	assert_false(stats->is_failing);

	/* It restarts at the same port, and the next line goes there. */
	put(client, "b 2 2\n", 7);
	tcp_sender_flush(client, false);
	RUN_UNTIL(&world, receiver_read(&receiver) == 12);
	assert_int_equal(receiver.n_accepted, 2);
	assert_int_equal(stats->retries, 0);
	tcp_sender_free(client);
	world_done(&world);
	receiver_done(&receiver);
}

static void a_receiver_that_takes_all_and_never_closes_gets_it_again(void **state)
{
	struct exporter_stats *stats;
	struct tcp_sender *client;
	struct receiver receiver;
	struct tcp_options options;
	struct world world;

	receiver_init(&receiver, "127.0.0.1", 0);
	receiver.stays_open = true;
	options = options_for("127.0.0.1", port_of(receiver.listener));
	options.timeout_ns = 100 * MS;
	client = client_new(&world, &options);
	stats = &world.exporter.stats;
	put(client, "a 1 1\n", 1);
	tcp_sender_flush(client, true);
	RUN_UNTIL(&world, (receiver_read(&receiver), stats->is_failing));
	assert_int_equal(receiver.n_ended > 0, true);
	assert_int_equal(stats->points[POINTS_DELIVERED], 0);
	assert_int_equal(exporter_waiting(&world.exporter).n_points, 1);
	receiver_hang_up(&receiver);
	receiver.stays_open = false;
	RUN_UNTIL(&world, (receiver_read(&receiver), exporter_is_idle(&world.exporter)));
	assert_true(is_text(&receiver.text, "a 1 1\na 1 1\n"));
	assert_int_equal(stats->points[POINTS_DELIVERED], 1);
	assert_int_equal(stats->retries, 1);
	assert_false(stats->is_failing);
	tcp_sender_free(client);
	world_done(&world);
	receiver_done(&receiver);
}

static void without_confirming_the_acknowledgement_counts_and_the_connection_stays(void **state)
{
	struct exporter_stats *stats;
	struct tcp_sender *client;
	struct receiver receiver;
	struct tcp_options options;
	struct world world;

	receiver_init(&receiver, "127.0.0.1", 0);
	receiver.stays_open = true;
	options = options_for("127.0.0.1", port_of(receiver.listener));
	options.confirm_every_ns = 0;
	options.timeout_ns = 100 * MS;
	client = client_new(&world, &options);
	stats = &world.exporter.stats;
	for (size_t i = 1; i <= 3; i++) {
		put(client, "a 1 1\n", 1);
		tcp_sender_flush(client, false);
		RUN_UNTIL(&world, exporter_is_idle(&world.exporter));
		assert_int_equal(stats->points[POINTS_DELIVERED], i);
	}
	put(client, "a 1 1\n", 1);
	tcp_sender_flush(client, true);
	RUN_UNTIL(&world, exporter_is_idle(&world.exporter));
	run_for(&world, 250);
	assert_int_equal(receiver_read(&receiver), 24);
	assert_int_equal(receiver.n_accepted, 1);
	assert_int_equal(receiver.n_ended, 0);
	assert_int_equal(stats->points[POINTS_DELIVERED], 4);
	assert_false(stats->is_failing);
	tcp_sender_free(client);
	world_done(&world);
	receiver_done(&receiver);
}

static void what_the_receiver_says_is_thrown_away(void **state)
{
	static const char words[100000];
	struct tcp_sender *client;
	struct receiver receiver;
	struct world world;
	size_t n_said = 0;

	receiver_init(&receiver, "127.0.0.1", 0);
	client = client_to(&world, &receiver);
	put(client, "a 1 1\n", 1);
	tcp_sender_flush(client, false);
	RUN_UNTIL(&world, receiver_read(&receiver) == 6);
	while (n_said < 10000000) {
		ssize_t n = send(receiver.fd, words, sizeof(words), MSG_NOSIGNAL);

		n_said += n > 0 ? (size_t)n : 0;
		turn(&world);
	}
	put(client, "b 1 1\n", 1);
	tcp_sender_flush(client, true);
	RUN_UNTIL(&world, (receiver_read(&receiver), exporter_is_idle(&world.exporter)));
	assert_true(is_text(&receiver.text, "a 1 1\nb 1 1\n"));
	assert_int_equal(receiver.n_accepted, 1);
	assert_int_equal(world.exporter.stats.points[POINTS_DELIVERED], 2);
	tcp_sender_free(client);
	world_done(&world);
	receiver_done(&receiver);
}

static void a_receiver_that_hangs_up_on_all_is_not_hammered(void **state)
{
	struct exporter_stats *stats;
	struct tcp_sender *client;
	struct receiver receiver;
	struct world world;
	uint64_t end_ns;

	receiver_init(&receiver, "127.0.0.1", 0);
	client = client_to(&world, &receiver);
	stats = &world.exporter.stats;
	put(client, "a 1 1\n", 1);
	tcp_sender_flush(client, false);
	for (end_ns = now_ns() + 500 * MS; now_ns() < end_ns; turn(&world)) {
		if (receiver_accept(&receiver))
			receiver_hang_up(&receiver);
	}
	/* Some 25 ms lie between two attempts. */
	assert_true(receiver.n_accepted > 1 && receiver.n_accepted < 100);
	assert_int_equal(stats->points[POINTS_DELIVERED], 0);
	assert_true(stats->is_failing);
	RUN_UNTIL(&world, receiver_read(&receiver) == 6);
	tcp_sender_flush(client, true);
	RUN_UNTIL(&world, (receiver_read(&receiver), exporter_is_idle(&world.exporter)));
	assert_int_equal(stats->points[POINTS_DELIVERED], 1);
	tcp_sender_free(client);
	world_done(&world);
	receiver_done(&receiver);
}

static void the_second_address_of_a_name_is_used_when_the_first_refuses(void **state)
{
	struct tcp_options options;
	struct tcp_sender *client;
	struct receiver receiver;
	struct world world;

	needs_hosts();
	hosts_write("::1 two.example\n127.0.0.1 two.example\n");
	receiver_init(&receiver, "127.0.0.1", 0);
	options = options_for("two.example", port_of(receiver.listener));
	client = client_new(&world, &options);
	put(client, "a 1 1\n", 1);
	tcp_sender_flush(client, true);
	RUN_UNTIL(&world, (receiver_read(&receiver), exporter_is_idle(&world.exporter)));
	assert_int_equal(world.exporter.stats.points[POINTS_DELIVERED], 1);
	assert_false(world.exporter.stats.is_failing); /* that was no trouble at all */
	tcp_sender_free(client);
	world_done(&world);
	receiver_done(&receiver);
}

static void a_receiver_that_moves_is_found_at_its_new_address(void **state)
{
	struct tcp_options options;
	struct tcp_sender *client;
	struct receiver old, new;
	struct world world;
	unsigned int port;

	needs_hosts();
	hosts_write("127.0.0.1 moves.example\n");
	receiver_init(&old, "127.0.0.1", 0);
	port = port_of(old.listener);
	options = options_for("moves.example", port);
	client = client_new(&world, &options);
	put(client, "a 1 1\n", 1);
	tcp_sender_flush(client, false);
	RUN_UNTIL(&world, receiver_accept(&old) && world.exporter.stats.requests == 1);
	run_for(&world, 20);
	close(old.listener);
	old.listener = -1;
	receiver_hang_up(&old); /* with the line unread */
	hosts_write("127.0.0.2 moves.example\n");
	receiver_init(&new, "127.0.0.2", port);
	RUN_UNTIL(&world, receiver_read(&new) == 6);
	tcp_sender_flush(client, true);
	RUN_UNTIL(&world, (receiver_read(&new), exporter_is_idle(&world.exporter)));
	assert_int_equal(world.exporter.stats.points[POINTS_DELIVERED], 1);
	assert_int_equal(world.exporter.stats.retries, 1);
	tcp_sender_free(client);
	world_done(&world);
	receiver_done(&old);
	receiver_done(&new);
}

static void a_name_that_means_another_address_is_followed_when_the_connection_is_renewed(void **state)
{
	struct tcp_options options;
	struct tcp_sender *client;
	struct receiver old, new;
	struct world world;
	unsigned int port;

	needs_hosts();
	hosts_write("127.0.0.1 moves.example\n");
	receiver_init(&old, "127.0.0.1", 0);
	port = port_of(old.listener);
	receiver_init(&new, "127.0.0.2", port);
	options = options_for("moves.example", port);
	options.confirm_every_ns = 50 * MS;
	client = client_new(&world, &options);
	put(client, "a 1 1\n", 1);
	tcp_sender_flush(client, false);
	RUN_UNTIL(&world, (receiver_read(&old), exporter_is_idle(&world.exporter)));
	assert_int_equal(old.n_ended, 1);
	hosts_write("127.0.0.2 moves.example\n");
	run_for(&world, 1050); /* what was looked up is taken for true for a second */
	put(client, "b 2 2\n", 1);
	tcp_sender_flush(client, false);
	RUN_UNTIL(&world, (receiver_read(&old), receiver_read(&new), exporter_is_idle(&world.exporter)));
	assert_true(is_text(&old.text, "a 1 1\n"));
	assert_true(is_text(&new.text, "b 2 2\n"));
	assert_int_equal(world.exporter.stats.points[POINTS_DELIVERED], 2);
	assert_int_equal(world.exporter.stats.retries, 0);
	tcp_sender_free(client);
	world_done(&world);
	receiver_done(&old);
	receiver_done(&new);
}

/* Its queue of connections is full: the kernel does not answer. */
static void a_connection_that_is_not_answered_is_given_up_in_time(void **state)
{
	struct tcp_options options;
	struct tcp_sender *client;
	struct receiver receiver;
	struct world world;
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
	options = options_for("127.0.0.1", port_of(receiver.listener));
	options.timeout_ns = 50 * MS;
	client = client_new(&world, &options);
	put(client, "a 1 1\n", 1);
	tcp_sender_flush(client, true);
	RUN_UNTIL(&world, world.exporter.stats.is_failing);
	assert_int_equal(world.exporter.stats.requests, 0);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		close(others[i]);
	RUN_UNTIL(&world, (receiver_read(&receiver), exporter_is_idle(&world.exporter)));
	assert_int_equal(world.exporter.stats.points[POINTS_DELIVERED], 1);
	assert_false(world.exporter.stats.is_failing);
	tcp_sender_free(client);
	world_done(&world);
	receiver_done(&receiver);
}

static void without_memory_lines_are_refused_to_their_giver(void **state)
{
	const struct tcp_options options = options_for("127.0.0.1", 1);
	struct tcp_sender *client = NULL;
	struct world world;
	uint8_t *data;

	world_init(&world);
	assert_survives_failing_allocations(tcp_sender_new(world.event, &options, &world.exporter, &client),
					    client = tcp_sender_free(client));
	world_done(&world);
	client = client_new(&world, &options);
	data = copy("a 1 1\n");
	alloc_fail_at(0);
	assert_error(tcp_sender_put(client, data, 6, 1), ENOMEM);
	assert_true(alloc_end());
	assert_true(exporter_is_idle(&world.exporter));
	tcp_sender_free(client);
	world_done(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_end_of_a_connection_confirms_what_was_on_it),
		cmocka_unit_test(a_receiver_that_is_not_there_is_waited_for),
		cmocka_unit_test(at_the_end_all_is_confirmed_at_once),
		cmocka_unit_test(a_small_queue_is_confirmed_before_it_is_full),
		cmocka_unit_test(what_a_connection_took_along_unread_comes_again),
		cmocka_unit_test(a_receiver_that_has_read_all_and_closes_confirms_it),
		cmocka_unit_test(a_receiver_that_takes_all_and_never_closes_gets_it_again),
		cmocka_unit_test(without_confirming_the_acknowledgement_counts_and_the_connection_stays),
		cmocka_unit_test(what_the_receiver_says_is_thrown_away),
		cmocka_unit_test(a_receiver_that_hangs_up_on_all_is_not_hammered),
		cmocka_unit_test(the_second_address_of_a_name_is_used_when_the_first_refuses),
		cmocka_unit_test(a_receiver_that_moves_is_found_at_its_new_address),
		cmocka_unit_test(a_name_that_means_another_address_is_followed_when_the_connection_is_renewed),
		cmocka_unit_test(a_connection_that_is_not_answered_is_given_up_in_time),
		cmocka_unit_test(without_memory_lines_are_refused_to_their_giver),
	};
	int failed;

	hosts_begin();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	hosts_end();
	return failed;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

static void the_second_address_of_a_name_is_used_when_the_first_refuses(void **state)
{
	int fd;

	needs_hosts();
	hosts_write("127.0.0.1 two.example\n::1 two.example\n");
	fd = bound_socket(SOCK_DGRAM, "127.0.0.1", 0);
	udp_new_to(endpoint_at("two.example", port_of(fd)));
	put("a:1|c", 1);
	put("b:1|c", 2);
	put("c:1|c", 4);
	flush(udp, false, 0);
	receives(fd, "c:1|c");
	assert_int_equal(stats->points[POINTS_CONNECTION_REFUSED], 1); /* that went to [::1] */
	assert_int_equal(stats->requests, 3);
	assert_int_equal(stats->retries, 1);
	flush(udp, false, 0);
	put("d:1|c", 8);
	flush(udp, false, 0);
	receives(fd, "d:1|c");
	flush(udp, false, 0);
	assert_int_equal(stats->points[POINTS_DELIVERED], 14);
	assert_int_equal(stats->points[POINTS_CONNECTION_REFUSED], 1);
	assert_int_equal(world.exporter.n_losses, 2); /* the refusal and the other socket */
	assert_false(stats->is_failing);
	close(fd);
}

static void a_name_that_moves_is_followed_and_one_that_stays_keeps_its_socket(void **state)
{
	int old, new;
	unsigned int port;
	struct sender_options options;

	needs_hosts();
	hosts_write("127.0.0.1 moves.example\n");
	old = bound_socket(SOCK_DGRAM, "127.0.0.1", 0);
	port = port_of(old);
	new = bound_socket(SOCK_DGRAM, "127.0.0.2", port);
	options = udp_options_for(endpoint_at("moves.example", port));
	options.resolve_every_ns = 20 * MS;
	udp_new(&options);
	put("a:1|c", 1);
	flush(udp, false, 0);
	receives(old, "a:1|c");

	hosts_write("127.0.0.2 moves.example\n127.0.0.1 moves.example\n");
	run_for(100);
	assert_int_equal(world.exporter.n_losses, 0);
	put("b:1|c", 1);
	flush(udp, false, 0);
	receives(old, "b:1|c");

	hosts_write("127.0.0.2 moves.example\n");
	RUN_UNTIL(world.exporter.n_losses == 1);
	put("c:1|c", 1);
	flush(udp, false, 0);
	receives(new, "c:1|c");

	/* A name that is gone leaves things as they are. */
	hosts_write("");
	run_for(100);
	put("d:1|c", 1);
	flush(udp, false, 0);
	receives(new, "d:1|c");
	flush(udp, false, 0);
	assert_int_equal(stats->points[POINTS_DELIVERED], 4);
	assert_int_equal(world.exporter.n_losses, 1);
	assert_false(stats->is_failing);
	close(old);
	close(new);
}

static void a_name_whose_receiver_refuses_is_looked_up_again(void **state)
{
	unsigned int port;
	int old, new;

	needs_hosts();
	hosts_write("127.0.0.1 leaves.example\n");
	old = bound_socket(SOCK_DGRAM, "127.0.0.1", 0);
	port = port_of(old);
	new = bound_socket(SOCK_DGRAM, "127.0.0.2", port);
	udp_new_to(endpoint_at("leaves.example", port));
	put("a:1|c", 1);
	flush(udp, false, 0);
	receives(old, "a:1|c"); /* so the first lookup is over, and nothing asks for another */
	close(old);
	run_for(100); /* retry.max_ns lies between two lookups */
	hosts_write("127.0.0.2 leaves.example\n");
	put("b:1|c", 2);
	flush(udp, false, 0);
	RUN_UNTIL(world.exporter.n_losses == 2); /* the refusal and the other socket */
	put("c:1|c", 4);
	flush(udp, false, 0);
	receives(new, "c:1|c");
	flush(udp, false, 0);
	assert_int_equal(stats->points[POINTS_CONNECTION_REFUSED], 2);
	assert_int_equal(stats->points[POINTS_DELIVERED], 5);
	assert_false(stats->is_failing);
	close(new);
}

static void a_name_that_nobody_knows_yet_is_asked_for_again(void **state)
{
	int fd;

	needs_hosts();
	hosts_write("");
	fd = bound_socket(SOCK_DGRAM, "127.0.0.1", 0);
	udp_new_to(endpoint_at("comes..example", port_of(fd)));
	put("a:1|c", 1);
	flush(udp, false, 0);
	assert_int_equal(stats->requests, 0);
	RUN_UNTIL(stats->is_failing);
	assert_int_equal(exporter_waiting(&world.exporter).n_points, 1);
	hosts_write("127.0.0.1 comes..example\n");
	receives(fd, "a:1|c");
	flush(udp, false, 0);
	assert_int_equal(stats->points[POINTS_DELIVERED], 1);
	assert_int_equal(world.exporter.n_losses, 0);
	assert_false(stats->is_failing);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(the_second_address_of_a_name_is_used_when_the_first_refuses),
		RIG_TEST(a_name_that_moves_is_followed_and_one_that_stays_keeps_its_socket),
		RIG_TEST(a_name_whose_receiver_refuses_is_looked_up_again),
		RIG_TEST(a_name_that_nobody_knows_yet_is_asked_for_again),
	};
	int failed;

	hosts_begin();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	hosts_end();
	return failed;
}

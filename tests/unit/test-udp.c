/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include "alloc.h"
#include "logged.h"

static void a_datagram_is_exported_when_no_refusal_came_back(void **state)
{
	int fd = bound_socket(SOCK_DGRAM, "127.0.0.1", 0);

	udp_new_to(endpoint_at("127.0.0.1", port_of(fd)));
	assert_true(exporter_is_idle(&world.exporter));
	put("a:1|c", 3);
	assert_false(exporter_is_idle(&world.exporter));
	assert_int_equal(exporter_waiting(&world.exporter).n_points, 3);
	assert_int_equal(exporter_waiting(&world.exporter).n_bytes, 5);
	flush(udp, false, 0);
	receives(fd, "a:1|c");
	assert_true(exporter_is_idle(&world.exporter));
	assert_int_equal(stats->requests, 1);
	assert_int_equal(stats->bytes_sent, 5);
	assert_int_equal(exporter_waiting(&world.exporter).n_bytes, 0);
	assert_int_equal(stats->points[POINTS_DELIVERED], 0);
	assert_int_equal(exporter_waiting(&world.exporter).n_points, 3);

	put("b:1|c", 4); /* the next one settles the one before, a flush the last */
	put("c:1|c", 5);
	flush(udp, false, 0);
	assert_int_equal(stats->points[POINTS_DELIVERED], 7);
	assert_int_equal(exporter_waiting(&world.exporter).n_points, 5);
	flush(udp, false, 0);
	assert_int_equal(stats->points[POINTS_DELIVERED], 12);
	assert_int_equal(exporter_waiting(&world.exporter).n_points, 0);
	assert_int_equal(stats->requests, 3);
	assert_int_equal(stats->retries, 0);
	assert_int_equal(world.exporter.n_losses, 0);
	assert_false(stats->is_failing);
	close(fd);
}

static void what_is_refused_is_counted_and_what_comes_after_is_received(void **state)
{
	unsigned int port = free_port(SOCK_DGRAM, "127.0.0.1");
	int fd;

	udp_new_to(endpoint_at("127.0.0.1", port));
	put("a:1|c", 1);
	put("b:1|c", 2);
	put("c:1|c", 4);
	/* On this interface the report is back before the next one is sent. */
	flush(udp, false, 0);
	assert_int_equal(stats->requests, 3);
	assert_int_equal(stats->retries, 2);
	assert_int_equal(stats->points[POINTS_CONNECTION_REFUSED], 3);
	assert_int_equal(exporter_waiting(&world.exporter).n_points, 4);
	assert_true(stats->is_failing);
	RUN_UNTIL(stats->points[POINTS_CONNECTION_REFUSED] == 7); /* without another call */
	assert_int_equal(exporter_waiting(&world.exporter).n_points, 0);
	assert_int_equal(stats->points[POINTS_DELIVERED], 0);
	assert_int_equal(world.exporter.n_losses, 3);

	fd = bound_socket(SOCK_DGRAM, "127.0.0.1", port);
	put("d:1|c", 8);
	flush(udp, false, 0);
	receives(fd, "d:1|c");
	assert_true(stats->is_failing);
	flush(udp, false, 0);
	assert_int_equal(stats->points[POINTS_DELIVERED], 8);
	assert_int_equal(stats->points[POINTS_CONNECTION_REFUSED], 7);
	assert_int_equal(world.exporter.n_losses, 3);
	assert_false(stats->is_failing);
	close(fd);
}

/* A receiver tells senders apart by their port. */
static void a_receiver_that_restarts_sees_the_same_sender(void **state)
{
	int fd = bound_socket(SOCK_DGRAM, "127.0.0.1", 0);
	unsigned int port = port_of(fd);
	struct sockaddr_in first = { 0 }, second = { 0 };
	socklen_t size = sizeof(first);
	char text[8];

	udp_new_to(endpoint_at("127.0.0.1", port));
	put("a:1|c", 1);
	flush(udp, false, 0);
	assert_int_equal(recvfrom(fd, text, sizeof(text), 0, (struct sockaddr *)&first, &size), 5);
	close(fd);
	put("b:1|c", 1);
	flush(udp, false, 0);
	RUN_UNTIL(stats->points[POINTS_CONNECTION_REFUSED] == 1);
	fd = bound_socket(SOCK_DGRAM, "127.0.0.1", port);
	put("c:1|c", 1);
	flush(udp, false, 0);
	assert_int_equal(recvfrom(fd, text, sizeof(text), 0, (struct sockaddr *)&second, &size), 5);
	assert_int_equal(first.sin_port, second.sin_port);
	flush(udp, false, 0);
	assert_int_equal(stats->points[POINTS_DELIVERED], 2);
	assert_int_equal(stats->points[POINTS_CONNECTION_REFUSED], 1);
	assert_int_equal(world.exporter.n_losses, 1);
	close(fd);
}

/* The socket of a receiver at a path of its own. */
static int unix_receiver(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	unlink(path);
	assert_ok(bind(fd, (struct sockaddr *)&address, sizeof(address)));
	return fd;
}

static struct endpoint unix_endpoint(void)
{
	struct endpoint endpoint = { 0 };

	snprintf(endpoint.path, sizeof(endpoint.path), "/tmp/test-datagram.%d.sock", (int)getpid());
	unlink(endpoint.path);
	return endpoint;
}

static void a_unix_socket_that_is_not_there_is_waited_for(void **state)
{
	struct endpoint endpoint = unix_endpoint();
	int fd;

	udp_new_to(endpoint);
	assert_true(stats->is_failing);
	put("a:1|c", 1);
	flush(udp, false, 0);
	run_for(60);
	assert_int_equal(exporter_waiting(&world.exporter).n_points, 1);
	assert_int_equal(stats->requests, 0);
	fd = unix_receiver(endpoint.path);
	receives(fd, "a:1|c");
	assert_int_equal(stats->points[POINTS_DELIVERED], 0); /* until it takes another one */
	assert_int_equal(exporter_waiting(&world.exporter).n_points, 1);
	assert_true(exporter_is_idle(&world.exporter));
	assert_int_equal(stats->retries, 0);
	assert_int_equal(world.exporter.n_losses, 0);
	assert_false(stats->is_failing);

	/* It goes and comes again: what was refused meanwhile was kept. */
	close(fd);
	put("b:1|c", 2);
	put("c:1|c", 4);
	flush(udp, false, 0);
	assert_true(stats->is_failing);
	run_for(60);
	assert_int_equal(exporter_waiting(&world.exporter).n_points, 6);
	assert_int_equal(stats->points[POINTS_IN_DOUBT], 1); /* it may have ended before it read that */
	fd = unix_receiver(endpoint.path);
	receives(fd, "c:1|c");
	put("d:1|c", 8);
	flush(udp, false, 0);
	receives(fd, "d:1|c");
	assert_int_equal(stats->points[POINTS_DELIVERED], 6);
	assert_int_equal(exporter_waiting(&world.exporter).n_points, 8);
	assert_int_equal(stats->points[POINTS_CONNECTION_REFUSED], 0);
	assert_int_equal(stats->requests, 4);
	assert_int_equal(stats->retries, 1);
	assert_int_equal(world.exporter.n_losses, 1); /* it was opened again */
	assert_false(stats->is_failing);
	close(fd);
	unlink(endpoint.path);
}

/* Another receiver binds the path while the old one lives. */
static void replace_receiver(bool old_one_reads)
{
	struct endpoint endpoint = unix_endpoint();
	int old = unix_receiver(endpoint.path), new;
	char last[64];

	udp_new_to(endpoint);
	put("a:1|c", 1);
	flush(udp, false, 0);
	receives(old, "a:1|c");
	put("b:1|c", 2);
	flush(udp, false, 0);
	if (old_one_reads)
		receives(old, "b:1|c");
	assert_int_equal(stats->points[POINTS_DELIVERED], 1);
	assert_int_equal(exporter_waiting(&world.exporter).n_points, 2);

	new = unix_receiver(endpoint.path);
	put("c:1|c", 4);
	log_catch();
	flush(udp, false, 0);
	assert_non_null(strstr(log_caught(), "points may be lost: the receiver ended, or another one took its place"));
	receives(new, "c:1|c");
	assert_int_equal(drain(old, last), !old_one_reads);
	assert_int_equal(stats->points[POINTS_IN_DOUBT], 2);
	assert_int_equal(exporter_waiting(&world.exporter).n_points, 4);
	assert_int_equal(world.exporter.n_losses, 1);
	assert_false(stats->is_failing);
	close(old);
	close(new);
	unlink(endpoint.path);
}

static void a_unix_socket_that_was_replaced_is_left_at_the_next_flush(void **state)
{
	replace_receiver(true);
}

static void so_it_is_if_the_old_receiver_does_not_read(void **state)
{
	replace_receiver(false);
}

static void a_unix_socket_whose_path_leads_nowhere_is_left(void **state)
{
	struct endpoint endpoint = unix_endpoint();
	int old = unix_receiver(endpoint.path), new;
	char last[64];

	udp_new_to(endpoint);
	put("a:1|c", 1);
	flush(udp, false, 0);
	receives(old, "a:1|c");
	unlink(endpoint.path);
	put("b:1|c", 2);
	flush(udp, false, 0);
	assert_true(stats->is_failing);
	assert_int_equal(drain(old, last), 0);
	assert_int_equal(exporter_waiting(&world.exporter).n_points, 2);
	new = unix_receiver(endpoint.path);
	receives(new, "b:1|c");
	assert_false(stats->is_failing);
	close(old);
	close(new);
	unlink(endpoint.path);
}

static void a_unix_receiver_that_does_not_read_is_waited_for_within_the_queue(void **state)
{
	struct endpoint endpoint = unix_endpoint();
	struct sender_options options = udp_options_for(endpoint);
	int fd = unix_receiver(endpoint.path);
	uint64_t n_taken;
	char last[64] = "";

	options.burst = 0;
	world.budget.limit_bytes = 100 * 4;
	udp_new(&options);
	for (int i = 0; i < 1000; i++) {
		char text[8];

		snprintf(text, sizeof(text), "%04d", i);
		put(text, 1);
		flush(udp, false, 0);
	}
	run_for(20);
	n_taken = world.exporter.n_doubtful; /* what the kernel keeps for it: net.unix.max_dgram_qlen and one */
	assert_true(n_taken > 0 && n_taken < 900);
	assert_int_equal(stats->points[POINTS_DELIVERED], 0);
	assert_int_equal(exporter_waiting(&world.exporter).n_bytes, 400);
	assert_int_equal(exporter_waiting(&world.exporter).n_points, 100 + n_taken);
	assert_int_equal(stats->points[POINTS_QUEUE_FULL], 1000 - 100 - n_taken);
	assert_true(stats->is_failing);
	assert_non_null(strstr(stats->problem, ": nobody reads what was sent"));

	n_taken = 0;
	RUN_UNTIL((n_taken += drain(fd, last), exporter_is_idle(&world.exporter)));
	n_taken += drain(fd, last);
	assert_string_equal(last, "0999");
	put("1000", 1);
	flush(udp, false, 0); /* all before it was read */
	assert_int_equal(n_taken, stats->points[POINTS_DELIVERED]);
	assert_int_equal(stats->points[POINTS_DELIVERED] + stats->points[POINTS_QUEUE_FULL], 1000);
	assert_int_equal(stats->requests, stats->points[POINTS_DELIVERED] + 1);
	assert_true(world.exporter.n_losses > 0);
	assert_false(stats->is_failing);
	close(fd);
	unlink(endpoint.path);
}

static void a_datagram_that_is_too_large_is_dropped_alone(void **state)
{
	int fd = bound_socket(SOCK_DGRAM, "127.0.0.1", 0);
	uint8_t *data = calloc(1, 70000), *more = calloc(1, 70000);
	const char *told;

	assert_non_null(data);
	assert_non_null(more);
	udp_new_to(endpoint_at("127.0.0.1", port_of(fd)));
	put_data(data, 70000, 4);
	put_data(more, 70000, 5);
	put("b:1|c", 1);
	log_catch();
	flush(udp, false, 0);
	told = strstr(log_caught(), "lower max_datagram_size");
	assert_non_null(told);
	assert_null(strstr(told + 1, "lower max_datagram_size"));
	receives(fd, "b:1|c");
	flush(udp, false, 0);
	assert_int_equal(stats->points[POINTS_TOO_LARGE], 9);
	assert_int_equal(stats->points[POINTS_DELIVERED], 1);
	assert_int_equal(stats->requests, 1);
	assert_int_equal(world.exporter.n_losses, 2);
	close(fd);
}

static void over_the_bytes_of_the_queue_the_oldest_go(void **state)
{
	int fd = bound_socket(SOCK_DGRAM, "127.0.0.1", 0);
	struct sender_options options = udp_options_for(endpoint_at("127.0.0.1", port_of(fd)));
	char last[64];

	world.budget.limit_bytes = 10;
	udp_new(&options);
	put("aaaa", 1);
	put("bbbb", 2);
	put("cccc", 4);
	put("dddddddddddddd", 8); /* alone over it, it takes all along */
	assert_int_equal(stats->points[POINTS_QUEUE_FULL], 15);
	put("eeee", 16);
	flush(udp, false, 0);
	assert_int_equal(drain(fd, last), 1);
	assert_string_equal(last, "eeee");
	assert_int_equal(exporter_waiting(&world.exporter).n_points, 16);
	assert_int_equal(world.exporter.n_losses, 2);
	close(fd);
}

#define PACED 4000
#define PACED_BYTES 1432

/*
 * Larger than the default buffer of the receiver by far: it arrives because it is spread. A tick sends a two-hundredth,
 * or twice as many if it makes up for one that was late.
 */
static void what_is_paced_arrives_at_a_receiver_with_the_default_buffer(void **state)
{
	int fd = bound_socket(SOCK_DGRAM, "127.0.0.1", 0);
	struct sender_options options = udp_options_for(endpoint_at("127.0.0.1", port_of(fd)));
	unsigned int n, got;
	uint64_t start_ns;
	char last[64];

	world.budget.limit_bytes = PACED * PACED_BYTES;
	udp_new(&options);
	for (int i = 0; i < PACED; i++) {
		uint8_t *data = calloc(1, PACED_BYTES);

		assert_non_null(data);
		put_data(data, PACED_BYTES, 1);
	}
	start_ns = now_ns();
	flush(udp, false, 1000 * MS);
	n = drain(fd, last);
	assert_int_equal(n, 8);
	RUN_UNTIL((got = drain(fd, last), n += got, assert_in_range(got, 0, 2 * PACED / 200), n == PACED));
	assert_int_equal(stats->requests, PACED);
	assert_true(now_ns() - start_ns > 800 * MS);
	close(fd);
}

static void pacing_sends_no_less_than_burst_at_a_time_and_leaves_no_timer(void **state)
{
	int fd = bound_socket(SOCK_DGRAM, "127.0.0.1", 0);
	uint64_t start_ns;
	unsigned int got;
	char last[64];

	udp_new_to(endpoint_at("127.0.0.1", port_of(fd)));
	for (int i = 0; i < 20; i++)
		put("a:1|c", 1);
	start_ns = now_ns();
	flush(udp, false, 3600000 * MS);
	assert_int_equal(drain(fd, last), 8);
	RUN_UNTIL((got = drain(fd, last)));
	assert_int_equal(got, 8);
	RUN_UNTIL((got = drain(fd, last)));
	assert_int_equal(got, 4);
	assert_true(now_ns() - start_ns >= 9 * MS);
	assert_true(exporter_is_idle(&world.exporter));
	assert_int_equal(sd_event_run(world.event, 50000), 0); /* nothing to do */
	close(fd);
}

static void an_unreachable_network_keeps_what_waits(void **state)
{
	/* Nothing leads to a broadcast address without asking for it: EACCES at connect(). */
	udp_new_to(endpoint_at("255.255.255.255", 8125));
	put("a:1|c", 3);
	flush(udp, false, 0);
	run_for(60);
	assert_true(stats->is_failing);
	assert_int_equal(exporter_waiting(&world.exporter).n_points, 3);
	assert_int_equal(stats->requests, 0);
	assert_int_equal(stats->points[POINTS_NOT_SENT], 0);
}

static void without_memory_a_datagram_is_refused_to_its_giver(void **state)
{
	int fd = bound_socket(SOCK_DGRAM, "127.0.0.1", 0);
	const struct sender_options options = udp_options_for(endpoint_at("127.0.0.1", port_of(fd)));
	uint8_t *data;

	assert_survives_failing_allocations(socket_new(&udp_ops, &world.exporter, &options, &udp),
					    udp = socket_free(udp));
	udp_new(&options);
	data = copy("a:1|c");
	exporter_account(&world.exporter, POINTS_PUSHED, 1);
	alloc_fail_at(0);
	assert_error(exporter_enqueue(&world.exporter, data, 5, 1), ENOMEM);
	assert_true(alloc_end());
	assert_int_equal(world.exporter.n_losses, 1);
	assert_int_equal(stats->points[POINTS_NOT_SENT], 1);
	assert_accounted(&world.exporter);
	assert_true(exporter_is_idle(&world.exporter));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(a_datagram_is_exported_when_no_refusal_came_back),
		RIG_TEST(what_is_refused_is_counted_and_what_comes_after_is_received),
		RIG_TEST(a_receiver_that_restarts_sees_the_same_sender),
		RIG_TEST(a_unix_socket_that_is_not_there_is_waited_for),
		RIG_TEST(a_unix_socket_that_was_replaced_is_left_at_the_next_flush),
		RIG_TEST(so_it_is_if_the_old_receiver_does_not_read),
		RIG_TEST(a_unix_socket_whose_path_leads_nowhere_is_left),
		RIG_TEST(a_unix_receiver_that_does_not_read_is_waited_for_within_the_queue),
		RIG_TEST(a_datagram_that_is_too_large_is_dropped_alone),
		RIG_TEST(over_the_bytes_of_the_queue_the_oldest_go),
		RIG_TEST(what_is_paced_arrives_at_a_receiver_with_the_default_buffer),
		RIG_TEST(pacing_sends_no_less_than_burst_at_a_time_and_leaves_no_timer),
		RIG_TEST(an_unreachable_network_keeps_what_waits),
		RIG_TEST(without_memory_a_datagram_is_refused_to_its_giver),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

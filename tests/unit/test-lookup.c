/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include <netdb.h>
#include <signal.h>
#include <sys/epoll.h>

#include "alloc.h"
#include "export/transport/lookup.h"

struct answer {
	sd_event_source *source;
	unsigned int n;
	struct lookup_answer got;
};

static int on_answer(sd_event_source *source, int fd, uint32_t revents, void *user)
{
	struct answer *answer = user;

	answer->n++;
	answer->got = lookup_read(fd);
	sd_event_source_disable_unref(source);
	return 0;
}

static int start(const struct endpoint *endpoint, struct answer *answer)
{
	int fd = lookup_start(endpoint, SOCK_STREAM);

	if (fd < 0)
		return fd;
	assert_true(sd_event_add_io(world.event, &answer->source, fd, EPOLLIN, on_answer, answer) >= 0);
	assert_true(sd_event_source_set_io_fd_own(answer->source, true) >= 0);
	return 0;
}

static void assert_address(const struct addresses *addresses, unsigned int i, const char *expected)
{
	char text[ADDRESS_TEXT_BYTES];

	assert_true(i < addresses->n);
	address_print(&addresses->items[i], text);
	assert_string_equal(text, expected);
}

static void a_numeric_host_is_known_at_once(void **state)
{
	struct endpoint v4 = endpoint_at("192.0.2.1", 8125), v6 = endpoint_at("2001:db8::1", 2003);
	struct addresses addresses = { 0 };

	assert_ok(addresses_of(&v4, SOCK_DGRAM, &addresses));
	assert_int_equal(addresses.n, 1);
	assert_address(&addresses, 0, "192.0.2.1:8125");
	assert_ok(addresses_of(&v6, SOCK_STREAM, &addresses));
	assert_int_equal(addresses.n, 1);
	assert_address(&addresses, 0, "[2001:db8::1]:2003");
}

static void a_unix_socket_is_known_at_once(void **state)
{
	struct endpoint file = { .path = "/run/statsd.sock" }, name = { .path = "@statsd" };
	struct addresses addresses = { 0 };
	const struct sockaddr_un *local = (const struct sockaddr_un *)&addresses.items[0].socket;

	assert_ok(addresses_of(&file, SOCK_DGRAM, &addresses));
	assert_int_equal(addresses.n, 1);
	assert_int_equal(addresses.items[0].size, offsetof(struct sockaddr_un, sun_path) + 17);
	assert_string_equal(local->sun_path, "/run/statsd.sock");

	assert_ok(addresses_of(&name, SOCK_DGRAM, &addresses));
	assert_int_equal(addresses.items[0].size, offsetof(struct sockaddr_un, sun_path) + 7);
	assert_memory_equal(local->sun_path, "\0statsd", 7);
}

static void a_name_has_to_be_looked_up(void **state)
{
	struct endpoint endpoint = endpoint_at("localhost", 8125);
	struct addresses addresses = { .n = 7 };

	assert_error(addresses_of(&endpoint, SOCK_DGRAM, &addresses), EAGAIN);
	assert_int_equal(addresses.n, 7);
}

static void a_name_is_looked_up_beside_the_loop(void **state)
{
	struct endpoint endpoint = endpoint_at("two.example", 2003);
	struct answer answer = { 0 };

	needs_hosts();
	hosts_write("127.0.0.1 two.example\n::1 two.example\n");
	assert_ok(start(&endpoint, &answer));
	assert_int_equal(answer.n, 0);
	RUN_UNTIL(answer.n);
	assert_int_equal(answer.got.error, 0);
	assert_int_equal(answer.got.addresses.n, 2);
	assert_address(&answer.got.addresses, 0, "[::1]:2003");
	assert_address(&answer.got.addresses, 1, "127.0.0.1:2003");
	run_for(20);
	assert_int_equal(answer.n, 1);

	/* And again: the file is read anew. */
	hosts_write("127.0.0.9 two.example\n");
	assert_ok(start(&endpoint, &answer));
	RUN_UNTIL(answer.n == 2);
	assert_int_equal(answer.got.addresses.n, 1);
	assert_address(&answer.got.addresses, 0, "127.0.0.9:2003");
}

static void no_more_addresses_are_kept_than_there_is_room_for(void **state)
{
	struct endpoint endpoint = endpoint_at("many.example", 2003);
	struct answer answer = { 0 };
	char text[2048] = "";

	needs_hosts();
	for (int i = 1; i <= 40; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "127.0.1.%d many.example\n", i);
	hosts_write(text);
	assert_ok(start(&endpoint, &answer));
	RUN_UNTIL(answer.n);
	assert_int_equal(answer.got.addresses.n, ADDRESSES_MAX);
}

static void a_name_that_is_none_is_an_error_in_words(void **state)
{
	struct endpoint endpoint = endpoint_at("a..b", 2003);
	struct answer answer = { 0 };

	assert_ok(start(&endpoint, &answer));
	RUN_UNTIL(answer.n);
	assert_int_equal(answer.got.error, EAI_NONAME);
	assert_int_equal(answer.got.addresses.n, 0);
	assert_string_equal(answer.got.problem, gai_strerror(EAI_NONAME));
}

/* The memory of each is freed by its thread: a leak is an error of the run under ASan. */
static void a_lookup_may_be_given_up(void **state)
{
	struct endpoint endpoint = endpoint_at("localhost", 2003);
	struct answer answer = { 0 };

	for (int i = 0; i < 50; i++) {
		assert_ok(start(&endpoint, &answer));
		if (i % 2)
			usleep(1000);
		sd_event_source_disable_unref(answer.source);
	}
	run_for(50);
	assert_int_equal(answer.n, 0);
}

/* The loop takes it by signalfd; a thread in which it is not blocked would die of it. */
static void a_signal_does_not_find_the_thread(void **state)
{
	struct endpoint endpoint = endpoint_at("localhost", 2003);
	struct answer answer = { 0 };
	sigset_t set, before;

	assert_ok(start(&endpoint, &answer));
	RUN_UNTIL(answer.n);
	/* The mask of the one who asks is as it was. */
	sigemptyset(&set);
	assert_ok(sigprocmask(SIG_SETMASK, NULL, &before));
	assert_int_equal(sigismember(&before, SIGTERM), 0);
	sigaddset(&set, SIGTERM);
	assert_ok(sigprocmask(SIG_BLOCK, &set, NULL));
	for (unsigned int i = 1; i <= 20; i++) {
		assert_ok(start(&endpoint, &answer));
		assert_ok(kill(getpid(), SIGTERM));
		RUN_UNTIL(answer.n == i + 1);
	}
	assert_int_equal(sigwaitinfo(&set, NULL), SIGTERM);
	assert_ok(sigprocmask(SIG_SETMASK, &before, NULL));
}

static void without_memory_there_is_no_lookup(void **state)
{
	struct endpoint endpoint = endpoint_at("localhost", 2003);
	struct answer answer = { 0 };

	alloc_fail_at(0);
	assert_error(start(&endpoint, &answer), ENOMEM);
	assert_true(alloc_end());
	assert_ok(start(&endpoint, &answer));
	RUN_UNTIL(answer.n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(a_numeric_host_is_known_at_once),
		RIG_TEST(a_unix_socket_is_known_at_once),
		RIG_TEST(a_name_has_to_be_looked_up),
		RIG_TEST(a_name_is_looked_up_beside_the_loop),
		RIG_TEST(no_more_addresses_are_kept_than_there_is_room_for),
		RIG_TEST(a_name_that_is_none_is_an_error_in_words),
		RIG_TEST(a_lookup_may_be_given_up),
		RIG_TEST(a_signal_does_not_find_the_thread),
		RIG_TEST(without_memory_there_is_no_lookup),
	};
	int failed;

	hosts_begin();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	hosts_end();
	return failed;
}

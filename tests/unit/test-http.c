/* SPDX-License-Identifier: Apache-2.0 */
/* What most servers may do to a client is in tests/peers/scripted; here is what needs none, or a clock. */
#include "rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "export/transport/http.h"
#include "export/transport/retry-after.h"
#include "util/cleanup.h"
#include "util/duration.h"
#include "loopback.h"

struct client {
	sd_event *event;
	struct http_client *client;
	unsigned int n_answers;
	enum http_failure failure;
};

static void client_to(struct client *client, const char *url, long lifetime_s)
{
	const struct http_options options = { .url = url, .user_agent = "x", .lifetime_s = lifetime_s,
					      .timeout_ns = 60 * NS_PER_S, .limit_response_bytes = 100 };

	*client = (struct client){ 0 };
	assert_true(sd_event_new(&client->event) >= 0);
	assert_ok(http_client_new(client->event, &options, &client->client));
}

static void client_init(struct client *client)
{
	client_to(client, "http://127.0.0.1:1/", 60);
}

static void client_done(struct client *client)
{
	http_client_free(client->client);
	sd_event_unref(client->event);
}

static void on_answer(void *user, const struct http_answer *answer)
{
	struct client *client = user;

	client->failure = answer->failure;
	assert_int_equal(answer->status, 0);
	/* It may post again from here. */
	if (++client->n_answers == 1)
		assert_ok(http_client_post(client->client, (const uint8_t *)"x", 1, on_answer, client));
	else
		sd_event_exit(client->event, 0);
}

static void a_refused_connection_is_an_answer_from_the_loop(void **state)
{
	struct client client;

	client_init(&client);
	assert_ok(http_client_post(client.client, (const uint8_t *)"x", 1, on_answer, &client));
	assert_int_equal(client.n_answers, 0);
	assert_int_equal(sd_event_loop(client.event), 0);
	assert_int_equal(client.n_answers, 2);
	assert_int_equal(client.failure, HTTP_UNREACHED);
	client_done(&client);
}

static void a_client_may_be_freed_with_a_request_on_its_way(void **state)
{
	struct client client;

	client_init(&client);
	assert_ok(http_client_post(client.client, (const uint8_t *)"x", 1, on_answer, &client));
	sd_event_run(client.event, 0);
	client_done(&client);
	assert_true(client.n_answers <= 1);
}

static void free_from_answer(void *user, const struct http_answer *answer)
{
	struct client *client = user;

	client->client = http_client_free(client->client);
	sd_event_exit(client->event, 0);
}

static void a_client_may_be_freed_from_its_answer(void **state)
{
	struct client client;

	client_init(&client);
	assert_ok(http_client_post(client.client, (const uint8_t *)"x", 1, free_from_answer, &client));
	assert_int_equal(sd_event_loop(client.event), 0);
	client_done(&client);
}

/* Answers each request of one byte with 429 and a Retry-After, and keeps the connection. */
struct server {
	int listener, fd;
	unsigned int n_accepted;
	char url[64], request[4096];
	size_t size;
	const char *retry_after;
};

static void server_init(struct server *server, const char *address, unsigned int port, const char *name)
{
	*server = (struct server){ .fd = -1, .retry_after = "0", .listener = listener(address, port) };
	snprintf(server->url, sizeof(server->url), "http://%s:%u/", name, port_of(server->listener));
}

static void server_done(struct server *server)
{
	close(server->fd);
	close(server->listener);
}

static void serve(struct server *server)
{
	int fd = accept4(server->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	ssize_t n;

	if (fd >= 0) {
		if (server->fd >= 0)
			close(server->fd);
		server->fd = fd;
		server->n_accepted++;
		server->size = 0;
	}
	n = recv(server->fd, server->request + server->size, sizeof(server->request) - 1 - server->size, 0);
	server->size += n > 0 ? (size_t)n : 0;
	server->request[server->size] = '\0';
	if (!strstr(server->request, "\r\n\r\nx"))
		return;
	dprintf(server->fd, "HTTP/1.1 429 Slow\r\nContent-Length: 0\r\nRetry-After: %s\r\n\r\n", server->retry_after);
	server->size = 0;
}

static void keep(void *user, const struct http_answer *answer)
{
	assert_int_equal(answer->status, 429);
	*(uint64_t *)user = answer->retry_after_ns;
}

/* Posts once, to a name of two servers; which of them has answered. */
static const struct server *post_to_one(struct client *client, struct server *first, struct server *second)
{
	uint64_t delay_ns = UINT64_MAX;

	first->retry_after = "1";
	second->retry_after = "2";
	assert_ok(http_client_post(client->client, (const uint8_t *)"x", 1, keep, &delay_ns));
	while (delay_ns == UINT64_MAX) {
		assert_true(sd_event_run(client->event, 1000) >= 0);
		serve(first);
		serve(second);
	}
	return delay_ns == NS_PER_S ? first : second;
}

/* Posts once; what Retry-After became. */
static uint64_t post(struct client *client, struct server *server)
{
	uint64_t delay_ns = UINT64_MAX;

	assert_ok(http_client_post(client->client, (const uint8_t *)"x", 1, keep, &delay_ns));
	while (delay_ns == UINT64_MAX) {
		assert_true(sd_event_run(client->event, 1000) >= 0);
		serve(server);
	}
	return delay_ns;
}

static void retry_after_is_of_this_answer_and_capped(void **state)
{
	static const struct {
		const char *text;
		uint64_t want_s;
	} cases[] = {
		{ "0", 0 },
		{ "7", 7 },
		{ "300", 300 },
		{ "301", 300 },
		{ "100000", 300 },
		{ "Fri, 31 Dec 2100 23:59:59 GMT", 300 },
		{ "1.5", 0 },
		{ "2", 2 },
		{ "2026-11-27T15:18:58Z", 0 },
		{ "\t 3 \t", 3 },
		{ "", 0 },
		{ "4\r\nX-Retry-After: 5\r\nRetry-After: x", 4 },
		{ "0\r\nretry-after: 6", 6 },
	};
	time_t then = time(NULL) + 200;
	struct server server;
	struct client client;
	uint64_t delay_ns;
	char date[64];

	server_init(&server, "127.0.0.1", 0, "127.0.0.1");
	client_to(&client, server.url, 3600);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		server.retry_after = cases[i].text;
		assert_int_equal(post(&client, &server), cases[i].want_s * NS_PER_S);
	}
	strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", gmtime(&then));
	server.retry_after = date;
	delay_ns = post(&client, &server);
	assert_true(delay_ns > 0 && delay_ns <= 200 * NS_PER_S);
	assert_int_equal(server.n_accepted, 1);
	client_done(&client);
	server_done(&server);
}

static void retry_after_of_an_earlier_head_is_forgotten(void **state)
{
	char lines[][32] = { "HTTP/1.1 100 Continue\r\n", "Retry-After: 9\r\n", "\r\n", "HTTP/1.1 503 x\r\n" };
	struct retry_after retry_after = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		size_t size = strlen(lines[i]);

		assert_int_equal(retry_after_on_line(lines[i], 1, size, &retry_after), size);
		assert_int_equal(retry_after.delay_ns, i == 1 || i == 2 ? 9 * NS_PER_S : 0);
	}
}

static void a_connection_is_not_used_for_longer_than_its_lifetime(void **state)
{
	struct server server;
	struct client client;

	server_init(&server, "127.0.0.1", 0, "127.0.0.1");
	client_to(&client, server.url, 1);
	post(&client, &server);
	assert_int_equal(server.n_accepted, 1);
	usleep(1100000);
	assert_true(sd_event_run(client.event, 0) >= 0); /* which tells the time */
	post(&client, &server);
	assert_int_equal(server.n_accepted, 2);
	client_done(&client);
	server_done(&server);
}

static void a_name_is_looked_up_again_when_its_connection_has_reached_its_lifetime(void **state)
{
	struct server old, new;
	struct client client;

	needs_hosts();
	hosts_write("127.0.0.2 moves.example\n");
	server_init(&old, "127.0.0.2", 0, "moves.example");
	server_init(&new, "127.0.0.3", port_of(old.listener), "moves.example");
	client_to(&client, old.url, 3);
	assert_ptr_equal(post_to_one(&client, &old, &new), &old);
	hosts_write("127.0.0.3 moves.example\n");
	assert_ptr_equal(post_to_one(&client, &old, &new), &old);
	assert_int_equal(old.n_accepted, 1);
	usleep(3100000);
	assert_true(sd_event_run(client.event, 0) >= 0); /* which tells the time */
	assert_ptr_equal(post_to_one(&client, &old, &new), &new);
	client_done(&client);
	server_done(&old);
	server_done(&new);
}

static void after_a_failure_the_next_address_has_its_turn_on_a_new_connection(void **state)
{
	struct server first, second;
	struct client client;

	needs_hosts();
	hosts_write("127.0.0.2 two.example\n127.0.0.3 two.example\n");
	server_init(&first, "127.0.0.2", 0, "two.example");
	server_init(&second, "127.0.0.3", port_of(first.listener), "two.example");
	client_to(&client, first.url, 3600);
	assert_ptr_equal(post_to_one(&client, &first, &second), &first);
	assert_ptr_equal(post_to_one(&client, &first, &second), &first);
	assert_int_equal(first.n_accepted, 1);
	http_client_move_on(client.client);
	assert_ptr_equal(post_to_one(&client, &first, &second), &second);
	http_client_move_on(client.client);
	assert_ptr_equal(post_to_one(&client, &first, &second), &first);
	assert_int_equal(first.n_accepted, 2);
	assert_int_equal(second.n_accepted, 1);

	/* It has no other address: a new connection is all that is left. */
	hosts_write("127.0.0.2 two.example\n");
	http_client_move_on(client.client);
	assert_ptr_equal(post_to_one(&client, &first, &second), &first);
	assert_int_equal(first.n_accepted, 3);
	client_done(&client);
	server_done(&first);
	server_done(&second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_refused_connection_is_an_answer_from_the_loop),
		cmocka_unit_test(a_client_may_be_freed_with_a_request_on_its_way),
		cmocka_unit_test(a_client_may_be_freed_from_its_answer),
		cmocka_unit_test(retry_after_is_of_this_answer_and_capped),
		cmocka_unit_test(retry_after_of_an_earlier_head_is_forgotten),
		cmocka_unit_test(a_connection_is_not_used_for_longer_than_its_lifetime),
		cmocka_unit_test(a_name_is_looked_up_again_when_its_connection_has_reached_its_lifetime),
		cmocka_unit_test(after_a_failure_the_next_address_has_its_turn_on_a_new_connection),
	};
	int failed;

	need_loopback();
	hosts_begin();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	hosts_end();
	return failed;
}

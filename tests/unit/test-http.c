/* SPDX-License-Identifier: Apache-2.0 */
/* What most servers may do to a client is in tests/peers/scripted; here is what needs none, or a clock. */
#include "test.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "export/transport/http.h"
#include "util/cleanup.h"
#include "util/duration.h"
#include "loopback.h"

struct world {
	sd_event *event;
	struct http_client *client;
	unsigned int n_answers;
	enum http_failure failure;
};

static void world_to(struct world *world, const char *url, long lifetime_s)
{
	const struct http_options options = { .url = url, .user_agent = "x", .lifetime_s = lifetime_s,
					      .timeout_ns = 60 * NS_PER_S, .limit_response_bytes = 100 };

	*world = (struct world){ 0 };
	assert_true(sd_event_new(&world->event) >= 0);
	assert_ok(http_client_new(world->event, &options, &world->client));
}

static void world_init(struct world *world)
{
	world_to(world, "http://127.0.0.1:1/", 60);
}

static void world_done(struct world *world)
{
	http_client_free(world->client);
	sd_event_unref(world->event);
}

static void on_answer(void *user, const struct http_answer *answer)
{
	struct world *world = user;

	world->failure = answer->failure;
	assert_int_equal(answer->status, 0);
	/* It may post again from here. */
	if (++world->n_answers == 1)
		assert_ok(http_client_post(world->client, (const uint8_t *)"x", 1, on_answer, world));
	else
		sd_event_exit(world->event, 0);
}

static void a_refused_connection_is_an_answer_from_the_loop(void **state)
{
	struct world world;

	world_init(&world);
	assert_ok(http_client_post(world.client, (const uint8_t *)"x", 1, on_answer, &world));
	assert_int_equal(world.n_answers, 0);
	assert_int_equal(sd_event_loop(world.event), 0);
	assert_int_equal(world.n_answers, 2);
	assert_int_equal(world.failure, HTTP_UNREACHED);
	world_done(&world);
}

static void a_client_may_be_freed_with_a_request_on_its_way(void **state)
{
	struct world world;

	world_init(&world);
	assert_ok(http_client_post(world.client, (const uint8_t *)"x", 1, on_answer, &world));
	sd_event_run(world.event, 0);
	world_done(&world);
	assert_true(world.n_answers <= 1);
}

static void free_from_answer(void *user, const struct http_answer *answer)
{
	struct world *world = user;

	world->client = http_client_free(world->client);
	sd_event_exit(world->event, 0);
}

static void a_client_may_be_freed_from_its_answer(void **state)
{
	struct world world;

	world_init(&world);
	assert_ok(http_client_post(world.client, (const uint8_t *)"x", 1, free_from_answer, &world));
	assert_int_equal(sd_event_loop(world.event), 0);
	world_done(&world);
}

/* Answers each request of one byte with 429 and a Retry-After, and keeps the connection. */
struct server {
	int listener, fd;
	unsigned int n_accepted;
	char url[64], request[4096];
	size_t size;
	const char *retry_after;
};

static void server_init(struct server *server)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);

	*server = (struct server){ .fd = -1, .retry_after = "0" };
	server->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_ok(bind(server->listener, (struct sockaddr *)&address, size));
	assert_ok(listen(server->listener, 8));
	assert_ok(getsockname(server->listener, (struct sockaddr *)&address, &size));
	snprintf(server->url, sizeof(server->url), "http://127.0.0.1:%u/", ntohs(address.sin_port));
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

/* Posts once; what Retry-After became. */
static uint64_t post(struct world *world, struct server *server)
{
	uint64_t delay_ns = UINT64_MAX;

	assert_ok(http_client_post(world->client, (const uint8_t *)"x", 1, keep, &delay_ns));
	while (delay_ns == UINT64_MAX) {
		assert_true(sd_event_run(world->event, 1000) >= 0);
		serve(server);
	}
	return delay_ns;
}

static void retry_after_is_seconds_or_a_date_and_capped(void **state)
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
		{ "Friday, 31-Dec-2100 23:59:59 GMT", 300 },
		{ "Fri Dec 31 23:59:59 2100", 300 },
		{ "Sun, 06 Nov 1994 08:49:37 GMT", 0 },
		{ "-5", 0 },
		{ "soon", 0 },
		{ "", 0 },
	};
	time_t then = time(NULL) + 200;
	struct server server;
	struct world world;
	uint64_t delay_ns;
	char date[64];

	server_init(&server);
	world_to(&world, server.url, 3600);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		server.retry_after = cases[i].text;
		assert_int_equal(post(&world, &server), cases[i].want_s * NS_PER_S);
	}
	strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", gmtime(&then));
	server.retry_after = date;
	delay_ns = post(&world, &server);
	assert_true(delay_ns > 0 && delay_ns <= 200 * NS_PER_S);
	assert_int_equal(server.n_accepted, 1);
	world_done(&world);
	server_done(&server);
}

static void a_connection_is_not_used_for_longer_than_its_lifetime(void **state)
{
	struct server server;
	struct world world;

	if (curl_version_info(CURLVERSION_NOW)->version_num < 0x075000) {
		print_message("needs libcurl 7.80\n");
		skip();
	}
	server_init(&server);
	world_to(&world, server.url, 1);
	post(&world, &server);
	assert_int_equal(server.n_accepted, 1);
	usleep(2100000); /* libcurl counts whole seconds */
	post(&world, &server);
	assert_int_equal(server.n_accepted, 2);
	world_done(&world);
	server_done(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_refused_connection_is_an_answer_from_the_loop),
		cmocka_unit_test(a_client_may_be_freed_with_a_request_on_its_way),
		cmocka_unit_test(a_client_may_be_freed_from_its_answer),
		cmocka_unit_test(retry_after_is_seconds_or_a_date_and_capped),
		cmocka_unit_test(a_connection_is_not_used_for_longer_than_its_lifetime),
	};

	need_loopback();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

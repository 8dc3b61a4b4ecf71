/* SPDX-License-Identifier: Apache-2.0 */
/* What a server does to a client is in tests/peers/scripted; here is what needs none. */
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <systemd/sd-event.h>

#include "export/transport/file-mark.h"
#include "export/transport/http.h"
#include "util/cleanup.h"

static void urls_are_checked(void **state)
{
	static const char *const good[] = { "http://localhost", "https://host:4318/x?y", "http://[::1]:4318/",
					    "HTTP://HOST" };
	static const char *const bad[] = { "", "localhost", "localhost:4318", "ftp://host", "http://", "http://a b/",
					   "file:///etc/passwd" };
	const char *complaint;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_ok(http_url_check(good[i], &complaint));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		complaint = NULL;
		assert_error(http_url_check(bad[i], &complaint), EINVAL);
		assert_non_null(complaint);
	}
}

static void a_url_of_grpc_is_told_where_to_go(void **state)
{
	static const char *const urls[] = { "grpc://localhost:4317", "grpcs://host" };

	for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
		const char *complaint = NULL;

		assert_error(http_url_check(urls[i], &complaint), EINVAL);
		assert_string_equal(complaint, "this speaks OTLP/HTTP and no gRPC, write http://HOST:4318 or https://HOST:4318");
	}
}

static void it_is_known_where_a_url_leads(void **state)
{
	static const struct {
		const char *url;
		struct http_place want;
	} cases[] = {
		{ "http://localhost:4318", { .is_local = true, .port = 4318 } },
		{ "http://LocalHost", { .is_local = true, .port = 80 } },
		{ "http://a.localhost", { .is_local = true, .port = 80 } },
		{ "http://notlocalhost", { .port = 80 } },
		{ "http://127.1.2.3:1", { .is_local = true, .port = 1 } },
		{ "http://127.example.com", { .port = 80 } },
		{ "http://[::1]:4317/x", { .is_local = true, .port = 4317 } },
		{ "http://[::2]/", { .port = 80 } },
		{ "https://user:word@host/127.0.0.1", { .is_encrypted = true, .has_password = true, .port = 443 } },
		{ "nothing", { 0 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct http_place place = http_url_place(cases[i].url);

		assert_int_equal(place.is_local, cases[i].want.is_local);
		assert_int_equal(place.is_encrypted, cases[i].want.is_encrypted);
		assert_int_equal(place.has_password, cases[i].want.has_password);
		assert_int_equal(place.port, cases[i].want.port);
	}
}

struct world {
	sd_event *event;
	struct http_client *client;
	unsigned int n_answers;
	enum http_failure failure;
};

static const struct http_options nobody = { .url = "http://127.0.0.1:1/", .user_agent = "x", .content_type = "x/y",
					    .timeout_ns = 1000000000, .limit_response_bytes = 100 };

static void world_init(struct world *world)
{
	*world = (struct world){ 0 };
	assert_true(sd_event_new(&world->event) >= 0);
	assert_ok(http_client_new(world->event, &nobody, &world->client));
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
	/* It may post again from here, and only once at a time. */
	if (++world->n_answers == 1) {
		assert_ok(http_client_post(world->client, NULL, 0, (const uint8_t *)"x", 1, on_answer, world));
		assert_error(http_client_post(world->client, NULL, 0, (const uint8_t *)"x", 1, on_answer, world), EBUSY);
	} else {
		sd_event_exit(world->event, 0);
	}
}

static void a_refused_connection_is_an_answer_from_the_loop(void **state)
{
	struct world world;

	world_init(&world);
	assert_ok(http_client_post(world.client, NULL, 0, (const uint8_t *)"x", 1, on_answer, &world));
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
	assert_ok(http_client_post(world.client, NULL, 0, (const uint8_t *)"x", 1, on_answer, &world));
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
	assert_ok(http_client_post(world.client, NULL, 0, (const uint8_t *)"x", 1, free_from_answer, &world));
	assert_int_equal(sd_event_loop(world.event), 0);
	world_done(&world);
}

static void a_file_that_is_written_or_replaced_is_noticed(void **state)
{
	char path[] = "/tmp/test-http-XXXXXX", other[sizeof(path) + 2];
	struct file_mark mark = { 0 };
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_true(file_mark_look(&mark, path));
	assert_false(file_mark_look(&mark, path));
	assert_int_equal(write(fd, "x", 1), 1);
	assert_true(file_mark_look(&mark, path));
	snprintf(other, sizeof(other), "%s.2", path);
	fclose(fopen(other, "w"));
	assert_int_equal(rename(other, path), 0);
	assert_true(file_mark_look(&mark, path));
	unlink(path);
	assert_false(file_mark_look(&mark, path));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(urls_are_checked),
		cmocka_unit_test(a_url_of_grpc_is_told_where_to_go),
		cmocka_unit_test(it_is_known_where_a_url_leads),
		cmocka_unit_test(a_refused_connection_is_an_answer_from_the_loop),
		cmocka_unit_test(a_client_may_be_freed_with_a_request_on_its_way),
		cmocka_unit_test(a_client_may_be_freed_from_its_answer),
		cmocka_unit_test(a_file_that_is_written_or_replaced_is_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

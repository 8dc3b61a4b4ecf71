/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>

#include "export/transport/url.h"
#include "util/cleanup.h"

static void urls_are_checked(void **state)
{
	static const char *const good[] = { "http://localhost", "https://host:4318/x?y", "http://[::1]:4318/",
					    "HTTP://HOST" };
	static const char *const bad[] = { "", "localhost", "localhost:4318", "ftp://host", "http://", "http://a b/",
					   "file:///etc/passwd" };
	const char *complaint;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_ok(url_check(good[i], &complaint));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		complaint = NULL;
		assert_error(url_check(bad[i], &complaint), EINVAL);
		assert_non_null(complaint);
	}
}

static void a_url_of_grpc_is_told_where_to_go(void **state)
{
	static const char *const urls[] = { "grpc://localhost:4317", "grpcs://host" };

	for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
		const char *complaint = NULL;

		assert_error(url_check(urls[i], &complaint), EINVAL);
		assert_string_equal(complaint, "bpfpush sends OTLP/HTTP, not gRPC; write http://HOST:4318 or https://HOST:4318");
	}
}

static void a_wrong_port_is_called_one(void **state)
{
	static const char *const urls[] = { "http://h:99999", "https://[::1]:65536/v1", "http://h:port" };

	for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
		const char *complaint = NULL;

		assert_error(url_check(urls[i], &complaint), EINVAL);
		assert_string_equal(complaint, "the port must be a number from 1 to 65535");
	}
}

static void it_is_known_where_a_url_leads(void **state)
{
	static const struct {
		const char *url;
		struct url_place want;
		bool is_encrypted;
	} cases[] = {
		{ "http://localhost:4318", { .is_local = true, .port = 4318 } },
		{ "http://LocalHost", { .is_local = true, .port = 80 } },
		{ "http://a.localhost", { .is_local = true, .port = 80 } },
		{ "http://notlocalhost", { .port = 80 } },
		{ "http://127.1.2.3:1", { .is_local = true, .port = 1 } },
		{ "http://127.example.com", { .port = 80 } },
		{ "http://[::1]:4317/x", { .is_local = true, .port = 4317 } },
		{ "http://[::2]/", { .port = 80 } },
		{ "https://user:word@host/127.0.0.1", { .has_password = true, .port = 443 }, true },
		{ "HTTPS://host", { .port = 443 }, true },
		{ "nothing", { 0 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct url_place place = url_place(cases[i].url);

		assert_int_equal(place.is_local, cases[i].want.is_local);
		assert_int_equal(url_is_encrypted(cases[i].url), cases[i].is_encrypted);
		assert_int_equal(place.has_password, cases[i].want.has_password);
		assert_int_equal(place.port, cases[i].want.port);
	}
}

static void no_secret_of_a_url_is_shown(void **state)
{
	static const struct {
		const char *url, *want;
	} cases[] = {
		{ "http://h:4318/v1/metrics", "http://h:4318/v1/metrics" },
		{ "https://me:a@b@h/x@y?token=z#w", "https://h/x@y" },
		{ "http://h?a@b", "http://h" },
		{ "http://h/#me:a@b", "http://h/" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(freep) char *text = url_public(cases[i].url);

		assert_string_equal(text, cases[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(urls_are_checked),
		cmocka_unit_test(a_url_of_grpc_is_told_where_to_go),
		cmocka_unit_test(a_wrong_port_is_called_one),
		cmocka_unit_test(it_is_known_where_a_url_leads),
		cmocka_unit_test(no_secret_of_a_url_is_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

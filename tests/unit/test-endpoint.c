/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <string.h>

#include "export/transport/lookup.h"
#include "util/cleanup.h"

static void parses_to(const char *text, const char *host, const char *service, const char *path)
{
	struct endpoint endpoint;
	const char *complaint = "";

	if (endpoint_parse(text, "8125", true, &endpoint, &complaint))
		fail_msg("%s: %s", text, complaint);
	assert_string_equal(endpoint.host, host);
	assert_string_equal(endpoint.service, service);
	assert_string_equal(endpoint.path, path);
}

static void is_refused(const char *text, bool allows_unix, const char *expected)
{
	struct endpoint endpoint = { .host = "as it was" };
	const char *complaint = "";

	assert_int_equal(endpoint_parse(text, "8125", allows_unix, &endpoint, &complaint), -EINVAL);
	assert_string_equal(complaint, expected);
	assert_string_equal(endpoint.host, "as it was");
}

static void a_host_may_have_a_port(void **state)
{
	parses_to("localhost", "localhost", "8125", "");
	parses_to("localhost:1", "localhost", "1", "");
	parses_to("statsd.example.org:65535", "statsd.example.org", "65535", "");
	parses_to("my_host-1.", "my_host-1.", "8125", "");
	parses_to("192.0.2.1:02003", "192.0.2.1", "2003", "");
}

static void an_address_of_ipv6_may_have_brackets_a_zone_and_a_port(void **state)
{
	parses_to("[::1]", "::1", "8125", "");
	parses_to("[::1]:2003", "::1", "2003", "");
	parses_to("[fe80::1%eth0.5]:2003", "fe80::1%eth0.5", "2003", "");
	parses_to("[::ffff:192.0.2.1]:9", "::ffff:192.0.2.1", "9", "");
}

static void a_unix_socket_is_a_path_or_a_name(void **state)
{
	char text[sizeof("unix:") + 107];

	parses_to("unix:/run/statsd.sock", "", "", "/run/statsd.sock");
	parses_to("unix:@statsd", "", "", "@statsd");
	parses_to("unix:/a path:with [everything]", "", "", "/a path:with [everything]");

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	memcpy(text, "unix:/", 6);
	parses_to(text, "", "", text + 5);
	is_refused("unix:/a", false, "write HOST:PORT; a unix socket cannot be used here");
}

static void the_path_of_a_unix_socket_has_a_bound(void **state)
{
	char text[sizeof("unix:") + 108];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	memcpy(text, "unix:/", 6);
	is_refused(text, true, "the path of a unix socket is longer than 107 bytes");
	is_refused("unix:", true, "after unix:, write an absolute path, or @ and a name");
	is_refused("unix:/", true, "after unix:, write an absolute path, or @ and a name");
	is_refused("unix:@", true, "after unix:, write an absolute path, or @ and a name");
	is_refused("unix:run/statsd", true, "after unix:, write an absolute path, or @ and a name");
}

static void a_bad_port_is_refused(void **state)
{
	static const char *const texts[] = { "a:", "a:0", "a:65536", "a:0x10", "a:http", "a:-1", "a: 1", "[::1]:", "[::1]:x",
					     "a:18446744073709551617" };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		is_refused(texts[i], true, "the port must be a number from 1 to 65535");
}

static void a_bad_host_is_refused(void **state)
{
	static const char *const brackets[] = { "[", "[]", "[::1", "[::1]2003", "[localhost]:1", "[::1%]:1", "[::1%a b]:1",
						"[1.2.3.4]:1", "[::1]]:1" };
	static const char *const colons[] = { "a:b:1", "::1", "::1:2003", "1:2:3", ":1:", "::1:65536:x", "fe80::1%2" };
	static const char *const names[] = { "a b", "a/b", "h\xc3\xb6st", "a,b:1", "*", "a]:1" };
	char text[300];

	for (size_t i = 0; i < ARRAY_SIZE(brackets); i++)
		is_refused(brackets[i], true, "write an IPv6 address as [ADDRESS] or [ADDRESS]:PORT");
	for (size_t i = 0; i < ARRAY_SIZE(colons); i++)
		is_refused(colons[i], true, "write HOST:PORT, or [ADDRESS]:PORT for an IPv6 address");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		is_refused(names[i], true, "a host name has only letters, digits, \"-\", \"_\" and \".\"");
	is_refused("", true, "the host before the port is missing");
	is_refused(":8125", true, "the host before the port is missing");
	is_refused("udp://localhost:8125", true, "write HOST:PORT, not a URL");
	memset(text, 'a', sizeof(text) - 1);
	text[256] = '\0';
	is_refused(text, true, "the host name is too long");
	text[255] = '\0';
	parses_to(text, text, "8125", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_host_may_have_a_port),
		cmocka_unit_test(an_address_of_ipv6_may_have_brackets_a_zone_and_a_port),
		cmocka_unit_test(a_unix_socket_is_a_path_or_a_name),
		cmocka_unit_test(the_path_of_a_unix_socket_has_a_bound),
		cmocka_unit_test(a_bad_port_is_refused),
		cmocka_unit_test(a_bad_host_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

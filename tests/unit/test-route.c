/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include "export/transport/route.h"

#define S (1000 * MS)

struct seen {
	unsigned int n;
	bool has_problem, has_moved;
};

static void on_looked_up(void *user, const char *problem, bool has_moved)
{
	struct seen *seen = user;

	seen->n++;
	seen->has_problem = problem;
	seen->has_moved = has_moved;
}

static struct route route_to(const char *host, struct seen *seen)
{
	struct route route = { .event = world.event, .endpoint = endpoint_at(host, 4318), .type = SOCK_STREAM,
			       .looked_up = on_looked_up, .user = seen };

	*seen = (struct seen){ 0 };
	route_init(&route);
	return route;
}

static void assert_tries(struct route *route, const char *expected)
{
	char text[ADDRESS_TEXT_BYTES] = "";
	const struct address *address = route_try(route);

	assert_true(!address == !expected);
	if (!expected)
		return;
	address_print(address, text);
	assert_string_equal(text, expected);
	route_print(route, text);
	assert_string_equal(text, expected);
}

static void an_address_needs_no_lookup(void **state)
{
	struct seen seen;
	struct route route = route_to("::1", &seen);

	assert_false(route.has_name);
	assert_tries(&route, "[::1]:4318");
	assert_tries(&route, NULL);
	route_skip(&route);
	route_begin(&route);
	assert_tries(&route, "[::1]:4318");
	route_done(&route);
}

static void each_address_is_tried_once_in_a_round_and_the_next_round_may_begin_elsewhere(void **state)
{
	struct seen seen;
	struct route route = route_to("three.example", &seen);

	needs_hosts();
	hosts_write("127.0.0.2 three.example\n127.0.0.3 three.example\n127.0.0.4 three.example\n");
	assert_true(route.has_name);
	assert_tries(&route, NULL);
	assert_ok(route_look_up(&route));
	assert_ok(route_look_up(&route)); /* one runs */
	RUN_UNTIL(seen.n);
	assert_false(seen.has_problem);
	assert_int_equal(route.addresses.n, 3);
	route_begin(&route);
	assert_tries(&route, "127.0.0.2:4318");
	assert_tries(&route, "127.0.0.3:4318");
	assert_tries(&route, "127.0.0.4:4318");
	assert_tries(&route, NULL);
	route_skip(&route);
	route_skip(&route);
	route_begin(&route);
	assert_tries(&route, "127.0.0.3:4318");

	/* It stays where it is, in the name's new list. */
	hosts_write("127.0.0.3 three.example\n127.0.0.4 three.example\n");
	assert_ok(route_look_up(&route));
	RUN_UNTIL(seen.n == 2);
	assert_false(seen.has_moved);
	assert_int_equal(route.current, 0);
	hosts_write("127.0.0.5 three.example\n");
	assert_ok(route_look_up(&route));
	RUN_UNTIL(seen.n == 3);
	assert_true(seen.has_moved);
	route_begin(&route);
	assert_tries(&route, "127.0.0.5:4318");

	/* Without an answer, the addresses of before stay. */
	hosts_write("");
	assert_ok(route_look_up(&route));
	RUN_UNTIL(seen.n == 4);
	assert_true(seen.has_problem);
	assert_false(seen.has_moved);
	route_begin(&route);
	assert_tries(&route, "127.0.0.5:4318");
	route_done(&route);
}

static void an_address_that_does_not_answer_leaves_time_for_the_others(void **state)
{
	static const struct {
		unsigned int n;
		uint64_t timeout_ns, want_ns;
	} cases[] = {
		{ 0, 10 * S, 10 * S }, { 1, 10 * S, 10 * S }, { 1, 0, 0 },	   { 2, 10 * S, 5 * S },
		{ 4, 10 * S, 5 * S / 2 }, { 16, 10 * S, S },	 { 4, S / 2, S / 2 }, { 2, 0, 10 * S },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct route route = { .addresses.n = cases[i].n };

		assert_int_equal(route_connect_ns(&route, cases[i].timeout_ns), cases[i].want_ns);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(an_address_needs_no_lookup),
		RIG_TEST(each_address_is_tried_once_in_a_round_and_the_next_round_may_begin_elsewhere),
		RIG_TEST(an_address_that_does_not_answer_leaves_time_for_the_others),
	};
	int failed;

	hosts_begin();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	hosts_end();
	return failed;
}

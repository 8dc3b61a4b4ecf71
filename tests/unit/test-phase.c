/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "util/cleanup.h"
#include "util/duration.h"
#include "util/phase.h"

#define INTERVAL_NS (10 * NS_PER_S)
#define N_MACHINES  10000
#define N_TENTHS    10

static void a_machine_has_one_moment_in_each_interval(void **state)
{
	uint64_t delay_ns = phase_delay_ns("a machine", INTERVAL_NS, 3 * NS_PER_S);
	uint64_t moment_ns = 3 * NS_PER_S + delay_ns;

	assert_true(delay_ns > 0 && delay_ns <= INTERVAL_NS);
	assert_int_equal(moment_ns % INTERVAL_NS, hash_text(HASH_STABLE_START, "a machine") % INTERVAL_NS);
	assert_int_equal(phase_delay_ns("a machine", INTERVAL_NS, moment_ns - 1), 1);
	assert_int_equal(phase_delay_ns("a machine", INTERVAL_NS, moment_ns), INTERVAL_NS);
	assert_int_equal(phase_delay_ns("a machine", INTERVAL_NS, moment_ns + 1), INTERVAL_NS - 1);
}

/* A tenth has 1000 of 10 000 machines, give or take 30 (one standard deviation), whatever their ids look like. */
static void machines_that_start_together_are_spread_evenly(void **state)
{
	const char *const parts[][2] = { { "machine-", "" }, { "web-", ".example.com" },
					 { "", "c0de-7f3a-5c1e-9d42-0b6e8a1f4c77" } };

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		unsigned int n[N_TENTHS] = { 0 };

		for (unsigned int machine = 0; machine < N_MACHINES; machine++) {
			char id[64];

			snprintf(id, sizeof(id), "%s%04x%s", parts[i][0], machine, parts[i][1]);
			n[(phase_delay_ns(id, INTERVAL_NS, 0) - 1) / (INTERVAL_NS / N_TENTHS)]++;
		}
		for (size_t tenth = 0; tenth < N_TENTHS; tenth++)
			assert_in_range(n[tenth], N_MACHINES / N_TENTHS - 150, N_MACHINES / N_TENTHS + 150);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_machine_has_one_moment_in_each_interval),
		cmocka_unit_test(machines_that_start_together_are_spread_evenly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The shipped pairs, opened and given up again in every way; tests/check/collector has the wrong ones. */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "alloc.h"
#include "collector/collector.h"

static const char *const names[] = { "cgroup", "fileio", "memory", "network", "scheduler", "syscalls", "tcpstate" };

static int open_once(struct labels *labels, const char *name)
{
	_cleanup_(collector_freep) struct collector *collector = NULL;
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	int err = collector_open(SHIPPED, name, labels, 0, &diag, &collector);

	if (!err)
		collector_check(collector, &diag);
	/* Too little memory is never said to be somebody's mistake. */
	assert_int_equal(diag.n_errors, 0);
	return err;
}

static void a_failed_allocation_is_an_error_and_no_leak(void **state)
{
	struct labels *labels;

	assert_ok(labels_new(0, &labels));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_survives_failing_allocations(open_once(labels, names[i]), );
	labels_free(labels);
}

static void parameters_are_set_by_name_or_refused_with_their_place(void **state)
{
	_cleanup_(collector_freep) struct collector *collector = NULL;
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	struct labels *labels;

	assert_ok(labels_new(0, &labels));
	assert_ok(collector_open(SHIPPED, "syscalls", labels, 0, &diag, &collector));
	assert_ok(collector_set(collector, "per_process", "yes", "c", 1, &diag));
	assert_ok(collector_set(collector, "duration", "read, futex", "c", 2, &diag));
	assert_int_equal(diag.n_errors, 0);
	assert_ok(collector_set(collector, "per_proces", "yes", "c", 3, &diag));
	assert_ok(collector_set(collector, "per_process", "perhaps", "c", 4, &diag));
	assert_ok(collector_set(collector, "enabledd", "yes", "c", 5, &diag));
	assert_string_equal(buf_text(&diag.text), "c:3: unknown setting \"per_proces\": did you mean \"per_process\"?\n"
						  "c:4: per_process = perhaps: is neither yes nor no\n"
						  "c:5: unknown setting \"enabledd\": did you mean \"enabled\"?\n");
	collector_free(collector);
	collector = NULL;
	labels_free(labels);
}

static void before_the_start_there_is_no_kernel_memory(void **state)
{
	_cleanup_(collector_freep) struct collector *collector = NULL;
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	struct collector_map map;
	size_t n_maps = 0;
	struct labels *labels;

	assert_ok(labels_new(0, &labels));
	assert_ok(collector_open(SHIPPED, "memory", labels, 0, &diag, &collector));
	assert_string_equal(collector->name, "memory");
	assert_int_equal(collector->n_metrics, 3);
	for (; collector_map(collector, n_maps, &map); n_maps++)
		assert_int_equal(collector_map_kernel_bytes(&map), 0);
	assert_true(n_maps >= 3);
	assert_error(collector_dump(collector, "nonsense", stdout), EINVAL);
	collector_free(collector);
	collector = NULL;
	labels_free(labels);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failed_allocation_is_an_error_and_no_leak),
		cmocka_unit_test(parameters_are_set_by_name_or_refused_with_their_place),
		cmocka_unit_test(before_the_start_there_is_no_kernel_memory),
	};

	programs_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

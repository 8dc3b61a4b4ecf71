/* SPDX-License-Identifier: Apache-2.0 */
/* The shipped collectors, opened and given up again in every way; tests/check/collector has the wrong ones. */
#include "test.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "alloc.h"
#include "collector/collector.h"
#include "collector/start.h"

static const struct label_choice choice;

static const char *const names[] = { "cgroup", "fileio", "memory", "network", "scheduler", "syscalls", "tcpstate", "usage" };
/* The same; those of a pair share an object. */
static const char *const pairs[][2] = {
	{ "fileio", "memory" },
	{ "scheduler", "syscalls" },
	{ "network", "tcpstate" },
	{ "cgroup" },
	{ "usage" },
};

static int open_shipped(const char *name, struct labels *labels, struct diag *diag, struct collector **ret_collector)
{
	const struct collector_options options = { .labels = labels };

	return collector_open(SHIPPED, name, &options, diag, ret_collector);
}

static int open_both(struct labels *labels, const char *const pair[2])
{
	_cleanup_(collector_freep) struct collector *first = NULL;
	_cleanup_(collector_freep) struct collector *second = NULL;
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	const struct collector_options options = { .labels = labels, .others = &first, .n_others = 1 };
	int err = open_shipped(pair[0], labels, &diag, &first);

	if (!err && pair[1])
		err = collector_open(SHIPPED, pair[1], &options, &diag, &second);
	if (second)
		assert_ptr_equal(first->object, second->object);
	/* Too little memory is never said to be somebody's mistake. */
	assert_int_equal(diag.n_errors, 0);
	return err;
}

static void a_failed_allocation_is_an_error_and_no_leak(void **state)
{
	struct labels *labels;

	assert_ok(labels_new(0, &choice, &labels));
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		assert_survives_failing_allocations(open_both(labels, pairs[i]), );
	labels_free(labels);
}

static void parameters_are_set_by_name_or_refused_with_their_place(void **state)
{
	_cleanup_(collector_freep) struct collector *collector = NULL;
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	struct labels *labels;

	assert_ok(labels_new(0, &choice, &labels));
	assert_ok(open_shipped("syscalls", labels, &diag, &collector));
	assert_ok(collector_set(collector, &(struct assignment){ "per_process", "yes", "c", 1, 0 }, &diag));
	assert_ok(collector_set(collector, &(struct assignment){ "duration", "read, futex", "c", 2, 0 }, &diag));
	assert_int_equal(diag.n_errors, 0);
	assert_ok(collector_set(collector, &(struct assignment){ "per_proces", "yes", "c", 3, 0 }, &diag));
	assert_ok(collector_set(collector, &(struct assignment){ "per_process", "perhaps", "c", 4, 0 }, &diag));
	assert_ok(collector_set(collector, &(struct assignment){ "enabledd", "yes", "c", 5, 0 }, &diag));
	assert_string_equal(buf_text(&diag.text), "c:3: unknown setting \"per_proces\": did you mean \"per_process\"?\n"
						  "c:4: per_process = perhaps: is neither yes nor no\n"
						  "c:5: unknown setting \"enabledd\": did you mean \"enabled\"?\n");
	collector_free(collector);
	collector = NULL;
	labels_free(labels);
}

static void copy_file(const char *name, const char *to)
{
	char from[4096], block[65536];
	_cleanup_(fclosep) FILE *in = NULL;
	_cleanup_(fclosep) FILE *out = fopen(to, "w");
	size_t n;

	snprintf(from, sizeof(from), "%s/%s", SHIPPED, name);
	in = fopen(from, "r");
	assert_true(in && out);
	while ((n = fread(block, 1, sizeof(block), in)))
		assert_int_equal(fwrite(block, 1, n, out), n);
}

static void what_was_checked_is_loaded_whatever_becomes_of_the_file(void **state)
{
	_cleanup_(collector_freep) struct collector *collector = NULL;
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	char directory[] = "/tmp/bpfpush-test-XXXXXX", conf[64], path[64];
	struct collector_options options = { 0 };
	struct bpf_object *again = NULL;

	assert_non_null(mkdtemp(directory));
	snprintf(conf, sizeof(conf), "%s/cgroup.conf", directory);
	snprintf(path, sizeof(path), "%s/cgroup.bpf.o", directory);
	copy_file("cgroup.conf", conf);
	copy_file("cgroup.bpf.o", path);
	assert_ok(labels_new(0, &choice, &options.labels));
	assert_ok(collector_open(directory, "cgroup", &options, &diag, &collector));
	assert_non_null(collector);
	assert_ok(truncate(path, 100));
	assert_ok(unlink(path));
	assert_ok(object_open_again(collector->object, &again));
	assert_string_equal(bpf_object__name(again), "cgroup");
	bpf_object__close(again);
	collector_free(TAKE_PTR(collector));
	labels_free(options.labels);
	assert_ok(unlink(conf));
	assert_ok(rmdir(directory));
}

static void before_the_start_there_is_no_kernel_memory(void **state)
{
	_cleanup_(collector_freep) struct collector *collector = NULL;
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	struct labels *labels;

	assert_ok(labels_new(0, &choice, &labels));
	assert_ok(open_shipped("memory", labels, &diag, &collector));
	assert_string_equal(collector->name, "memory");
	assert_int_equal(collector->n_metrics, 3);
	collector_find_maps(collector);
	for (size_t i = 0; i < collector->n_maps; i++)
		assert_int_equal(collector_map_kernel_bytes(&collector->maps[i]), 0);
	assert_true(collector->n_maps >= 3);
	collector_free(collector);
	collector = NULL;
	labels_free(labels);
}

/* What the tables of all collectors take for 500 units, in MiB, rounded up. */
static uint64_t size_for(const char *cpus)
{
	struct collector *collectors[ARRAY_SIZE(names)] = { NULL };
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	struct labels *labels;
	uint64_t bytes;

	assert_ok(labels_new(0, &choice, &labels));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct collector_options options = { .labels = labels, .others = collectors, .n_others = i };

		assert_ok(collector_open(SHIPPED, names[i], &options, &diag, &collectors[i]));
	}
	setenv("BPFPUSH_PRETEND_CPUS", cpus, 1);
	bytes = collectors_size(collectors, ARRAY_SIZE(names), 500);
	assert_true(bytes < collectors_size(collectors, ARRAY_SIZE(names), 1000));
	assert_true(bytes > collectors_size(collectors, ARRAY_SIZE(names), 100));
	unsetenv("BPFPUSH_PRETEND_CPUS");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		collector_free(collectors[i]);
	labels_free(labels);
	return (bytes + (1 << 20) - 1) >> 20;
}

static void tables_are_sized_for_the_cpus_that_are_online(void **state)
{
	assert_in_range(size_for("2"), 6, 8);
	assert_in_range(size_for("2/128"), 6, 8);
	assert_in_range(size_for("128"), 64, 96);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failed_allocation_is_an_error_and_no_leak),
		cmocka_unit_test(parameters_are_set_by_name_or_refused_with_their_place),
		cmocka_unit_test(what_was_checked_is_loaded_whatever_becomes_of_the_file),
		cmocka_unit_test(before_the_start_there_is_no_kernel_memory),
		cmocka_unit_test(tables_are_sized_for_the_cpus_that_are_online),
	};

	programs_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

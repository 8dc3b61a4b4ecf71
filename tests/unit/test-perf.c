/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <linux/perf_event.h>

#include "collector/hook/file.h"
#include "collector/hook/perf.h"
#include "util/cleanup.h"

static const struct {
	const char *name;
	uint32_t type;
	uint64_t config, rate;
	bool is_frequency;
} events[] = {
	{ "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 99, true },
	{ "branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, 99, true },
	{ "cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 99, true },
	{ "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 1, false },
	{ "cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, 1, false },
	{ "L1-dcache-load-misses", PERF_TYPE_HW_CACHE, 0x10000, 99, true },
	{ "LLC-stores", PERF_TYPE_HW_CACHE, 0x102, 99, true },
	{ "dTLB-prefetch-misses", PERF_TYPE_HW_CACHE, 0x10203, 99, true },
	{ "r1A2", PERF_TYPE_RAW, 0x1a2, 99, true },
	{ "type=0,config=3,frequency=1", PERF_TYPE_HARDWARE, 3, 1, true },
	{ "type=4,config=0x1c2,sample_period=1000", PERF_TYPE_RAW, 0x1c2, 1000, false },
};

static void an_event_has_its_numbers(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		struct perf_event_attr attributes;

		assert_true(perf_find(events[i].name, &attributes));
		assert_int_equal(attributes.type, events[i].type);
		assert_int_equal(attributes.config, events[i].config);
		assert_int_equal(attributes.sample_period, events[i].rate);
		assert_int_equal(attributes.freq, events[i].is_frequency);
	}
}

static void other_names_are_no_events(void **state)
{
	static const char *const names[] = { "", "cycle", "L1-dcache", "L1-dcache-misses", "r", "rx", "r12 ", "r-1", "r1ffffffffffffffff", "type=",
					     "type=a", "type=4294967296", "type=0,confic=1", "type=0 config=1" };
	struct perf_event_attr attributes;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_false(perf_find(names[i], &attributes));
}

static void an_event_cannot_come_too_often(void **state)
{
	static const struct {
		const char *event, *frequency, *period, *complaint; /* a word of it; NULL: none */
	} rates[] = {
		{ "cpu-clock", NULL, NULL, NULL },
		{ "cpu-clock", "10000", NULL, NULL },
		{ "cpu-clock", "10001", NULL, "10000 or less" },
		{ "task-clock", NULL, "100000", NULL },
		{ "task-clock", NULL, "99999", "100000 (ns) or more" },
		{ "type=1,config=0,frequency=10001", NULL, NULL, "10000 or less" },
		{ "page-faults", NULL, "1", NULL },
		{ "cycles", "often", NULL, NULL }, /* the grammar says that */
		{ "cycles", "1000000000", NULL, "kernel.perf_event_max_sample_rate" },
		{ "type=0,config=0,frequency=0", NULL, NULL, "of 0" },
		{ "cycles", NULL, "9223372036854775807", NULL },
		{ "cycles", NULL, "9223372036854775808", "2^63" },
		{ "cycle", NULL, NULL, "no event" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
		const char *complaint = perf_complaint(rates[i].event, rates[i].frequency, rates[i].period);

		assert_int_equal(!complaint, !rates[i].complaint);
		if (complaint)
			assert_non_null(strstr(complaint, rates[i].complaint));
	}
}

static void targets_have_parts(void **state)
{
	char part[TARGET_BYTES];

	assert_int_equal(target_offset("vfs_read+0x10", part), 16);
	assert_string_equal(part, "vfs_read");
	assert_int_equal(target_offset("0x1234", part), 0x1234);
	assert_string_equal(part, "");
	assert_string_equal(target_split("/a:b/c:main+4", 0, part), "main+4");
	assert_string_equal(part, "/a:b/c");
	assert_string_equal(target_split("libc:libc:setjmp", 1, part), "libc:setjmp");
	assert_string_equal(part, "libc");
	assert_null(target_split("main", 0, part));
	assert_null(target_split("libc:setjmp", 1, part));
}

static void a_library_has_a_path(void **state)
{
	char path[TARGET_BYTES], same[TARGET_BYTES];

	assert_string_equal(file_split("uprobe/libc:malloc", path), "malloc");
	assert_string_equal(file_split("usdt/libc.so.6:libc:setjmp", same), "libc:setjmp");
	assert_string_equal(path, same);
	assert_null(file_split("uprobe/no-such-library:main", path));
	assert_string_equal(path, "no-such-library");
	assert_null(file_split("uprobe/lib*:main", path));
	assert_null(file_split("uprobe//usr/lib:main", path)); /* a directory */
	assert_null(file_split("tp_btf/sys_enter", path));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_has_its_numbers),
		cmocka_unit_test(other_names_are_no_events),
		cmocka_unit_test(an_event_cannot_come_too_often),
		cmocka_unit_test(targets_have_parts),
		cmocka_unit_test(a_library_has_a_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

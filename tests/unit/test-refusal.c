/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <unistd.h>

#include "collector/kernel/kernel.h"
#include "util/cleanup.h"
#include "util/rights.h"

#define LOG "prog 'x': -- BEGIN PROG LOAD LOG --\n0: R1=ctx()\nR1 invalid mem access 'scalar'\nprocessed 1 insns\n"

static const struct {
	const char *what;
	int err;
	const char *section, *log, *text;
} refusals[] = {
	{ "load", -EINVAL, "tp_btf/x", "", "load: Invalid argument" },
	{ "load", -524, "tp_btf/x", "", "load: Operation not supported" },
	{ "load", -EACCES, "kprobe/x", LOG, "load: Permission denied: R1 invalid mem access 'scalar'" },
	{ "load", -EACCES, "kprobe/x", LOG LOG, "load: Permission denied: R1 invalid mem access 'scalar'" },
	{ "load", -ESRCH, "tp_btf/x", "", "load: No such process (this kernel has no tracepoint of that name)" },
	{ "load", -EOPNOTSUPP, "iter/x", "", "load: Operation not supported (from Linux 7.0 on, the kernel can stop in this walk)" },
	{ "attach", -EACCES, "kprobe/x", "", "attach: Permission denied (CAP_SYS_ADMIN is missing; \"sudo bpfpush allow perf-events\" gives it to the service)" },
	{ "attach", -EPERM, "tp/x/y", "", "attach: Operation not permitted (CAP_SYS_ADMIN is missing; \"sudo bpfpush allow perf-events\" gives it to the service)" },
	{ "attach", -EPERM, "perf_event", "", "attach: Operation not permitted (CAP_SYS_ADMIN is missing; \"sudo bpfpush allow perf-events\" gives it to the service)" },
	{ "attach", -EPERM, "raw_tp/x", "", "attach: Operation not permitted" },
	{ "attach", -ENOENT, "uretprobe/libx.so:y", "", "attach: No such file or directory (the file does not exist, or has no such function or mark)" },
	{ "attach", -ENOENT, "uprobe/libx.so:y", "libbpf: elf: no y in libx.so\n", "attach: No such file or directory: elf: no y in libx.so" },
	{ "attach", -EINVAL, "raw_tp/y", "libbpf: first\nlibbpf: the cause\nlibbpf: failed to load object 'x'\n", "attach: Invalid argument: the cause" },
	{ "attach", -ENOENT, "perf_event/cycles", "libbpf: words\n", "attach: No such file or directory (this machine cannot count that; a virtual machine often has no PMU)" },
	{ "attach", -ENODEV, "xdp/eth7", "", "attach: No such device (this machine has no such interface; ip link lists them)" },
	{ "attach", -EBUSY, "xdp/eth0", "", "attach: Device or resource busy (the interface has a program already)" },
	{ "load", -EPERM, "fexit/x", "", "load: Operation not permitted (this kernel lets nobody attach to functions; use a tracepoint)" },
	{ "attach", -524, "uprobe/a:x", "libbpf: words\n", "attach: Operation not supported (the kernel cannot stop a program at this instruction; name another function)" },
	{ "attach", -ENOENT, "fexit/x", "", "attach: No such file or directory" },
};

static void assert_refusal(size_t i)
{
	char *text = refusal_text(refusals[i].what, refusals[i].err, refusals[i].section, refusals[i].log);

	assert_string_equal(text, refusals[i].text);
	free(text);
}

static void a_refusal_has_the_words_of_the_kernel_and_what_they_mean(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++)
		assert_refusal(i);
}

static void what_is_there_is_not_missing(void **state)
{
	const uint64_t rights = rights_permitted(), admin = 1ull << CAP_SYS_ADMIN;
	char *text;

	if (!(rights & admin))
		skip();
	text = refusal_text("attach", -EACCES, "uprobe/x", "");
	assert_string_equal(text, "attach: Permission denied");
	free(text);
	assert_ok(rights_set(rights & ~admin, rights & ~admin)); /* for good, for the tests below */
}

static void a_kernel_without_kprobes_is_told_from_a_function_that_has_none(void **state)
{
	static const struct {
		int err;
		const char *section, *why;
	} rows[] = {
		{ -EINVAL, "kprobe/x", "blacklist" },
		{ -EINVAL, "kretprobe/x", "blacklist" },
		{ -ENOENT, "kprobe/x", "no function" },
		{ -ESRCH, "kprobe.multi/x", "nobody can trace" },
	};
	bool has_kprobes = !access(HAS_KERNEL_PROBES, F_OK);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char *text = refusal_text("attach", rows[i].err, rows[i].section, "");

		assert_non_null(strstr(text, has_kprobes ? rows[i].why : "no kprobes"));
		free(text);
	}
}

static void an_error_that_only_the_kernel_knows_has_words_too(void **state)
{
	assert_string_equal(refusal_error(-524), "Operation not supported");
	assert_string_equal(refusal_error(-EINVAL), "Invalid argument");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_there_is_not_missing),
		cmocka_unit_test(a_refusal_has_the_words_of_the_kernel_and_what_they_mean),
		cmocka_unit_test(a_kernel_without_kprobes_is_told_from_a_function_that_has_none),
		cmocka_unit_test(an_error_that_only_the_kernel_knows_has_words_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Programs before the running kernel: which alternative is taken, and what is said of the others. */
#include "test.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <unistd.h>

#include "collector/programs.h"
#include "kernel.h"
#include "util/buf.h"

struct loaded {
	struct programs programs;
	struct bpf_object *object;
	struct buf why;
	unsigned int n_tries;
	char path[4096];
};

static int open_again(void *user, struct bpf_object **ret_object)
{
	struct loaded *loaded = user;

	loaded->n_tries++;
	*ret_object = bpf_object__open_file(loaded->path, NULL);
	return *ret_object ? 0 : -errno;
}

static void setup(struct loaded *loaded, const char *name)
{
	struct bpf_object *object;

	*loaded = (struct loaded){ 0 };
	snprintf(loaded->path, sizeof(loaded->path), "%s/%s.bpf.o", OBJECTS, name);
	object = bpf_object__open_file(loaded->path, NULL);
	assert_non_null(object);
	assert_ok(programs_list(object, &loaded->programs));
	bpf_object__close(object);
}

static int load(struct loaded *loaded)
{
	const struct programs_loader loader = { open_again, NULL, loaded };

	return programs_load(&loaded->programs, &loader, &loaded->why, &loaded->object);
}

static void teardown(struct loaded *loaded)
{
	programs_done(&loaded->programs);
	bpf_object__close(loaded->object);
	buf_done(&loaded->why);
}

static struct program *program(const struct loaded *loaded, const char *name)
{
	for (uint32_t i = 0; i < loaded->programs.n; i++)
		if (!strcmp(loaded->programs.items[i].name, name))
			return &loaded->programs.items[i];
	fail_msg("no program %s", name);
	return NULL;
}

static void refused_alternatives_give_way_until_one_is_taken(void **state)
{
	struct loaded l;

	setup(&l, "refused");
	assert_ok(load(&l));
	/* By section first, then by place in the object: first, third, second, fourth. */
	assert_int_equal(program(&l, "enter__first")->state, PROGRAM_REFUSED);
	assert_int_equal(program(&l, "enter__second")->state, PROGRAM_REFUSED);
	assert_int_equal(program(&l, "enter__third")->state, PROGRAM_REFUSED);
	assert_int_equal(program(&l, "enter__fourth")->state, PROGRAM_ATTACHED);
	assert_int_equal(program(&l, "leave")->state, PROGRAM_REFUSED);
	assert_int_equal(program(&l, "nowhere")->state, PROGRAM_REFUSED);
	assert_int_equal(program(&l, "sound")->state, PROGRAM_ATTACHED);
	assert_non_null(programs_find(&l.programs, "enter", PROGRAM_ATTACHED));
	assert_null(programs_find(&l.programs, "leave", PROGRAM_ATTACHED));
	assert_int_equal(program(&l, "leave")->err, -EACCES);
	/* and the verifier's own words behind it */
	assert_memory_equal(program(&l, "leave")->error, "load: Permission denied: R", 26);
	assert_int_equal(program(&l, "nowhere")->err, -ENOENT);
	assert_true(program(&l, "sound")->fd >= 0);
	assert_int_equal(program(&l, "leave")->fd, -1);
	assert_in_range(l.n_tries, 5, 7);
	teardown(&l);
}

static void a_part_of_another_section_is_refused_with_its_alternative(void **state)
{
	struct loaded l;

	setup(&l, "refused");
	assert_ok(load(&l));
	assert_int_equal(program(&l, "pair__raw")->state, PROGRAM_REFUSED);
	assert_string_equal(program(&l, "pair__raw")->error,
			    "attach: No such file or directory (this kernel has no tracepoint of that name)");
	assert_int_equal(program(&l, "pair__raw__on")->state, PROGRAM_REFUSED);
	assert_string_equal(program(&l, "pair__raw__on")->error,
			    "attach (of the program that it belongs to): No such file or directory "
			    "(this kernel has no tracepoint of that name)");
	assert_int_equal(program(&l, "pair__raw__on")->n_links, 0);
	assert_int_equal(program(&l, "pair__other")->state, PROGRAM_ATTACHED);
	teardown(&l);
}

static void what_the_kernel_does_not_have_costs_no_load(void **state)
{
	static const char *const missing[] = { "enter__btf", "enter__fexit", "leave__btf", "leave__fexit", "function" };
	struct loaded l;

	setup(&l, "missing");
	assert_ok(load(&l));
	for (size_t i = 0; i < ARRAY_SIZE(missing); i++) {
		assert_int_equal(program(&l, missing[i])->state, PROGRAM_REFUSED);
		assert_int_equal(program(&l, missing[i])->err, -ESRCH);
	}
	assert_string_equal(program(&l, "enter__btf")->error,
			    "load: No such process (this kernel has no tracepoint of that name)");
	assert_string_equal(program(&l, "function")->error,
			    "load: No such process (this kernel has no function of that name)");
	assert_int_equal(program(&l, "sound")->state, PROGRAM_ATTACHED);
	assert_int_equal(l.n_tries, 1);
	teardown(&l);
}

static void an_alternative_that_is_not_needed_waits(void **state)
{
	struct loaded l;

	setup(&l, "alternatives");
	program(&l, "visit")->map = "counts";
	assert_ok(load(&l));
	if (program(&l, "visit")->err == -EPERM) {
		teardown(&l);
		print_message("needs a kernel that allows iterators over maps\n");
		skip();
	}
	assert_int_equal(program(&l, "exit__btf")->state, PROGRAM_ATTACHED);
	assert_int_equal(program(&l, "exit__raw")->state, PROGRAM_WAITING);
	assert_int_equal(program(&l, "exit__tp")->state, PROGRAM_WAITING);
	assert_int_equal(program(&l, "visit")->state, PROGRAM_ATTACHED);
	assert_int_equal(program(&l, "walk")->state, PROGRAM_ATTACHED);
	assert_ok(programs_iterate(&l.programs, false));
	teardown(&l);
}

static void what_is_off_stays_off(void **state)
{
	struct loaded l;

	setup(&l, "alternatives");
	program(&l, "exit__btf")->state = PROGRAM_OFF;
	program(&l, "visit")->state = PROGRAM_OFF;
	assert_ok(load(&l));
	assert_int_equal(program(&l, "exit__btf")->state, PROGRAM_OFF);
	assert_int_equal(program(&l, "exit__raw")->state, PROGRAM_ATTACHED);
	assert_int_equal(program(&l, "visit")->state, PROGRAM_OFF);
	teardown(&l);
}

static void a_kernel_that_takes_nothing_refuses_each_with_its_words(void **state)
{
	struct loaded l;

	setup(&l, "refused");
	program(&l, "enter__fourth")->state = PROGRAM_OFF;
	program(&l, "sound")->state = PROGRAM_OFF;
	program(&l, "pair__other")->state = PROGRAM_OFF;
	assert_ok(load(&l));
	assert_int_equal(program(&l, "enter__first")->err, -EACCES);
	assert_memory_equal(program(&l, "enter__first")->error, "load: Permission denied: R", 26);
	assert_null(programs_find(&l.programs, "enter", PROGRAM_ATTACHED));
	teardown(&l);
}

static void programs_that_are_all_off_are_no_failure(void **state)
{
	struct loaded l;

	setup(&l, "refused");
	for (uint32_t i = 0; i < l.programs.n; i++)
		l.programs.items[i].state = PROGRAM_OFF;
	assert_ok(load(&l));
	assert_int_equal(l.n_tries, 1);
	teardown(&l);
}

static void runs_are_counted_while_somebody_asks_for_it(void **state)
{
	int statistics = programs_enable_stats();
	struct loaded l;

	assert_true(statistics >= 0);
	setup(&l, "alternatives");
	program(&l, "visit")->state = PROGRAM_OFF;
	assert_ok(load(&l));
	for (int i = 0; i < 1000; i++)
		(void)getppid();
	programs_stats(&l.programs, false);
	assert_true(program(&l, "plain")->runs >= 1000);
	assert_true(program(&l, "plain")->run_time_ns > 0);
	assert_int_equal(program(&l, "exit__tp")->runs, 0);
	programs_stats(&l.programs, true);
	assert_int_equal(program(&l, "plain")->runs, 0);
	close(statistics);
	teardown(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused_alternatives_give_way_until_one_is_taken),
		cmocka_unit_test(a_part_of_another_section_is_refused_with_its_alternative),
		cmocka_unit_test(what_the_kernel_does_not_have_costs_no_load),
		cmocka_unit_test(an_alternative_that_is_not_needed_waits),
		cmocka_unit_test(what_is_off_stays_off),
		cmocka_unit_test(a_kernel_that_takes_nothing_refuses_each_with_its_words),
		cmocka_unit_test(programs_that_are_all_off_are_no_failure),
		cmocka_unit_test(runs_are_counted_while_somebody_asks_for_it),
	};

	if (kernel_refuses_programs())
		return KERNEL_SKIPPED;
	programs_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

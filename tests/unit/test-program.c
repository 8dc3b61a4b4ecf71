/* SPDX-License-Identifier: Apache-2.0 */
/* Programs as an opened object has them; nothing is loaded, so no right is needed. */
#include "test.h"

#include <bpf/libbpf.h>
#include <errno.h>

#include "alloc.h"
#include "collector/hook/alternative.h"
#include "collector/programs.h"
#include "util/cleanup.h"

static struct bpf_object *open_object(const char *name)
{
	char path[4096];
	struct bpf_object *object;

	snprintf(path, sizeof(path), "%s/%s.bpf.o", OBJECTS, name);
	object = bpf_object__open_file(path, NULL);
	assert_non_null(object);
	return object;
}

static const struct program *find(const struct programs *programs, const char *name)
{
	for (uint32_t i = 0; i < programs->n; i++)
		if (!strcmp(programs->items[i].name, name))
			return &programs->items[i];
	fail_msg("no program %s", name);
	return NULL;
}

static void a_name_tells_hook_and_variant(void **state)
{
	struct bpf_object *object = open_object("alternatives");
	struct programs programs = { 0 };
	const struct program *program;

	assert_ok(programs_list(object, &programs));
	assert_int_equal(programs.n, 8);
	program = find(&programs, "plain");
	assert_string_equal(program->hook, "plain");
	assert_string_equal(program->variant, "plain");
	assert_string_equal(program->section, "tp_btf/sys_enter");
	program = find(&programs, "exit__tp");
	assert_string_equal(program->hook, "exit");
	assert_string_equal(program->variant, "exit__tp");
	program = find(&programs, "send__fexit__ipv4");
	assert_string_equal(program->hook, "send");
	assert_string_equal(program->variant, "send__fexit");
	assert_string_equal(program->section, "fexit/udp_sendmsg");
	assert_string_equal(find(&programs, "send__fexit__ipv6")->variant, "send__fexit");
	programs_done(&programs);
	bpf_object__close(object);
}

static void a_program_that_only_returns_is_empty(void **state)
{
	struct bpf_object *refused = open_object("refused");
	struct programs programs = { 0 };

	assert_ok(programs_list(refused, &programs));
	assert_true(find(&programs, "pair__raw__on")->is_empty);
	assert_false(find(&programs, "enter__first")->is_empty);
	programs_done(&programs);
	bpf_object__close(refused);
}

static void names_mean_alternatives_only_where_programs_see_the_same_event(void **state)
{
	static const struct {
		const char *name, *hook, *variant;
		bool is_doubtful;
	} expected[] = {
		{ "task__fork", "task__fork", "task__fork", false },
		{ "task__exit", "task__exit", "task__exit", false },
		{ "raw_tp__first", "raw_tp__first", "raw_tp__first", false },
		{ "raw_tp__second", "raw_tp__second", "raw_tp__second", false },
		{ "read__begin", "read__begin", "read__begin", false },
		{ "read__end", "read__end", "read__end", false },
		{ "__x64_sys_write", "__x64_sys_write", "__x64_sys_write", false },
		{ "__x64_sys_open", "__x64_sys_open", "__x64_sys_open", false },
		{ "victim__task", "victim", "victim__task", false },
		{ "victim__pid", "victim", "victim__pid", false },
		{ "send__btf", "send", "send__btf", false },
		{ "send__fexit__ipv4", "send", "send__fexit", false },
		{ "send__fexit__ipv6", "send", "send__fexit", false },
		{ "send__kprobe__ipv4", "send", "send__kprobe", false },
		{ "send__kprobe__ipv6", "send", "send__kprobe", false },
		{ "exit__btf", "exit", "exit__btf", false },
		{ "exit__multi__on", "exit", "exit__multi", false },
		{ "exit__multi", "exit", "exit__multi", false },
		{ "exit__tp", "exit", "exit__tp", false },
		{ "wake__up", "wake", "wake__up", false },
		{ "wake__process", "wake", "wake__process", true },
		{ "made", "made", "made", false },
		{ "made__kprobe", "made", "made__kprobe", true },
		{ "visit__elements", "visit", "visit__elements", false },
		{ "visit__tasks", "visit", "visit__tasks", false },
	};
	struct bpf_object *object = open_object("names");
	struct programs programs = { 0 };

	assert_ok(programs_list(object, &programs));
	assert_int_equal(programs.n, ARRAY_SIZE(expected));
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		const struct program *program = find(&programs, expected[i].name);

		assert_string_equal(program->hook, expected[i].hook);
		assert_string_equal(program->variant, expected[i].variant);
		assert_int_equal(program->is_doubtful, expected[i].is_doubtful);
	}
	programs_done(&programs);
	bpf_object__close(object);
}

static void sections_have_an_order(void **state)
{
	struct bpf_object *object = open_object("alternatives");
	struct programs programs = { 0 };

	assert_ok(programs_list(object, &programs));
	assert_true(find(&programs, "exit__btf")->rank < find(&programs, "exit__raw")->rank);
	assert_true(find(&programs, "exit__raw")->rank < find(&programs, "send__fexit__ipv4")->rank);
	assert_true(find(&programs, "send__fexit__ipv4")->rank < find(&programs, "exit__tp")->rank);
	assert_true(find(&programs, "exit__tp")->rank < find(&programs, "visit")->rank);
	programs_done(&programs);
	bpf_object__close(object);
}

static const char *asked;

static bool is_preempted(const char *section)
{
	asked = section;
	return true;
}

static void other_alternatives_come_first_where_tracepoints_are_preempted(void **state)
{
	struct bpf_object *object = open_object("names");
	struct programs programs = { 0 };

	assert_ok(programs_list(object, &programs));
	assert_true(find(&programs, "exit__btf")->rank < find(&programs, "exit__multi")->rank);
	assert_true(find(&programs, "exit__multi")->rank < find(&programs, "exit__tp")->rank);
	for (uint32_t i = 0; i < programs.n; i++)
		programs.items[i].state = strncmp(programs.items[i].name, "exit", 4) ? PROGRAM_OFF : PROGRAM_WAITING;
	alternatives_rank(&programs, is_preempted);
	assert_string_equal(asked, "tp_btf/sys_exit");
	assert_true(find(&programs, "exit__tp")->rank < find(&programs, "exit__multi")->rank);
	assert_true(find(&programs, "exit__multi")->rank < find(&programs, "exit__btf")->rank);
	assert_int_equal(find(&programs, "exit__multi__on")->rank, find(&programs, "exit__multi")->rank);
	asked = NULL;
	((struct program *)find(&programs, "exit__tp"))->state = PROGRAM_OFF;
	((struct program *)find(&programs, "exit__multi"))->state = PROGRAM_OFF;
	alternatives_rank(&programs, is_preempted);
	assert_null(asked); /* nothing else could be taken */
	programs_done(&programs);
	bpf_object__close(object);
}

static void what_is_taken_on_a_preempting_kernel_is_explained(void **state)
{
	struct program program = { .state = PROGRAM_ATTACHED };

	assert_null(program_choice(&program));
	program.is_hook_preempted = true;
	assert_string_equal(program_choice(&program),
			    "this kernel preempts it, and then skips events; it refused the alternatives that it does not preempt");
	program.is_exact = true;
	assert_string_equal(program_choice(&program),
			    "chosen because this kernel preempts tp_btf programs at this hook, and then skips events");
	program.state = PROGRAM_WAITING;
	assert_null(program_choice(&program));
}

static void iterators_are_known_by_their_section(void **state)
{
	struct bpf_object *object = open_object("alternatives");
	struct programs programs = { 0 };

	assert_ok(programs_list(object, &programs));
	for (uint32_t i = 0; i < programs.n; i++) {
		const struct program *program = &programs.items[i];
		bool is_visit = !strcmp(program->name, "visit"), is_walk = !strcmp(program->name, "walk");

		assert_int_equal(program->is_iterator, is_visit || is_walk);
		assert_int_equal(program_is_over_map(program), is_visit);
		assert_int_equal(program->state, PROGRAM_WAITING);
		assert_int_equal(program->fd, -1);
		assert_null(programs_find(&programs, program->hook, PROGRAM_ATTACHED));
	}
	programs_done(&programs);
	bpf_object__close(object);
}

static int list_once(struct bpf_object *object)
{
	struct programs programs = { 0 };
	int err = programs_list(object, &programs);

	programs_done(&programs);
	return err;
}

static void a_failed_allocation_is_an_error_and_no_leak(void **state)
{
	struct bpf_object *object = open_object("alternatives");

	assert_survives_failing_allocations(list_once(object), );
	bpf_object__close(object);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_tells_hook_and_variant),
		cmocka_unit_test(a_program_that_only_returns_is_empty),
		cmocka_unit_test(names_mean_alternatives_only_where_programs_see_the_same_event),
		cmocka_unit_test(sections_have_an_order),
		cmocka_unit_test(other_alternatives_come_first_where_tracepoints_are_preempted),
		cmocka_unit_test(what_is_taken_on_a_preempting_kernel_is_explained),
		cmocka_unit_test(iterators_are_known_by_their_section),
		cmocka_unit_test(a_failed_allocation_is_an_error_and_no_leak),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The notes of this program itself: their operands need not be those of an instruction. */
#include "test.h"

#include <asm/ptrace.h>
#include <errno.h>

#include "collector/hook/mark.h"
#include "util/array.h"
#include "util/cleanup.h"

extern uint64_t mark_test_data[];
uint64_t mark_test_data[] = { 1, 2, 3 };

#define NOTE_AT(place, number, operands)                                                                           \
	".balign 4\n .4byte 8, 95f-94f, 3\n .asciz \"stapsdt\"\n .balign 4\n"                             \
	"94: .8byte mark_test_place + " place ", 0, 0\n .asciz \"test\", \"" number "\", \"" operands "\"\n"            \
	"95: .balign 4\n"
#define NOTE(number, operands) NOTE_AT("0", number, operands)

#if defined(__x86_64__)
#define REGISTER(name) (1 + offsetof(struct pt_regs, name))
#define CONSTANT "$"
#define OPERANDS "-4@$-5 8@%rax 4@%r8d 1@%dl -8@-16(%rbp) 4@(%rdi,%rsi,4)"
#define MORE	 "4@(,%r9,8) 8@mark_test_data+8(%rip) 8@-8+mark_test_data 1@%spl 2@(%r15) 8@%rip"
#define WRONG	 "8f@%rdx 3@%rax 8@%ah 8@%fs:-8(%rax) 8@12(%rip) 8@no_such_symbol"
#define WRONGER	 "8@(%rax,%rbx,3) @%rax 8@$mark_test_data 8@$ 8@() 8@(%zz)"
static const struct mark_argument expected[] = {
	{ -5, 0, 0, 0, 4, true, false },
	{ 0, REGISTER(rax), 0, 0, 8, false, false },
	{ 0, REGISTER(r8), 0, 0, 4, false, false },
	{ 0, REGISTER(rdx), 0, 0, 1, false, false },
	{ -16, REGISTER(rbp), 0, 0, 8, true, true },
	{ 0, REGISTER(rdi), REGISTER(rsi), 2, 4, false, true },
}, more[] = {
	{ 0, 0, REGISTER(r9), 3, 4, false, true },
	{ 8, REGISTER(rip), 0, 0, 8, false, true },
	{ -8, REGISTER(rip), 0, 0, 8, false, true },
	{ 0, REGISTER(rsp), 0, 0, 1, false, false },
	{ 0, REGISTER(r15), 0, 0, 2, false, true },
	{ 0, REGISTER(rip), 0, 0, 8, false, false },
};
#else
#define REGISTER(n) (1 + offsetof(struct user_pt_regs, regs) + 8 * (n))
#define CONSTANT ""
#define OPERANDS "-4@-5 8@x0 4@w8 8@[sp, 16] 4@[x0, x1, lsl 2] 8@[x3]"
#define MORE	 "8@[x1, x2] 8@sp 8@[x29, -8] 4@7 8@x30 1@w1"
#define WRONG	 "8@d0 3@x0 8@x31 8@[q1] 8@[] 8@no_such_symbol"
#define WRONGER	 "8@[x0, x1, lsl 4] @x0 8@-mark_test_data 8@ 8@[x0 8@zz"
static const struct mark_argument expected[] = {
	{ -5, 0, 0, 0, 4, true, false },
	{ 0, REGISTER(0), 0, 0, 8, false, false },
	{ 0, REGISTER(8), 0, 0, 4, false, false },
	{ 16, 1 + offsetof(struct user_pt_regs, sp), 0, 0, 8, false, true },
	{ 0, REGISTER(0), REGISTER(1), 2, 4, false, true },
	{ 0, REGISTER(3), 0, 0, 8, false, true },
}, more[] = {
	{ 0, REGISTER(1), REGISTER(2), 0, 8, false, true },
	{ 0, 1 + offsetof(struct user_pt_regs, sp), 0, 0, 8, false, false },
	{ -8, REGISTER(29), 0, 0, 8, false, true },
	{ 7, 0, 0, 0, 4, false, false },
	{ 0, REGISTER(30), 0, 0, 8, false, false },
	{ 0, REGISTER(1), 0, 0, 1, false, false },
};
#endif

extern const char mark_test_place[];
asm(".pushsection .text\n mark_test_place: nop\n .popsection\n"
    ".pushsection .note.stapsdt, \"\", \"note\"\n" NOTE("known", OPERANDS) NOTE("more", MORE) NOTE("wrong", WRONG)
    NOTE("wronger", WRONGER) NOTE("none", "") NOTE("twice", "8@") NOTE_AT("1", "twice", "8@ 8@")
    NOTE("equal", "8@" CONSTANT "1 4@" CONSTANT "2") NOTE("equal", "8@" CONSTANT "1 4@" CONSTANT "3") ".popsection\n");

static struct mark *marks;
static size_t n;

static const struct mark *find(const char *name)
{
	assert_int_equal(marks_find("/proc/self/exe", name, &marks, &n), 0);
	assert_true(n > 0);
	return marks;
}

static void assert_arguments(const char *name, const struct mark_argument *wanted, int64_t moved)
{
	const struct mark *mark = find(name);

	assert_int_equal(mark->n_arguments, MARK_ARGUMENTS);
	for (size_t i = 0; i < MARK_ARGUMENTS; i++) {
		const struct mark_argument *seen = &mark->arguments[i];
		bool is_symbol = moved && i && i < 3 && strstr(mark->operands, "mark_test_data");

		assert_int_equal(seen->number, wanted[i].number + (is_symbol ? moved : 0));
		assert_int_equal(seen->base, wanted[i].base);
		assert_int_equal(seen->index, wanted[i].index);
		assert_int_equal(seen->shift, wanted[i].shift);
		assert_int_equal(seen->bytes, wanted[i].bytes);
		assert_int_equal(seen->is_signed, wanted[i].is_signed);
		assert_int_equal(seen->is_memory, wanted[i].is_memory);
	}
	array_free(&marks, &n);
}

static void operands_are_sums_of_registers_and_numbers(void **state)
{
	assert_arguments("test:known", expected, 0);
}

/* A symbol is as far from the instruction as in this process. */
static void symbols_are_found_from_the_instruction_on(void **state)
{
	assert_arguments("test:more", more, (int64_t)((uintptr_t)mark_test_data - (uintptr_t)mark_test_place));
}

static void what_has_another_form_is_not_read(void **state)
{
	static const char *const names[] = { "test:wrong", "test:wronger" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct mark *mark = find(names[i]);

		assert_int_equal(mark->n_arguments, MARK_ARGUMENTS);
		for (size_t j = 0; j < MARK_ARGUMENTS; j++)
			assert_int_equal(mark->arguments[j].bytes, 0);
		array_free(&marks, &n);
	}
}

static void operands_are_told_apart(void **state)
{
	const struct mark *mark = find("test:known");
	const char *operand;

	assert_int_equal(mark_operand(mark, 0, &operand), strcspn(OPERANDS, " "));
	assert_memory_equal(operand, OPERANDS, strcspn(OPERANDS, " "));
	assert_int_equal(mark_operand(mark, MARK_ARGUMENTS, &operand), 0);
	array_free(&marks, &n);
	assert_int_equal(find("test:none")->n_arguments, 0);
	array_free(&marks, &n);
}

static void each_place_is_found(void **state)
{
	find("test:twice");
	assert_int_equal(n, 2);
	assert_int_equal(marks[0].n_arguments, 1);
	assert_int_equal(marks[1].n_arguments, 2);
	assert_int_equal(marks[0].semaphore, 0);
	assert_true(marks[0].offset && marks[0].offset + 1 == marks[1].offset);
	array_free(&marks, &n);
}

/* What the notes of one place do not agree on is unknown. */
static void a_place_counts_once(void **state)
{
	find("test:equal");
	assert_int_equal(n, 1);
	assert_int_equal(marks[0].arguments[0].bytes, 8);
	assert_int_equal(marks[0].arguments[1].bytes, 0);
	array_free(&marks, &n);
}

static void what_is_no_program_has_no_marks(void **state)
{
	assert_int_equal(marks_find("/proc/self/exe", "test:missing", &marks, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(marks_find("/proc/self/stat", "test:known", &marks, &n), -ENOEXEC);
	assert_int_equal(marks_find("/no/such/file", "test:known", &marks, &n), -ENOENT);
	assert_null(marks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operands_are_sums_of_registers_and_numbers),
		cmocka_unit_test(symbols_are_found_from_the_instruction_on),
		cmocka_unit_test(what_has_another_form_is_not_read),
		cmocka_unit_test(operands_are_told_apart),
		cmocka_unit_test(each_place_is_found),
		cmocka_unit_test(a_place_counts_once),
		cmocka_unit_test(what_is_no_program_has_no_marks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

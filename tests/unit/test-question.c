/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdio.h>

#include "metric/series.h"
#include "view/question.h"

#include "alloc.h"

#define LIST(...) { (char *[]){ __VA_ARGS__ }, sizeof((char *[]){ __VA_ARGS__ }) / sizeof(char *), false }

static const struct setting_list none;
static struct metric metric = { .scope = "c", .name = "bpfpush.syscalls", .kind = METRIC_SUM, .divisor = 1 };
static struct series *series;

static int make_series(void **state)
{
	struct attributes attributes;

	metric_init_series(&metric, NULL);
	attributes_init(&attributes);
	assert_ok(attributes_add_text(&attributes, "bpfpush.syscall.name", "read", 4));
	assert_ok(attributes_add_text(&attributes, "systemd.unit.name", "a@b.service", 11));
	assert_ok(attributes_add_text(&attributes, "process.executable.name", "<script>[x]", 11));
	assert_ok(attributes_add_number(&attributes, "process.pid", -12));
	assert_ok(attributes_add_flag(&attributes, "is.big", true));
	return series_get(&metric, &attributes, 0, &series);
}

static int free_series(void **state)
{
	metric_done_series(&metric);
	return 0;
}

/* Does the series meet the condition? */
static bool is_wanted(const char *condition)
{
	const struct setting_list where = LIST((char *)condition);
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	struct question question;
	bool is_wanted;

	assert_ok(question_init(&question, &none, &where, &diag));
	assert_int_equal(diag.n_errors, 0);
	is_wanted = question_wants(&question, series);
	question_done(&question);
	return is_wanted;
}

static void conditions_are_about_values(void **state)
{
	assert_true(is_wanted("bpfpush.syscall.name=read"));
	assert_true(is_wanted("syscall.name=r*"));
	assert_false(is_wanted("syscall.name=rea"));
	assert_false(is_wanted("syscall.name="));
	assert_false(is_wanted("scall.name=read")); /* no whole word */
	assert_true(is_wanted("syscall.name!=write"));
	assert_false(is_wanted("syscall.name!=re?d"));
	assert_true(is_wanted("error.type!=ENOENT")); /* it has none */
	assert_false(is_wanted("error.type=ENOENT"));
	assert_true(is_wanted("process.pid=-12"));
	assert_false(is_wanted("pid=12"));
	assert_true(is_wanted("is.big=true"));
	assert_false(is_wanted("is.big=1"));
	assert_true(is_wanted("executable.name=<script>[[]x]"));
	assert_true(is_wanted("executable.name=*"));
	/* "name" is the end of three; one of them suffices. */
	assert_true(is_wanted("name=read"));
	assert_true(is_wanted("name=a@b.service"));
	assert_false(is_wanted("name!=read"));
}

static void conditions_are_about_presence(void **state)
{
	assert_true(is_wanted("syscall.name"));
	assert_false(is_wanted("!syscall.name"));
	assert_false(is_wanted("error.type"));
	assert_true(is_wanted("!error.type"));
	assert_true(is_wanted("unit"));
	assert_false(is_wanted("!unit"));
}

static void a_unit_is_whatever_says_whose_it_is(void **state)
{
	assert_true(question_is_named("unit", "systemd.unit.name"));
	assert_true(question_is_named("unit", "container.id"));
	assert_true(question_is_named("unit", "process.linux.cgroup"));
	assert_false(question_is_named("unit", "process.pid"));
	assert_true(is_wanted("unit=a@*"));
	assert_false(is_wanted("unit!=a@*"));
	assert_true(is_wanted("unit.name=*service")); /* the end of a name as any */
}

static void all_conditions_are_met(void **state)
{
	const struct setting_list both = LIST("unit=a*", "!error.type"), one = LIST("unit=a*", "error.type");
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	struct question question;

	assert_ok(question_init(&question, &none, &both, &diag));
	assert_true(question_wants(&question, series));
	question_done(&question);
	assert_ok(question_init(&question, &none, &one, &diag));
	assert_false(question_wants(&question, series));
	question_done(&question);
}

static void an_overflow_is_always_wanted(void **state)
{
	const struct setting_list where = LIST("unit=other");
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	struct question question;
	struct series *overflow;

	assert_ok(series_get_overflow(&metric, OVERFLOW_TABLE, 0, &overflow));
	assert_ok(question_init(&question, &none, &where, &diag));
	assert_false(question_wants(&question, series));
	assert_true(question_wants(&question, overflow));
	question_done(&question);
}

static void mistakes_are_named(void **state)
{
	const struct setting_list where = LIST("", "=x", "!=x", "!a=x", "!", "a!=x", "!a");
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	struct question question;

	assert_ok(question_init(&question, &none, &where, &diag));
	assert_int_equal(diag.n_errors, 5);
	assert_non_null(strstr(buf_text(&diag.text), "--where: \"!a=x\": write ATTRIBUTE, !ATTRIBUTE, "));
	question_done(&question);
}

/* The names of what is chosen by the words, each after a blank. */
static const char *chosen(const struct setting_list *by)
{
	static char text[512];
	size_t n = 0;
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	struct attributes attributes;
	struct question question;

	assert_ok(question_init(&question, by, &none, &diag));
	question_choose(&question, series, &attributes);
	*text = '\0';
	for (unsigned int i = 0; i < attributes.n; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, " %s", attributes.items[i].name);
	question_done(&question);
	return text;
}

static void attributes_are_chosen(void **state)
{
	const struct setting_list process = LIST("process"), two = LIST("unit", "syscall.name"), unknown = LIST("device");

	assert_string_equal(chosen(&two), " bpfpush.syscall.name systemd.unit.name");
	assert_string_equal(chosen(&process), " process.executable.name process.pid systemd.unit.name");
	assert_string_equal(chosen(&unknown), "");
	assert_string_equal(chosen(&none), " bpfpush.syscall.name is.big process.executable.name process.pid systemd.unit.name");
}

static void metrics_are_asked_for_by_name_or_collector(void **state)
{
	struct question question = { 0 }, collector = { .metrics = LIST("c") }, end = { .metrics = LIST("x", "syscalls") },
			other = { .metrics = LIST("count2") };

	assert_true(question_is_empty(&question));
	assert_true(question_wants_metric(&question, &metric));
	assert_false(question_is_empty(&collector));
	assert_true(question_wants_metric(&collector, &metric));
	assert_true(question_wants_metric(&end, &metric));
	assert_false(question_wants_metric(&other, &metric));
}

static int init_and_done(void)
{
	const struct setting_list by = LIST("process", "a"), where = LIST("a=b", "c");
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	struct question question;
	int err = question_init(&question, &by, &where, &diag);

	question_done(&question);
	return err;
}

static void without_memory_it_says_so(void **state)
{
	assert_survives_failing_allocations(init_and_done(), (void)0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conditions_are_about_values),
		cmocka_unit_test(conditions_are_about_presence),
		cmocka_unit_test(a_unit_is_whatever_says_whose_it_is),
		cmocka_unit_test(all_conditions_are_met),
		cmocka_unit_test(an_overflow_is_always_wanted),
		cmocka_unit_test(mistakes_are_named),
		cmocka_unit_test(attributes_are_chosen),
		cmocka_unit_test(metrics_are_asked_for_by_name_or_collector),
		cmocka_unit_test(without_memory_it_says_so),
	};

	return cmocka_run_group_tests(tests, make_series, free_series);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdio.h>

#include "alloc.h"
#include "collector/descriptor.h"
#include "collector/grammar/grammar.h"

static int parse(const char *text, struct diag *diag, struct descriptor **ret_descriptor)
{
	_cleanup_(fclosep) FILE *f = fmemopen((void *)text, strlen(text), "r");

	assert_non_null(f);
	return descriptor_parse(f, "x.conf", diag, ret_descriptor);
}

static const char whole[] = "[collector]\n"
			    "description = What it does\n"
			    "[param limit]\n"
			    "default = 7\n"
			    "description = A limit\n"
			    "[param other]\n"
			    "[metric calls.hist.nested]\n"
			    "name = test.calls\n"
			    "unit = {call}\n"
			    "description = Calls\n"
			    "attribute = test.kind=a=b\n"
			    "attribute = test.way=in\n"
			    "[metric level]\n"
			    "name = test.level\n"
			    "unit = By\n"
			    "description = Level\n"
			    "kind = gauge\n"
			    "[label calls.owner.error]\n"
			    "name = error.type\n"
			    "[program enter]\n"
			    "when = limit\n"
			    "map = calls\n";

static void a_descriptor_is_read_as_it_is_written(void **state)
{
	_cleanup_(descriptor_freep) struct descriptor *d = NULL;
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;

	assert_ok(parse(whole, &diag, &d));
	assert_int_equal(diag.n_errors, 0);
	assert_string_equal(d->description, "What it does");
	assert_int_equal(d->n_params, 2);
	assert_string_equal(d->params[0].name, "limit");
	assert_string_equal(d->params[0].default_text, "7");
	assert_string_equal(d->params[0].description, "A limit");
	assert_int_equal(d->params[0].line, 3);
	assert_null(d->params[1].default_text);
	assert_null(d->params[1].description);
	assert_int_equal(d->n_metrics, 2);
	assert_string_equal(d->metrics[0].map, "calls");
	assert_string_equal(d->metrics[0].member, "hist.nested");
	assert_string_equal(d->metrics[0].name, "test.calls");
	assert_string_equal(d->metrics[0].unit, "{call}");
	assert_string_equal(d->metrics[0].description, "Calls");
	assert_int_equal(d->metrics[0].line, 7);
	assert_null(d->metrics[0].kind);
	assert_string_equal(d->metrics[1].map, "level");
	assert_string_equal(d->metrics[1].member, "");
	assert_string_equal(d->metrics[1].kind, "gauge");
	assert_int_equal(d->n_labels, 1);
	assert_string_equal(d->labels[0].map, "calls");
	assert_string_equal(d->labels[0].member, "owner.error");
	assert_string_equal(d->labels[0].name, "error.type");
	assert_int_equal(d->labels[0].line, 18);
	assert_int_equal(d->n_programs, 1);
	assert_string_equal(d->programs[0].name, "enter");
	assert_string_equal(d->programs[0].when, "limit");
	assert_string_equal(d->programs[0].map, "calls");
}

static void an_attribute_ends_its_name_at_the_first_equals_sign(void **state)
{
	_cleanup_(descriptor_freep) struct descriptor *d = NULL;
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;

	assert_ok(parse(whole, &diag, &d));
	assert_int_equal(d->metrics[0].attributes.n, 2);
	assert_string_equal(d->metrics[0].attributes.items[0].text, "test.kind");
	assert_string_equal(d->metrics[0].attributes.items[0].value, "a=b");
	assert_int_equal(d->metrics[0].attributes.items[0].line, 11);
	assert_string_equal(d->metrics[0].attributes.items[1].text, "test.way");
	assert_string_equal(d->metrics[0].attributes.items[1].value, "in");
}

/* tests/check/collector has a file for each mistake; here is that what could be read is there all the same. */
static void what_is_sound_is_returned_beside_the_mistakes(void **state)
{
	_cleanup_(descriptor_freep) struct descriptor *d = NULL;
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;

	assert_ok(parse("[metric a.b]\nname = Bad\nunit = s\nkind = sum\n[nonsense]\nkey = value\n[label a.c]\n", &diag, &d));
	assert_string_equal(buf_text(&diag.text),
			    "x.conf: no [collector] section; begin with one that has a description = …\n"
			    "x.conf:1: [metric] lacks \"description\"; add a line description = …\n"
			    "x.conf:2: name \"Bad\" is not a lower-case dotted name; write one like \"disk.io.direction\"\n"
			    "x.conf:4: kind \"sum\" cannot be set here: only gauge and updowncounter can (a sum or a histogram "
			    "follows from the member's type); write one of them or remove the line\n"
			    "x.conf:5: unknown section \"nonsense\": there are collector, param, metric, event, span, label, program, cgroups\n");
	assert_int_equal(diag.n_errors, 5);
	assert_int_equal(d->n_metrics, 1);
	assert_string_equal(d->metrics[0].unit, "s");
	assert_null(d->metrics[0].description);
	assert_null(d->metrics[0].kind);
	assert_int_equal(d->n_labels, 1);
	assert_null(d->labels[0].name);
	assert_string_equal(d->description, "");
}

static void metric_names_are_lower_case_and_dotted(void **state)
{
	static const char *const good[] = { "a", "process.disk.io", "bpfpush.tcp.state.from", "a1_b.c2" };
	static const char *const bad[] = { "", ".", "a.", ".a", "a..b", "A", "1a", "a.1", "_a", "a._b", "a b", "a-b", "a.B", "é" };

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_null(grammar_check_name(good[i]));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_non_null(grammar_check_name(bad[i]));
}

static int parse_once(const char *text)
{
	_cleanup_(descriptor_freep) struct descriptor *d = NULL;
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;

	return parse(text, &diag, &d);
}

static void a_failed_allocation_is_an_error_and_no_leak(void **state)
{
	assert_survives_failing_allocations(parse_once(whole), );
}

static void a_directory_is_an_error_of_reading(void **state)
{
	_cleanup_(fclosep) FILE *f = fopen("/", "r");
	_cleanup_(descriptor_freep) struct descriptor *d = NULL;
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;

	assert_error(descriptor_parse(f, "x.conf", &diag, &d), EISDIR);
	assert_null(d);
	assert_int_equal(diag.n_errors, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_descriptor_is_read_as_it_is_written),
		cmocka_unit_test(an_attribute_ends_its_name_at_the_first_equals_sign),
		cmocka_unit_test(what_is_sound_is_returned_beside_the_mistakes),
		cmocka_unit_test(metric_names_are_lower_case_and_dotted),
		cmocka_unit_test(a_failed_allocation_is_an_error_and_no_leak),
		cmocka_unit_test(a_directory_is_an_error_of_reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

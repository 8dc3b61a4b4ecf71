/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "config/probe-internal.h"
#include "util/cleanup.h"

static void names_that_the_kernel_prints_are_found(void **state)
{
	struct event_fields fields = {
		.print = (char *)"print fmt: \"%s %s\", __print_symbolic(REC->state2, { 1, \"no\" }), __print_symbolic(REC->state, "
				 "{ 1, \"ONE\" }, {0x10,\"SIX TEEN\"}, { -1, \"MINUS\" }, { 1, \"AGAIN\" }, { 5, \"a;b\" }, { 6, \"x/y\" }), REC->pid",
	};
	_cleanup_(buf_done) struct buf out = BUF_INIT;

	assert_true(event_names_write(&fields, "state", &out));
	assert_string_equal(buf_text(&out), "value = 1=ONE\nvalue = 16=SIX TEEN\nvalue = -1=MINUS\nvalue = 6=x/y\n");
	assert_false(event_names_write(&fields, "pid", &out));
	assert_false(event_names_write(&fields, "stat", &out));
	fields.print = (char *)"print fmt: \"%s\", __print_symbolic(REC->mode, { MODE_ABS, \"ABS\" })";
	assert_false(event_names_write(&fields, "mode", &out)); /* a constant that tracefs does not resolve */
	fields.print = NULL;
	assert_false(event_names_write(&fields, "state", &out));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_that_the_kernel_prints_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

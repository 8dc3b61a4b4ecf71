/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "config/probe-internal.h"
#include "util/cleanup.h"

static void names_that_the_kernel_prints_are_found(void **state)
{
	struct event_fields fields = {
		.print = (char *)"print fmt: \"%s %s\", __print_symbolic(REC->state2, { 1, \"no\" }), __print_symbolic(REC->state, "
				 "{ 1, \"ONE\" }, {0x10,\"SIX TEEN \"}, { -1, \"MINUS\" }, { 1, \"AGAIN\" }, { 5, \"a;b\" }, { 6, \"x/y\" }), REC->pid",
	};
	static const char written[] = "value\0" "1=ONE\0" "value\0" "16=SIX TEEN\0" "value\0" "-1=MINUS\0" "value\0" "6=x/y\0";
	_cleanup_(buf_done) struct buf out = BUF_INIT;

	assert_true(event_names_write(&fields, "state", &out));
	assert_int_equal(out.size, sizeof(written) - 1);
	assert_memory_equal(out.data, written, out.size);
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdlib.h>

#include "export/exporter.h"
#include "util/cleanup.h"

static void every_type_is_found_by_its_name(void **state)
{
	static const char *const types[] = { "otlp", "console", "json", "bpftrace-json" };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		assert_non_null(exporter_find(types[i]));
		assert_string_equal(exporter_find(types[i])->type, types[i]);
	}
	assert_null(exporter_find("otl"));
	assert_null(exporter_find(""));
}

static void every_row_is_whole_and_its_defaults_are_valid(void **state)
{
	for (size_t i = 0; exporter_table[i]; i++) {
		const struct exporter_ops *ops = exporter_table[i];
		void *options = calloc(1, ops->settings->size_bytes);

		assert_non_null(ops->open);
		assert_non_null(ops->push);
		assert_non_null(ops->close);
		assert_ok(setting_table_init(ops->settings, options));
		if (ops->check) {
			struct diag diag = DIAG_INIT;

			assert_ok(ops->check(options, "file", 1, &diag));
			assert_int_equal(diag.n_errors, 0);
		}
		setting_table_done(ops->settings, options);
		free(options);
	}
}

static void freeing_nothing_is_fine(void **state)
{
	assert_null(exporter_free(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_is_found_by_its_name),
		cmocka_unit_test(every_row_is_whole_and_its_defaults_are_valid),
		cmocka_unit_test(freeing_nothing_is_fine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

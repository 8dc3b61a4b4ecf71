/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "export/otlp/options.h"
#include "logged.h"
#include "util/cleanup.h"

/* setting: of "headers"; NULL: not given */
static void read_options(struct otlp_options *options, const char *variable, const char *setting)
{
	struct assignment given = { "headers", setting, "file", 1 };
	struct assignments all = { &given, setting ? 1 : 0, "file", 1 };
	struct diag diag = DIAG_INIT;

	*options = (struct otlp_options){ 0 };
	assert_ok(setenv("OTEL_EXPORTER_OTLP_HEADERS", variable, 1));
	assert_ok(setting_table_init(&otlp_settings, options));
	if (setting)
		assert_ok(setting_table_set(&otlp_settings, options, &given, &diag));
	assert_ok(otlp_options_environment(options, &all, &diag));
	assert_int_equal(diag.n_errors, 0);
}

static void each_mistake_in_headers_of_the_environment_has_its_reason(void **state)
{
#define SAID(n, why) "<4>OTEL_EXPORTER_OTLP_HEADERS: item " n ": " why "; ignored\n"
	static const struct {
		const char *text, *said;
		const char *items[3]; /* that are taken */
	} cases[] = {
		{ "a=b", "", { "a: b" } },
		{ " , a = b ,, c=d=e ,\t,", "", { "a: b", "c: d=e" } },
		{ "x=", SAID("1", "no value"), { NULL } },
		{ "a=b,x= ,c=d", SAID("2", "no value"), { "a: b", "c: d" } },
		{ "sesame", SAID("1", "no \"=\", write KEY=VALUE"), { NULL } },
		{ "sesame,sesame,a=b", SAID("1", "no \"=\", write KEY=VALUE"), { "a: b" } },
		{ "a=b,Authorization=Bearer sesame,sesame", SAID("2", "a comma in the value, write %2C"), { "a: b" } },
		{ "Authorization=Bearer sesame,, sesame,sesame,a=b", SAID("1", "a comma in the value, write %2C"), { "a: b" } },
		{ "authorization=Bearer%20a%2Cb", "", { "authorization: Bearer a,b" } },
		{ "a=sesame%", SAID("1", "a \"%\" without the two hexadecimal digits of a character, write %25"), { NULL } },
		{ "a=sesame%zz,b=%00", SAID("1", "a \"%\" without the two hexadecimal digits of a character, write %25")
				     SAID("2", "a \"%\" without the two hexadecimal digits of a character, write %25"), { NULL } },
		{ "=sesame,a b=c", SAID("1", "its key is not the name of a header") SAID("2", "its key is not the name of a header"), { NULL } },
		{ "a: b=c", SAID("1", "its key is not the name of a header"), { NULL } },
		{ "a=sesame%0ab: c", SAID("1", "a control character in the header"), { NULL } },
		{ "content-type=application/json", SAID("1", "bpfpush sets this header itself"), { NULL } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct otlp_options options;
		size_t n = 0;

		log_catch();
		read_options(&options, cases[i].text, NULL);
		assert_string_equal(log_caught(), cases[i].said);
		for (; cases[i].items[n]; n++) {
			assert_true(n < options.headers.n_items);
			assert_string_equal(options.headers.items[n], cases[i].items[n]);
		}
		assert_int_equal(options.headers.n_items, n);
		setting_table_done(&otlp_settings, &options);
	}
}

static void a_setting_names_a_file_and_comes_before_the_variable(void **state)
{
	struct otlp_options options;

	read_options(&options, "a=file:/variable", NULL);
	assert_string_equal(options.headers.items[0], "a: file:/variable");
	assert_null(otlp_header_file(&options, options.headers.items[0]));
	setting_table_done(&otlp_settings, &options);
	read_options(&options, "a=b", "c: file:/setting");
	assert_int_equal(options.headers.n_items, 1);
	assert_string_equal(otlp_header_file(&options, options.headers.items[0]), "/setting");
	setting_table_done(&otlp_settings, &options);
}

static void a_header_may_come_from_a_file(void **state)
{
	static const struct {
		const char *content;
		int want;
	} cases[] = { { "secret\n", 0 }, { "secret", 0 }, { "secret\nmore", -EBADMSG }, { "", -EBADMSG }, { "\nx", -EBADMSG }, { "a\x01", -EBADMSG } };
	char path[] = "/tmp/test-otlp-options-XXXXXX", text[64];
	const char *complaint;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	snprintf(text, sizeof(text), "Api-Key:file:%s", path);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(freep) char *header = NULL;
		ssize_t size = (ssize_t)strlen(cases[i].content);

		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, cases[i].content, (size_t)size, 0), size);
		assert_int_equal(otlp_header_resolve(text, path, &header, &complaint), cases[i].want);
		if (!cases[i].want)
			assert_string_equal(header, "Api-Key: secret");
		else
			assert_null(header);
	}
	unlink(path);
	close(fd);
	assert_error(otlp_header_resolve(text, path, &(char *){ NULL }, &complaint), ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_mistake_in_headers_of_the_environment_has_its_reason),
		cmocka_unit_test(a_setting_names_a_file_and_comes_before_the_variable),
		cmocka_unit_test(a_header_may_come_from_a_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

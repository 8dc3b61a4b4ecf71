/* SPDX-License-Identifier: Apache-2.0 */
/* That the numbers are those of the JSON is in tests/golden; here are hostile texts and lines of names. */
#include "test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alloc.h"
#include "export/exporter.h"
#include "export/text/output.h"
#include "metric/series.h"
#include "util/cleanup.h"

struct example {
	struct metric metric, *metrics[1];
	struct batch batch;
	struct output_options options;
	struct exporter *exporter;
	int pipes[2];
	char path[64];
};

static void example_init(struct example *example)
{
	static const struct exporter_context context = { .version = "1" };

	*example = (struct example){ 0 };
	example->metric = (struct metric){ .scope = "a", .name = "n", .unit = "1", .kind = METRIC_SUM, .divisor = 1 };
	example->metrics[0] = &example->metric;
	example->batch = (struct batch){ 2000000000, 1000000000, example->metrics, 1, false };
	metric_init_series(&example->metric, NULL);
	assert_int_equal(pipe2(example->pipes, O_CLOEXEC | O_NONBLOCK), 0);
	snprintf(example->path, sizeof(example->path), "/proc/self/fd/%d", example->pipes[1]);
	example->options.path = example->path;
	assert_ok(exporter_open("test", exporter_find("csv"), &example->options, &context, &example->exporter));
}

static void example_done(struct example *example)
{
	exporter_free(example->exporter);
	metric_done_series(&example->metric);
	close(example->pipes[0]);
	close(example->pipes[1]);
}

static void example_add(struct example *example, const char *name, const char *text)
{
	struct attributes attributes;
	struct series *series;

	attributes_init(&attributes);
	assert_ok(attributes_add_text(&attributes, name, text, strlen(text)));
	assert_ok(series_get(&example->metric, &attributes, 1, &series));
	series_add(series, 1);
}

static void assert_written(struct example *example, const char *expected)
{
	char text[4096] = "";

	assert_ok(exporter_encode(example->exporter, &example->batch));
	assert_true(read(example->pipes[0], text, sizeof(text) - 1) > 0);
	assert_string_equal(text, expected);
}

#define HEAD	"time,collector,name,kind,unit,value,delta,rate,count,sum,p50,p90,p99,max"
#define NUMBERS "1970-01-01T00:00:02Z,a,n,sum,1,1,1,1,,,,,,,"

static void what_a_spreadsheet_would_run_begins_with_an_apostrophe(void **state)
{
	static const struct {
		const char *text, *field;
	} cases[] = {
		{ "=1+1", "'=1+1" },
		{ "+1", "'+1" },
		{ "-.mount", "'-.mount" },
		{ "@SUM(1)", "'@SUM(1)" },
		{ "'x", "''x" },
		{ "a=1", "a=1" },
		{ "=\"a\",b", "\"'=\"\"a\"\",b\"" },
		{ "", "" },
		{ "a b", "a b" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct example example;
		char expected[256];

		example_init(&example);
		series_begin(&example.metric);
		example_add(&example, "x", cases[i].text);
		series_end(&example.metric);
		snprintf(expected, sizeof(expected), HEAD ",x\r\n" NUMBERS "%s\r\n", cases[i].field);
		assert_written(&example, expected);
		example_done(&example);
	}
}

static void names_come_again_only_when_they_change(void **state)
{
	struct example example;

	example_init(&example);
	series_begin(&example.metric);
	example_add(&example, "x", "1");
	series_end(&example.metric);
	assert_written(&example, HEAD ",x\r\n" NUMBERS "1\r\n");
	assert_written(&example, NUMBERS "1\r\n");
	example_add(&example, "b", "2");
	series_end(&example.metric);
	assert_written(&example, HEAD ",b,x\r\n" NUMBERS ",1\r\n" NUMBERS "2,\r\n");
	assert_written(&example, NUMBERS ",1\r\n" NUMBERS "2,\r\n");
	example_done(&example);
}

static void names_that_were_lost_come_again(void **state)
{
	struct example example;
	unsigned int n = 0;
	bool has_failed = true;

	example_init(&example);
	series_begin(&example.metric);
	example_add(&example, "x", "1");
	series_end(&example.metric);
	for (; has_failed; n++) {
		char text[4096];
		int err;

		alloc_fail_at(n);
		err = exporter_encode(example.exporter, &example.batch);
		has_failed = alloc_end();
		assert_true(!err || (has_failed && err == -ENOMEM));
		assert_int_equal(read(example.pipes[0], text, sizeof(text)) > 0, !err);
	}
	assert_true(n > 1);
	assert_written(&example, NUMBERS "1\r\n");
	example_done(&example);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_spreadsheet_would_run_begins_with_an_apostrophe),
		cmocka_unit_test(names_come_again_only_when_they_change),
		cmocka_unit_test(names_that_were_lost_come_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

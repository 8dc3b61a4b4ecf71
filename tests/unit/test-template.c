/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>

#include "export/lines/name.h"
#include "util/cleanup.h"

static void pieces_are_found_in_their_order(void **state)
{
	static const struct {
		enum template_kind kind;
		const char *text;
	} expected[] = {
		{ TEMPLATE_TEXT, "a." },
		{ TEMPLATE_HOST, "host" },
		{ TEMPLATE_TEXT, "." },
		{ TEMPLATE_UNIT, "unit" },
		{ TEMPLATE_METRIC, "metric" },
		{ TEMPLATE_TEXT, "-x_9." },
		{ TEMPLATE_NAMED, "bpfpush.syscall.name" },
		{ TEMPLATE_TEXT, "." },
		{ TEMPLATE_ATTRIBUTES, "attributes" },
	};
	struct template template;
	const char *complaint = NULL;

	assert_ok(template_parse("a.{host}.{unit}{metric}-x_9.{bpfpush.syscall.name}.{attributes}", &template, &complaint));
	assert_null(complaint);
	assert_int_equal(template.n, ARRAY_SIZE(expected));
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		assert_int_equal(template.pieces[i].kind, expected[i].kind);
		assert_int_equal(template.pieces[i].size, strlen(expected[i].text));
		assert_memory_equal(template.pieces[i].text, expected[i].text, template.pieces[i].size);
	}
}

static void what_is_wrong_is_said(void **state)
{
	static const struct {
		const char *text, *complaint;
	} wrong[] = {
		{ "", "{metric} is missing" },
		{ "{host}.{unit}", "{metric} is missing" },
		{ "{metrics}", "{metric} is missing" },
		{ "{metric}.{metric}", "only once" },
		{ "{attributes}.{metric}.{attributes}", "only once" },
		{ ".{metric}", "empty level" },
		{ "{metric}.", "empty level" },
		{ "{metric}..{host}", "empty level" },
		{ "{metric", "a placeholder is {metric}" },
		{ "{}{metric}", "a placeholder is {metric}" },
		{ "{a b}{metric}", "a placeholder is {metric}" },
		{ "{metric}}", "only letters, digits" },
		{ "{metric} x", "only letters, digits" },
		{ "{metric}/x", "only letters, digits" },
		{ "{metric}:1|c\nx", "only letters, digits" },
		{ "{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{metric}",
		  "too many pieces" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct template template = { .n = 77 };
		const char *complaint = "";

		assert_int_equal(template_parse(wrong[i].text, &template, &complaint), -EINVAL);
		assert_non_null(strstr(complaint, wrong[i].complaint));
		assert_int_equal(template.n, 77);
		assert_int_equal(template_check(wrong[i].text, &complaint), -EINVAL);
	}
}

static void as_many_pieces_as_there_is_room_for(void **state)
{
	struct template template;
	const char *complaint;

	assert_ok(template_parse("{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{metric}",
				 &template, &complaint));
	assert_int_equal(template.n, TEMPLATE_PIECES_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_are_found_in_their_order),
		cmocka_unit_test(what_is_wrong_is_said),
		cmocka_unit_test(as_many_pieces_as_there_is_room_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

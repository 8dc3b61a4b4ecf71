/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>

#include "metric/attribute.h"
#include "util/buf.h"
#include "util/cleanup.h"

/* Is it what is wanted, and a hash where bytes were replaced? */
static void assert_replaced(const char *text, const char *want)
{
	size_t n = strlen(want);

	assert_true(strlen(text) >= n);
	assert_memory_equal(text, want, n);
	if (strstr(want, "\xef\xbf\xbd")) {
		assert_int_equal(text[n], '~');
		assert_int_equal(strspn(text + n + 1, "0123456789abcdef"), 8);
		n += 9;
	}
	assert_int_equal(strlen(text), n);
}

static void hostile_text_becomes_printable_utf8(void **state)
{
	static const struct {
		const char *name, *in;
		size_t size;
		const char *want;
	} cases[] = {
		{ "plain", "nginx", 5, "nginx" },
		{ "empty", "", 0, "" },
		{ "newline", "a\nb", 3, "a\xef\xbf\xbd" "b" },
		{ "NUL inside", "a\0b", 3, "a\xef\xbf\xbd" "b" },
		{ "delete", "a\x7f", 2, "a\xef\xbf\xbd" },
		{ "two, three, four bytes", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9,
		  "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" },
		{ "overlong slash", "\xc0\xaf", 2, "\xef\xbf\xbd\xef\xbf\xbd" },
		{ "surrogate", "\xed\xa0\x80", 3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "cut short", "\xe2\x82", 2, "\xef\xbf\xbd\xef\xbf\xbd" },
		{ "above U+10FFFF", "\xf4\x90\x80\x80", 4, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "C1 control", "\xc2\x85", 2, "\xef\xbf\xbd\xef\xbf\xbd" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct attributes attributes;

		attributes_init(&attributes);
		assert_ok(attributes_add_text(&attributes, "name", cases[i].in, cases[i].size));
		assert_replaced(attributes.items[0].text, cases[i].want);
	}
}

static void long_text_is_cut_between_characters(void **state)
{
	struct attributes attributes;
	char text[2 * ATTRIBUTE_TEXT_BYTES];

	for (size_t i = 0; i + 2 < sizeof(text); i += 3)
		memcpy(text + i, "\xe2\x82\xac", 3);
	attributes_init(&attributes);
	assert_ok(attributes_add_text(&attributes, "name", text, sizeof(text) - sizeof(text) % 3));
	/* 246 bytes of characters, a hash. */
	assert_int_equal(strlen(attributes.items[0].text), 246 + 9);
	assert_memory_equal(attributes.items[0].text, text, 246);
	assert_int_equal(attributes.items[0].text[246], '~');
	assert_int_equal(strspn(attributes.items[0].text + 247, "0123456789abcdef"), 8);
}

static void long_texts_that_begin_alike_stay_two(void **state)
{
	struct attributes attributes;
	char text[ATTRIBUTE_TEXT_BYTES + 1];

	memset(text, 'x', sizeof(text));
	attributes_init(&attributes);
	assert_ok(attributes_add_text(&attributes, "whole", text, ATTRIBUTE_TEXT_BYTES));
	assert_ok(attributes_add_text(&attributes, "one", text, sizeof(text)));
	text[ATTRIBUTE_TEXT_BYTES] = 'y';
	assert_ok(attributes_add_text(&attributes, "other", text, sizeof(text)));
	assert_int_equal(strspn(attributes.items[0].text, "x"), ATTRIBUTE_TEXT_BYTES);
	assert_int_equal(strlen(attributes.items[1].text), ATTRIBUTE_TEXT_BYTES);
	assert_int_equal(strspn(attributes.items[1].text, "x"), ATTRIBUTE_TEXT_BYTES - 9);
	assert_string_not_equal(attributes.items[1].text, attributes.items[2].text);
}

static void texts_that_look_alike_stay_two(void **state)
{
	static const char *const pairs[][2] = { { "bad\xff.service", "bad\xfe.service" }, { "a\x1b" "b", "a\x1c" "b" } };

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		struct attributes attributes;

		attributes_init(&attributes);
		for (size_t k = 0; k < 2; k++)
			assert_ok(attributes_add_text(&attributes, "name", pairs[i][k], strlen(pairs[i][k])));
		assert_string_not_equal(attributes.items[0].text, attributes.items[1].text);
	}
}

static void several_lines_are_longer_and_leave_room_for_others(void **state)
{
	static const char longest[ATTRIBUTE_LINES_BYTES + 1] = "first\nsecond\t";
	char name[ATTRIBUTES_MAX][4], text[sizeof(longest)];
	struct attributes attributes;

	memset(text, 'x', sizeof(text));
	attributes_init(&attributes);
	assert_ok(attributes_add_lines(&attributes, "lines", longest, strlen(longest)));
	assert_replaced(attributes.items[0].text, "first\nsecond\xef\xbf\xbd");

	attributes_init(&attributes);
	assert_ok(attributes_add_lines(&attributes, "whole", text, ATTRIBUTE_LINES_BYTES));
	assert_int_equal(strlen(attributes.items[0].text), ATTRIBUTE_LINES_BYTES);
	for (int i = 1; i < ATTRIBUTES_MAX; i++) {
		snprintf(name[i], sizeof(name[i]), "a%d", i);
		assert_ok(attributes_add_lines(&attributes, name[i], text, sizeof(text)));
		assert_int_equal(strlen(attributes.items[i].text), ATTRIBUTE_TEXT_BYTES);
		assert_int_equal(attributes.items[i].text[ATTRIBUTE_TEXT_BYTES - 9], '~');
	}
	assert_int_equal(attributes_add_lines(&attributes, "more", text, 1), -ENOSPC);
}

static void what_does_not_fit_is_refused_and_the_rest_kept(void **state)
{
	struct attributes attributes;

	attributes_init(&attributes);
	for (int i = 0; i < ATTRIBUTES_MAX; i++)
		assert_ok(attributes_add_number(&attributes, "n", i));
	assert_error(attributes_add_number(&attributes, "n", 99), ENOSPC);
	assert_error(attributes_add_flag(&attributes, "n", true), ENOSPC);
	assert_error(attributes_add_text(&attributes, "n", "x", 1), ENOSPC);
	assert_int_equal(attributes.n, ATTRIBUTES_MAX);
	assert_int_equal(attributes.items[ATTRIBUTES_MAX - 1].number, ATTRIBUTES_MAX - 1);
}

static void an_event_has_long_texts_times_and_lists(void **state)
{
	static const char words[] = "one\0\0\x1b[m three\0\0\0", json[] = "\"words\":[\"one\",\"\",\"";
	_cleanup_(buf_done) struct buf out = BUF_INIT;
	struct attributes attributes;
	char text[1000];

	memset(text, 'x', sizeof(text));
	attributes_init(&attributes);
	attributes.is_of_event = true;
	assert_ok(attributes_add_text(&attributes, "long", text, sizeof(text)));
	assert_int_equal(strlen(attributes.items[0].text), sizeof(text));
	assert_ok(attributes_add_real(&attributes, "time", 0.0012345));
	assert_ok(attributes_add_texts(&attributes, "words", words, sizeof(words)));
	assert_int_equal(attributes.n, 3);
	assert_int_equal(attributes.items[2].number, 3);
	attribute_append(&out, &attributes.items[1]);
	assert_string_equal(buf_text(&out), "0.0012345");
	buf_reset(&out);
	attribute_append(&out, &attributes.items[2]);
	assert_replaced(buf_text(&out), "one  \xef\xbf\xbd[m three");
	buf_reset(&out);
	attribute_append_json(&out, &attributes.items[2]);
	assert_memory_equal(buf_text(&out), json, sizeof(json) - 1);
	assert_ok(attributes_add_texts(&attributes, "none", "\0\0", 2));
	assert_int_equal(attributes.items[3].number, 0);
	buf_reset(&out);
	attribute_append(&out, &attributes.items[3]);
	assert_string_equal(buf_text(&out), "");
}

/* Of long lists, the end is missing, and what follows has its room. */
static void a_list_leaves_room_for_others(void **state)
{
	char words[8192], name[ATTRIBUTES_MAX][4];
	struct attributes attributes;

	for (size_t length = 1; length < 40; length++) {
		for (size_t i = 0; i < sizeof(words); i++)
			words[i] = i % length == length - 1 ? '\0' : 'x';
		attributes_init(&attributes);
		attributes.is_of_event = true;
		for (int i = 0; i < ATTRIBUTES_MAX; i++) {
			snprintf(name[i], sizeof(name[i]), "a%d", i);
			assert_ok(attributes_add_texts(&attributes, name[i], words, sizeof(words)));
			if (length > 1)
				assert_true((size_t)attributes.items[i].number >= ATTRIBUTE_TEXT_BYTES / (length + 2));
			assert_true(attributes.used <= sizeof(attributes.storage));
		}
	}
	assert_error(attributes_add_texts(&attributes, "more", words, sizeof(words)), ENOSPC);
}

static void sorting_is_by_name(void **state)
{
	struct attributes attributes;

	attributes_init(&attributes);
	assert_ok(attributes_add_text(&attributes, "c", "3", 1));
	assert_ok(attributes_add_number(&attributes, "a", 1));
	assert_ok(attributes_add_flag(&attributes, "b", true));
	attributes_sort(&attributes);
	assert_string_equal(attributes.items[0].name, "a");
	assert_string_equal(attributes.items[1].name, "b");
	assert_string_equal(attributes.items[2].text, "3");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostile_text_becomes_printable_utf8),
		cmocka_unit_test(long_text_is_cut_between_characters),
		cmocka_unit_test(long_texts_that_begin_alike_stay_two),
		cmocka_unit_test(texts_that_look_alike_stay_two),
		cmocka_unit_test(several_lines_are_longer_and_leave_room_for_others),
		cmocka_unit_test(what_does_not_fit_is_refused_and_the_rest_kept),
		cmocka_unit_test(an_event_has_long_texts_times_and_lists),
		cmocka_unit_test(a_list_leaves_room_for_others),
		cmocka_unit_test(sorting_is_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

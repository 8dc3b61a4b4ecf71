/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdio.h>

#include "alloc.h"
#include "util/setting-table.h"

struct thing {
	bool is_on;
	uint64_t number, timeout_ns, limit_bytes;
	char *name, *path;
	int colour;
	struct setting_list headers, words;
};

static int check_path(const char *text, const char **ret_complaint)
{
	if (*text == '/')
		return 0;
	*ret_complaint = "must begin with \"/\"";
	return -EINVAL;
}

static int check_word(const char *text, const char **ret_complaint)
{
	if (*text != '!')
		return 0;
	*ret_complaint = "a name has no \"!\"";
	return -EINVAL;
}

static const char *const colours[] = { "red", "green", "blue", NULL };

static const struct setting_row rows[] = {
	SETTING(struct thing, is_on, "on", SETTING_BOOL, "yes"),
	SETTING(struct thing, number, "number", SETTING_U64, "5", .minimum = 2, .maximum = 1000),
	SETTING(struct thing, timeout_ns, "timeout", SETTING_DURATION, "10s", .minimum = 1000000000,
		.maximum = 5400000000000),
	SETTING(struct thing, limit_bytes, "limit", SETTING_SIZE, "64KiB", .minimum = 1024,
		.maximum = 8 << 20),
	SETTING(struct thing, name, "name", SETTING_TEXT, "me"),
	SETTING(struct thing, path, "path", SETTING_TEXT, NULL, .check = check_path),
	SETTING(struct thing, colour, "colour", SETTING_CHOICE, "green", .choices = colours),
	SETTING(struct thing, headers, "header", SETTING_LIST, NULL),
	SETTING(struct thing, words, "words", SETTING_WORDS, "one two", .check = check_word),
};
static const struct setting_table table = SETTING_TABLE(rows, struct thing);

static void set(struct thing *thing, const char *key, const char *value, const char *mistake)
{
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;

	assert_ok(setting_table_set(&table, thing,
				    &(struct assignment){ key, value, "f", 3 }, &diag));
	assert_string_equal(buf_text(&diag.text), mistake);
}

static void defaults_are_set(void **state)
{
	struct thing thing = { 0 };

	assert_ok(setting_table_init(&table, &thing));
	assert_true(thing.is_on);
	assert_int_equal(thing.number, 5);
	assert_int_equal(thing.timeout_ns, 10000000000);
	assert_int_equal(thing.limit_bytes, 65536);
	assert_string_equal(thing.name, "me");
	assert_null(thing.path);
	assert_int_equal(thing.colour, 1);
	assert_int_equal(thing.headers.n_items, 0);
	assert_int_equal(thing.words.n_items, 2);
	assert_string_equal(thing.words.items[1], "two");
	setting_table_done(&table, &thing);
	assert_null(thing.name);
	assert_int_equal(thing.words.n_items, 0);
}

static void values_replace_and_lists_grow(void **state)
{
	struct thing thing = { 0 };

	assert_ok(setting_table_init(&table, &thing));
	set(&thing, "on", "off", "");
	assert_false(thing.is_on);
	set(&thing, "number", "0x10", "");
	assert_int_equal(thing.number, 16);
	set(&thing, "timeout", "1h30m", "");
	assert_int_equal(thing.timeout_ns, 5400000000000);
	set(&thing, "limit", "8MiB", "");
	assert_int_equal(thing.limit_bytes, 8388608);
	set(&thing, "name", "you", "");
	set(&thing, "name", "they", "");
	assert_string_equal(thing.name, "they");
	set(&thing, "colour", "Blue", "");
	assert_int_equal(thing.colour, 2);

	set(&thing, "header", "A: b, c", "");
	set(&thing, "header", "D: e", "");
	assert_int_equal(thing.headers.n_items, 2);
	assert_string_equal(thing.headers.items[0], "A: b, c");
	set(&thing, "header", "", "");
	assert_int_equal(thing.headers.n_items, 0);

	/* The first setting replaces the default. */
	set(&thing, "words", "a,b c", "");
	set(&thing, "words", "d ,, e,", "");
	assert_int_equal(thing.words.n_items, 5);
	assert_string_equal(thing.words.items[0], "a");
	assert_string_equal(thing.words.items[2], "c");
	assert_string_equal(thing.words.items[4], "e");
	setting_table_done(&table, &thing);
}

static void mistakes_say_what_is_possible(void **state)
{
	static const struct {
		const char *key, *value, *mistake;
	} cases[] = {
		{ "timeuot", "1s", "f:3: unknown key \"timeuot\": did you mean \"timeout\"?\n" },
		{ "frequency", "1s",
		  "f:3: unknown key \"frequency\": there are on, number, timeout, limit, name, path, colour, header, "
		  "words\n" },
		{ "on", "maybe", "f:3: on: \"maybe\" is neither yes nor no\n" },
		{ "number", "many", "f:3: number: \"many\" is not a whole number: write it like 2000\n" },
		{ "number", "1", "f:3: number: \"1\" is too small: the minimum is 2\n" },
		{ "number", "1001", "f:3: number: \"1001\" is too large: the maximum is 1000\n" },
		{ "number", "99999999999999999999", "f:3: number: \"99999999999999999999\" is too large\n" },
		{ "timeout", "10",
		  "f:3: timeout: \"10\" needs a unit: write 10s (a duration is written like 10s, 500ms or 1m30s)\n" },
		{ "timeout", "1.5s",
		  "f:3: timeout: \"1.5s\" is not a duration: write it like 10s, 500ms or 1m30s\n" },
		{ "timeout", "", "f:3: timeout: \"\" is not a duration: write it like 10s, 500ms or 1m30s\n" },
		{ "timeout", "999ms", "f:3: timeout: \"999ms\" is too small: the minimum is 1s\n" },
		{ "timeout", "2h", "f:3: timeout: \"2h\" is too large: the maximum is 90m\n" },
		{ "limit", "64",
		  "f:3: limit: \"64\" needs a unit: write 64KiB (a size is written like 512B, 64KiB or 8MiB)\n" },
		{ "limit", "4096",
		  "f:3: limit: \"4096\" needs a unit: write 4096B (a size is written like 512B, 64KiB or 8MiB)\n" },
		{ "limit", "64K", "f:3: limit: \"64K\" is not a size: write it like 512B, 64KiB or 8MiB\n" },
		{ "limit", "1B", "f:3: limit: \"1B\" is too small: the minimum is 1KiB\n" },
		{ "limit", "1GiB", "f:3: limit: \"1GiB\" is too large: the maximum is 8MiB\n" },
		{ "path", "x", "f:3: path: must begin with \"/\"\n" },
		{ "colour", "gren", "f:3: unknown colour \"gren\": did you mean \"green\"?\n" },
		{ "colour", "mauve", "f:3: unknown colour \"mauve\": there are red, green, blue\n" },
		{ "words", "!a b !c", "f:3: words: \"!a\": a name has no \"!\"\nf:3: words: \"!c\": a name has no \"!\"\n" },
	};
	struct thing thing = { 0 }, before;

	assert_ok(setting_table_init(&table, &thing));
	before = thing;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		set(&thing, cases[i].key, cases[i].value, cases[i].mistake);
	assert_int_equal(thing.number, before.number);
	assert_int_equal(thing.timeout_ns, before.timeout_ns);
	assert_int_equal(thing.limit_bytes, before.limit_bytes);
	assert_int_equal(thing.colour, before.colour);
	assert_null(thing.path);
	setting_table_done(&table, &thing);
}

static void a_wrong_default_is_found(void **state)
{
	static const struct setting_row wrong_rows[] = {
		SETTING(struct thing, name, "name", SETTING_TEXT, "x"),
		SETTING(struct thing, timeout_ns, "timeout", SETTING_DURATION, "10"),
	};
	static const struct setting_table wrong = SETTING_TABLE(wrong_rows, struct thing);
	struct thing thing = { 0 };

	assert_error(setting_table_init(&wrong, &thing), EINVAL);
	setting_table_done(&wrong, &thing);
}

static int fill(struct thing *thing, struct diag *diag)
{
	static const char *const settings[][2] = {
		{ "name", "x" },
		{ "header", "y" },
		{ "words", "a, b" },
		{ "colour", "blue" },
		{ "timeout", "2s" },
	};
	int r = setting_table_init(&table, thing);

	for (size_t i = 0; i < ARRAY_SIZE(settings) && r >= 0; i++)
		r = setting_table_set(&table, thing,
				      &(struct assignment){ settings[i][0], settings[i][1], "f", 1 }, diag);
	/* What only goes to a message is no failure. */
	if (r >= 0 && thing->colour != 2)
		r = -ENOMEM;
	return r;
}

static void no_memory_is_told_and_nothing_leaks(void **state)
{
	struct thing thing = { 0 };
	struct diag diag = DIAG_INIT;

	assert_survives_failing_allocations(fill(&thing, &diag), {
		setting_table_done(&table, &thing);
		diag_done(&diag);
		memset(&thing, 0, sizeof(thing));
	});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_set),
		cmocka_unit_test(values_replace_and_lists_grow),
		cmocka_unit_test(mistakes_say_what_is_possible),
		cmocka_unit_test(a_wrong_default_is_found),
		cmocka_unit_test(no_memory_is_told_and_nothing_leaks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

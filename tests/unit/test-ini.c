/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdio.h>

#include "alloc.h"
#include "util/ini.h"

/* Reads text; the entries as "line [section argument] key=value|" in seen, the mistakes in diag. */
static int read_text(const char *text, size_t size, struct buf *seen, struct diag *diag)
{
	_cleanup_(ini_file_freep) struct ini_file *file = NULL;
	_cleanup_(fclosep) FILE *f = fmemopen((void *)(size ? text : "\n"), size ? size : 1, "r");
	int r;

	assert_non_null(f);
	r = ini_read(f, "a.conf", diag, &file);
	if (r < 0) {
		assert_null(file);
		return r;
	}
	assert_string_equal(file->path, "a.conf");
	for (size_t i = 0; i < file->n_entries; i++) {
		const struct ini_entry *entry = &file->entries[i];

		buf_printf(seen, "%u [%s%s%s]", entry->line, entry->section, *entry->argument ? " " : "",
			   entry->argument);
		if (entry->key)
			buf_printf(seen, " %s=%s", entry->key, entry->value);
		buf_append_byte(seen, '|');
	}
	return 0;
}

static void check(const char *text, size_t size, const char *entries, const char *mistakes)
{
	_cleanup_(buf_done) struct buf seen = BUF_INIT;
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	unsigned int n = 0;

	assert_ok(read_text(text, size, &seen, &diag));
	assert_string_equal(buf_text(&seen), entries);
	assert_string_equal(buf_text(&diag.text), mistakes);
	for (const char *at = mistakes; *at; at++)
		n += *at == '\n';
	assert_int_equal(diag.n_errors, n);
}

static void entries_come_with_their_places(void **state)
{
	static const struct {
		const char *text, *entries;
	} cases[] = {
		{ "", "" },
		{ "\n\n", "" },
		{ "[a]\nk=v\n", "1 [a]|2 [a] k=v|" },
		{ "[a]\nk=v", "1 [a]|2 [a] k=v|" },
		{ "[a]\nk=", "1 [a]|2 [a] k=|" },
		{ "[a]", "1 [a]|" },
		{ "[a]\n[b]\n", "1 [a]|2 [b]|" },
		{ "\n# c\n ; c\n[a]\n\n\tk = v \n", "4 [a]|6 [a] k=v|" },
		{ "[ metric  map.field ]\nk=v\n", "1 [metric map.field]|2 [metric map.field] k=v|" },
		{ "[usdt /usr/lib/x.so:p:n]\n", "1 [usdt /usr/lib/x.so:p:n]|" },
		{ "[a]\r\nk = v\r\n", "1 [a]|2 [a] k=v|" },
		{ "\xef\xbb\xbf[a]\nk=v\n", "1 [a]|2 [a] k=v|" },
		{ "[a]\nk = a = b\nl = https://h:1/x\n", "1 [a]|2 [a] k=a = b|3 [a] l=https://h:1/x|" },
		/* In inih an indented line continues the one above. */
		{ "[a]\n  x=1\n  y=2\n", "1 [a]|2 [a] x=1|3 [a] y=2|" },
		{ "[a]\nk = a;b#c\n", "1 [a]|2 [a] k=a;b#c|" },
		{ "[a]\nk = \"a\tb\"\n", "1 [a]|2 [a] k=\"a\tb\"|" },
		{ "[a]\nk = Gr\xc3\xb6\xc3\x9f"
		  "e\n",
		  "1 [a]|2 [a] k=Gr\xc3\xb6\xc3\x9f"
		  "e|" },
		{ "[a]\nservice.name-1_X = v\n", "1 [a]|2 [a] service.name-1_X=v|" },
		{ "[a]\nk=1\nk=2\n", "1 [a]|2 [a] k=1|3 [a] k=2|" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check(cases[i].text, strlen(cases[i].text), cases[i].entries, "");
}

static void what_inih_would_guess_is_a_mistake(void **state)
{
	static const struct {
		const char *text, *entries, *mistakes;
	} cases[] = {
		{ "k=v\n[a]\n", "2 [a]|", "a.conf:1: key before the first [section]\n" },
		{ "[a]\nhttps://host\n", "1 [a]|", "a.conf:2: no \"=\": write key = value\n" },
		{ "[a]\nendpoint: x\n", "1 [a]|", "a.conf:2: no \"=\": write key = value\n" },
		{ "[a]\nhttps://h=2\n", "1 [a]|",
		  "a.conf:2: bad key \"https://h\": a key consists of A-Z a-z 0-9 _ . -\n" },
		{ "[a]\n=5\n", "1 [a]|", "a.conf:2: no key before \"=\": write key = value\n" },
		{ "[a]\ntwo words = 5\n", "1 [a]|",
		  "a.conf:2: bad key \"two words\": a key consists of A-Z a-z 0-9 _ . -\n" },
		{ "[a]\nk = v ; c\nl = v #c\nm = #c\nn = ;\no = 1\n", "1 [a]|6 [a] o=1|",
		  "a.conf:2: k: \"#\" or \";\" after a blank: put a comment on a line of its own; a value cannot contain this\n"
		  "a.conf:3: l: \"#\" or \";\" after a blank: put a comment on a line of its own; a value cannot contain this\n"
		  "a.conf:4: m: \"#\" or \";\" after a blank: put a comment on a line of its own; a value cannot contain this\n"
		  "a.conf:5: n: \"#\" or \";\" after a blank: put a comment on a line of its own; a value cannot contain this\n" },
		{ "[a]\n[b\nk=v\n[c]\nl=w\n", "1 [a]|4 [c]|5 [c] l=w|",
		  "a.conf:2: this section has no \"]\": write [kind] or [kind name]\n" },
		{ "[a] b=2\nk=v\n", "", "a.conf:1: text after \"]\": a section stands alone on its line\n" },
		{ "[a] # c\nk=v\n", "", "a.conf:1: text after \"]\": a section stands alone on its line\n" },
		{ "[]\n[a b c]\n[a [b]\n[\xc3\xa4]\n", "",
		  "a.conf:1: bad section: write [kind] or [kind name], each a single word; the kind consists of A-Z a-z 0-9 _ . -\n"
		  "a.conf:2: bad section: write [kind] or [kind name], each a single word; the kind consists of A-Z a-z 0-9 _ . -\n"
		  "a.conf:3: bad section: write [kind] or [kind name], each a single word; the kind consists of A-Z a-z 0-9 _ . -\n"
		  "a.conf:4: bad section: write [kind] or [kind name], each a single word; the kind consists of A-Z a-z 0-9 _ . -\n" },
		{ "[a]\nk=v\rw\n", "1 [a]|", "a.conf:2: control character 0x0d at column 4\n" },
		{ "[a]\nk=\033[0m\n", "1 [a]|", "a.conf:2: control character 0x1b at column 3\n" },
		{ "[a]\nk=\x7f\n", "1 [a]|", "a.conf:2: control character 0x7f at column 3\n" },
		{ "[a]\nk=\xc2\x85\n", "1 [a]|", "a.conf:2: control character 0x85 at column 3\n" },
		{ "[a]\n# \xff\n", "1 [a]|", "a.conf:2: byte 0xff at column 3 is not UTF-8\n" },
		{ "[a]\nk=\xc0\xaf\n", "1 [a]|", "a.conf:2: byte 0xc0 at column 3 is not UTF-8\n" },
		{ "[a]\nk=\xed\xa0\x80\n", "1 [a]|", "a.conf:2: byte 0xed at column 3 is not UTF-8\n" },
		{ "[a]\n[b\xff]\nk=v\n", "1 [a]|", "a.conf:2: byte 0xff at column 3 is not UTF-8\n" },
		{ "\xef\xbb\xbf\xef\xbb\xbf[a]\n", "",
		  "a.conf:1: no \"=\": write key = value\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check(cases[i].text, strlen(cases[i].text), cases[i].entries, cases[i].mistakes);
	check("[a]\nk=a\0b\nl=1\n", 14, "1 [a]|3 [a] l=1|", "a.conf:2: control character 0x00 at column 4\n");
}

static void a_line_is_read_whole_or_not_at_all(void **state)
{
	static char text[2 * INI_LINE_BYTES], want[2 * INI_LINE_BYTES];
	int n;

	n = snprintf(text, sizeof(text), "[a]\nk=%0*d\nl=1\n", INI_LINE_BYTES - 2, 7);
	snprintf(want, sizeof(want), "1 [a]|2 [a] k=%0*d|3 [a] l=1|", INI_LINE_BYTES - 2, 7);
	check(text, (size_t)n, want, "");
	n = snprintf(text, sizeof(text), "[a]\nk=%0*d\r\nl=1\n", INI_LINE_BYTES - 1, 7);
	check(text, (size_t)n, "1 [a]|3 [a] l=1|", "a.conf:2: this line has 16385 bytes, and 16384 are the limit\n");
	/* Names that inih would cut at 49 bytes. */
	n = snprintf(text, sizeof(text), "[kind%060d %060d]\nkey%060d=v\n", 1, 2, 3);
	snprintf(want, sizeof(want), "1 [kind%060d %060d]|2 [kind%060d %060d] key%060d=v|", 1, 2, 1, 2, 3);
	check(text, (size_t)n, want, "");
}

/* inih could not read it. */
static void a_long_value_stays_whole(void **state)
{
	static const char words[] = "[a] b=c a;b#c x:y  Gr\xc3\xbc\xc3\x9f"
				    "e\t";
	char text[2048], want[2048], value[1024];

	for (int shift = 0; shift < 40; shift++) {
		int n = snprintf(value, sizeof(value), "%.*s", shift, "########################################");

		value[0] = 'v';
		n = n ? n : 1;
		for (int i = 0; i < 25; i++)
			n += snprintf(value + n, sizeof(value) - (size_t)n, "%s", words);
		value[n++] = '.';
		value[n] = '\0';
		n = snprintf(text, sizeof(text), "[a]\nk = %s\nl=1\n", value);
		snprintf(want, sizeof(want), "1 [a]|2 [a] k=%s|3 [a] l=1|", value);
		check(text, (size_t)n, want, "");
	}
	snprintf(text, sizeof(text), "[a]\nk = a%250sb\nl=%250sc\nkey%0250d=x\nm=1\n", "", "", 0);
	snprintf(want, sizeof(want), "1 [a]|2 [a] k=a%250sb|3 [a] l=c|5 [a] m=1|", "");
	check(text, strlen(text), want, "a.conf:4: this line is too long for this machine's libinih\n");
}

static void a_huge_file_is_refused(void **state)
{
	size_t size = INI_FILE_BYTES;
	_cleanup_(freep) char *text = malloc(size + 1);

	memset(text, '\n', size + 1);
	check(text, size, "", "");
	check(text, size + 1, "", "a.conf: is larger than 1 MiB, which is too large for a configuration file\n");
}

static void mistakes_and_entries_are_bounded(void **state)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT, seen = BUF_INIT;
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;

	for (int i = 0; i < 5000; i++)
		buf_append_text(&text, "x\n");
	assert_ok(read_text((char *)text.data, text.size, &seen, &diag));
	assert_int_equal(diag.n_errors, INI_MISTAKES + 1);
	assert_non_null(strstr(buf_text(&diag.text), "a.conf:101: 100 mistakes, the rest of the file is not read\n"));

	diag_done(&diag);
	buf_reset(&text);
	buf_append_text(&text, "[a]\n");
	for (int i = 0; i < INI_ENTRIES + 10; i++)
		buf_append_text(&text, "k=\n");
	assert_ok(read_text((char *)text.data, text.size, &seen, &diag));
	assert_string_equal(buf_text(&diag.text),
			    "a.conf:10001: more than 10000 keys and sections, the rest is not read\n");
}

static void a_directory_is_an_error(void **state)
{
	_cleanup_(ini_file_freep) struct ini_file *file = NULL;
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	_cleanup_(fclosep) FILE *f = fopen("/", "r");

	assert_error(ini_read(f, "/", &diag, &file), EISDIR);
	assert_null(file);
}

static void what_was_said_before_is_found(void **state)
{
	static const char text[] = "[a]\nk=1\nl=2\n[a b]\nk=1\n[a]\nk=3\n[b]\nk=1\n";
	_cleanup_(ini_file_freep) struct ini_file *file = NULL;
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	_cleanup_(fclosep) FILE *f = fmemopen((void *)text, sizeof(text) - 1, "r");
	static const unsigned int earlier[] = { 0, 0, 0, 0, 0, 1, 2, 0, 0 };

	assert_ok(ini_read(f, "a.conf", &diag, &file));
	assert_int_equal(file->n_entries, ARRAY_SIZE(earlier));
	for (size_t i = 0; i < file->n_entries; i++) {
		const struct ini_entry *found = ini_find_earlier(file, &file->entries[i]);

		assert_int_equal(found ? found->line : 0, earlier[i]);
	}
}

static void no_memory_is_told_and_nothing_leaks(void **state)
{
	static const char text[] = "[a]\nk=1\nl\n[b x]\nm=3\n";
	struct ini_file *file = NULL;
	struct diag diag = DIAG_INIT;
	FILE *f = fmemopen((void *)text, sizeof(text) - 1, "r");

	assert_survives_failing_allocations(ini_read(f, "a.conf", &diag, &file), {
		file = ini_file_free(file);
		diag_done(&diag);
		rewind(f);
	});
	fclose(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_come_with_their_places),
		cmocka_unit_test(what_inih_would_guess_is_a_mistake),
		cmocka_unit_test(a_line_is_read_whole_or_not_at_all),
		cmocka_unit_test(a_long_value_stays_whole),
		cmocka_unit_test(a_huge_file_is_refused),
		cmocka_unit_test(mistakes_and_entries_are_bounded),
		cmocka_unit_test(a_directory_is_an_error),
		cmocka_unit_test(what_was_said_before_is_found),
		cmocka_unit_test(no_memory_is_told_and_nothing_leaks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

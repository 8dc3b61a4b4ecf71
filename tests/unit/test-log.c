/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "logged.h"
#include "util/log.h"
#include "util/utf8.h"

static char seen[65536];

/* What log_event() writes to a stderr that is the end to, read from its other end; both are closed. */
static const char *log_through(int from, int to, enum log_level max, enum log_level level, const char *text)
{
	_cleanup_(closep) int kept = dup(STDERR_FILENO);
	ssize_t n;

	dup2(to, STDERR_FILENO);
	log_init(max);
	errno = 42;
	log_event(level, NULL, NULL, "%s", text);
	log_lines(level, strncmp(text, "lines", 5) ? "" : text);
	assert_int_equal(errno, 42);
	dup2(kept, STDERR_FILENO);
	n = read(from, seen, sizeof(seen) - 1);
	seen[n > 0 ? n : 0] = '\0';
	close(from);
	close(to);
	return seen;
}

static const char *log_through_pipe(enum log_level max, enum log_level level, const char *text)
{
	int ends[2];

	assert_ok(pipe2(ends, O_CLOEXEC | O_NONBLOCK));
	return log_through(ends[0], ends[1], max, level, text);
}

static void a_pipe_gets_them_plainly(void **state)
{
	assert_string_equal(log_through_pipe(LOG_LEVEL_INFO, LOG_LEVEL_ERROR, "a"), "a\n");
	assert_string_equal(log_through_pipe(LOG_LEVEL_INFO, LOG_LEVEL_INFO, "a"), "a\n");
	assert_string_equal(log_through_pipe(LOG_LEVEL_INFO, LOG_LEVEL_DEBUG, "a"), "");
	assert_string_equal(log_through_pipe(LOG_LEVEL_DEBUG, LOG_LEVEL_DEBUG, "a"), "a\n");
	assert_string_equal(log_through_pipe(LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, "a"), "");
}

static void lines_in_the_stream_of_the_journal_carry_their_level(void **state)
{
	log_catch();
	log_set_level(LOG_LEVEL_DEBUG);
	log_error("a");
	log_warning("a");
	log_info("a");
	log_debug("a");
	assert_string_equal(log_caught(), "<3>a\n<4>a\n<6>a\n<7>a\n");
}

static void a_terminal_shows_them_plainly(void **state)
{
	int controller = posix_openpt(O_RDWR | O_NOCTTY), terminal; /* its kernel thread may be late */

	if (controller < 0) {
		print_message("no pseudo terminals here\n");
		skip();
	}
	assert_ok(grantpt(controller));
	assert_ok(unlockpt(controller));
	terminal = open(ptsname(controller), O_RDWR | O_NOCTTY);
	assert_true(terminal >= 0);
	assert_string_equal(log_through(controller, terminal, LOG_LEVEL_INFO, LOG_LEVEL_ERROR, "a"), "a\r\n");
}

static void strangers_text_breaks_no_line(void **state)
{
	assert_string_equal(log_through_pipe(LOG_LEVEL_INFO, LOG_LEVEL_INFO, "a\n<3>b\r\033[1m\tc\x7f\n\n"),
			    "a?<3>b??[1m c?\n");
	assert_string_equal(log_through_pipe(LOG_LEVEL_INFO, LOG_LEVEL_INFO, "\xff\xc3\xa4\xc2\x85\xc3"),
			    "?\xc3\xa4???\n");
}

static void lines_are_messages_of_their_own(void **state)
{
	assert_string_equal(log_through_pipe(LOG_LEVEL_INFO, LOG_LEVEL_WARNING, "lines\nof text\n"),
			    "lines?of text\nlines\nof text\n");
}

static void a_long_message_is_cut(void **state)
{
	static char text[20000];
	const char *line;

	memset(text, 'x', sizeof(text) - 1);
	line = log_through_pipe(LOG_LEVEL_INFO, LOG_LEVEL_INFO, text);
	assert_int_equal(strlen(line), 16383 + 1);
}

static void another_stream_is_not_the_journal(void **state)
{
	setenv("JOURNAL_STREAM", "1:1", 1);
	assert_string_equal(log_through_pipe(LOG_LEVEL_INFO, LOG_LEVEL_INFO, "a"), "a\n");
	setenv("JOURNAL_STREAM", "nonsense", 1);
	assert_string_equal(log_through_pipe(LOG_LEVEL_INFO, LOG_LEVEL_INFO, "a"), "a\n");
	unsetenv("JOURNAL_STREAM");
}

static void characters_are_measured(void **state)
{
	static const struct {
		const char *text;
		size_t size, bytes;
	} cases[] = {
		{ "a", 1, 1 },
		{ "", 0, 0 },
		{ "\0", 1, 1 },
		{ "\xc3\xa4", 2, 2 },
		{ "\xc3\xa4", 1, 0 },
		{ "\xc1\xbf", 2, 0 },
		{ "\xe2\x82\xac", 3, 3 },
		{ "\xe2\x82", 2, 0 },
		{ "\xe0\x9f\xbf", 3, 0 },
		{ "\xed\x9f\xbf", 3, 3 },
		{ "\xed\xa0\x80", 3, 0 },
		{ "\xf0\x9f\x98\x80", 4, 4 },
		{ "\xf4\x8f\xbf\xbf", 4, 4 },
		{ "\xf4\x90\x80\x80", 4, 0 },
		{ "\x80", 1, 0 },
		{ "\xf0\x9f\x98\x41", 4, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(utf8_bytes(cases[i].text, cases[i].size), cases[i].bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pipe_gets_them_plainly),
		cmocka_unit_test(lines_in_the_stream_of_the_journal_carry_their_level),
		cmocka_unit_test(a_terminal_shows_them_plainly),
		cmocka_unit_test(strangers_text_breaks_no_line),
		cmocka_unit_test(lines_are_messages_of_their_own),
		cmocka_unit_test(a_long_message_is_cut),
		cmocka_unit_test(another_stream_is_not_the_journal),
		cmocka_unit_test(characters_are_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "export/transport/retry-after.h"
#include "util/cleanup.h"

#define NOW_S UINT64_C(784111777) /* Sun, 06 Nov 1994 08:49:37 GMT */

static void only_what_http_has_counts(void **state)
{
	static const struct {
		const char *text;
		uint64_t want_s;
	} cases[] = {
		{ "0", 0 },
		{ "7", 7 },
		{ "007", 7 },
		{ "300", 300 },
		{ "301", 300 },
		{ "18446744073709551616", 300 },
		{ "99999999999999999999999999999999999999999999999999999999999999999999999999999999", 300 },
		{ "Sun, 06 Nov 1994 08:49:37 GMT", 0 },
		{ "Sun, 06 Nov 1994 08:49:36 GMT", 0 },
		{ "Sun, 06 Nov 1994 08:49:38 GMT", 1 },
		{ "Sun, 06 Nov 1994 09:49:37 GMT", 300 },
		{ "Sunday, 06-Nov-94 08:50:00 GMT", 23 },
		{ "Sun Nov  6 08:50:00 1994", 23 },
		{ "Fri Dec 31 23:59:59 1999", 300 },
		{ "Thu, 01 Jan 1970 00:00:00 GMT", 0 },
		{ "Wed, 31 Dec 1969 23:59:59 GMT", 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t delay_ns = 1;

		if (!retry_after_read(cases[i].text, NOW_S, &delay_ns) || delay_ns != cases[i].want_s * NS_PER_S)
			fail_msg("%s: %llu", cases[i].text, (unsigned long long)delay_ns);
	}
}

static void anything_else_is_as_if_it_were_not_there(void **state)
{
	static const char *const texts[] = {
		"", " ", "soon", "-5", "+5", "1.5", "1,5", "5s", "5 ", " 5", "0x10", "1e3", "5;", "5, 6", "2026-11-27T15:18:58Z",
		"Sun, 06 Nov 1994 08:50:00", "Sun, 06 Nov 1994 08:50:00 UTC", "Sun, 06 Nov 1994 08:50:00 +0000",
		"Sun, 06 Nov 1994 08:50:00 GMT ", "Sun, 06 Nov 1994 08:50:00 GMTx", "Sun, 6 Nov 1994 08:50:00 GMT",
		"Sun,06 Nov 1994 08:50:00 GMT", "sun, 06 nov 1994 08:50:00 gmt", "Mon, 06 Nov 1994 08:50:00 GMT",
		"06 Nov 1994 08:50:00 GMT", "Sunday, 06 Nov 1994 08:50:00 GMT", "Sun, 06-Nov-94 08:50:00 GMT",
		"Sunday, 06-Nov-1994 08:50:00 GMT", "Sun Nov 06 08:50:00 1994", "Sun Nov 6 08:50:00 1994", "Sun Nov  6 08:50:00 1994 GMT",
		"Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 31 Nov 1994 08:50:00 GMT", "Sun, 06 Nov 1994 8:50:00 GMT",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		uint64_t delay_ns = 1;

		if (retry_after_read(texts[i], NOW_S, &delay_ns) || delay_ns != 1)
			fail_msg("%s: %llu", texts[i], (unsigned long long)delay_ns);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_http_has_counts),
		cmocka_unit_test(anything_else_is_as_if_it_were_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

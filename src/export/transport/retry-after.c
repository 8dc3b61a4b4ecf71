/* SPDX-License-Identifier: Apache-2.0 */
#include "export/transport/retry-after.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "export/transport/timer.h"
#include "util/array.h"
#include "util/cleanup.h"
#include "util/parse.h"

#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* of these, for strftime() */

/* RFC 9110, 5.6.7 */
static const char *const date_forms[] = {
	"%a, %d %b %Y %H:%M:%S GMT",
	"%A, %d-%b-%y %H:%M:%S GMT",
	"%a %b %e %H:%M:%S %Y",
};

/* strptime() takes more than these forms: what is right reads the same when it is written again. */
static bool read_date(const char *text, const char *form, uint64_t *ret_s)
{
	struct tm tm = { 0 };
	char again[64];
	time_t at_s;

	if (!strptime(text, form, &tm))
		return false;
	at_s = timegm(&tm);
	if (!strftime(again, sizeof(again), form, &tm) || strcmp(again, text))
		return false;
	*ret_s = at_s > 0 ? (uint64_t)at_s : 0;
	return true;
}

bool retry_after_read(const char *text, uint64_t now_s, uint64_t *ret_delay_ns)
{
	const uint64_t max_s = RETRY_AFTER_MAX_NS / NS_PER_S;
	uint64_t delay_s, date_s = 0;
	bool is_date = false;

	for (size_t i = 0; i < ARRAY_SIZE(date_forms) && !is_date; i++)
		is_date = read_date(text, date_forms[i], &date_s);
	if (is_date)
		delay_s = date_s > now_s ? date_s - now_s : 0;
	else if (*text && !text[strspn(text, "0123456789")])
		delay_s = strtoull(text, NULL, 10); /* ULLONG_MAX if there are too many */
	else
		return false;
	*ret_delay_ns = (delay_s < max_s ? delay_s : max_s) * NS_PER_S;
	return true;
}

size_t retry_after_on_line(char *line, size_t size, size_t n, void *user)
{
	static const char begin[] = "HTTP/", name[] = "Retry-After:";
	size_t bytes = size * n, name_bytes = sizeof(name) - 1;
	struct retry_after *retry_after = user;
	_cleanup_(freep) char *text = strndup(line, bytes);

	if (!text)
		return bytes;
	if (!strncmp(text, begin, sizeof(begin) - 1))
		retry_after->delay_ns = 0;
	if (strncasecmp(text, name, name_bytes) || strlen(text) < bytes)
		return bytes;
	text[strcspn(text, "\r\n")] = '\0';
	(void)retry_after_read(parse_strip(text + name_bytes),
			       timer_turn_ns(retry_after->event, CLOCK_REALTIME) / NS_PER_S,
			       &retry_after->delay_ns);
	return bytes;
}

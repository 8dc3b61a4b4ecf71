/* SPDX-License-Identifier: Apache-2.0 */
#include "export/transport/backoff.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#define NS_PER_S UINT64_C(1000000000)

uint64_t backoff_next(struct backoff *backoff, uint32_t random, uint64_t retry_after_ns)
{
	uint64_t limit = backoff->initial_ns, delay;

	for (unsigned int i = 0; i < backoff->n && limit < backoff->max_ns; i++)
		limit = limit > backoff->max_ns / 2 ? backoff->max_ns : limit * 2;
	if (limit > backoff->max_ns)
		limit = backoff->max_ns;
	if (limit < backoff->max_ns)
		backoff->n++;
	delay = (uint64_t)((unsigned __int128)limit * random >> 32);
	return delay > retry_after_ns ? delay : retry_after_ns;
}

void backoff_reset(struct backoff *backoff)
{
	backoff->n = 0;
}

static int parse_seconds(const char *text, uint64_t *ret_delay_ns)
{
	uint64_t seconds = 0;

	for (; isdigit((unsigned char)*text); text++)
		if (seconds < RETRY_AFTER_MAX_NS)
			seconds = seconds * 10 + (uint64_t)(*text - '0');
	if (text[strspn(text, " \t")])
		return -EINVAL;
	*ret_delay_ns = seconds > RETRY_AFTER_MAX_NS / NS_PER_S ? RETRY_AFTER_MAX_NS : seconds * NS_PER_S;
	return 0;
}

static int parse_date(const char *text, uint64_t now_ns, uint64_t *ret_delay_ns)
{
	/* IMF-fixdate, RFC 850, asctime (RFC 9110, 5.6.7); the agent runs in the C locale. */
	static const char *const forms[] = {
		"%a, %d %b %Y %H:%M:%S GMT",
		"%A, %d-%b-%y %H:%M:%S GMT",
		"%a %b %e %H:%M:%S %Y",
	};
	uint64_t then_ns;

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct tm tm = { 0 };
		const char *end = strptime(text, forms[i], &tm);
		time_t then;

		if (!end || end[strspn(end, " \t")])
			continue;
		then = timegm(&tm);
		if (then < 0)
			return -EINVAL;
		if (__builtin_mul_overflow((uint64_t)then, NS_PER_S, &then_ns))
			then_ns = UINT64_MAX;
		*ret_delay_ns = then_ns <= now_ns ? 0 : then_ns - now_ns;
		if (*ret_delay_ns > RETRY_AFTER_MAX_NS)
			*ret_delay_ns = RETRY_AFTER_MAX_NS;
		return 0;
	}
	return -EINVAL;
}

int retry_after_parse(const char *text, uint64_t now_ns, uint64_t *ret_delay_ns)
{
	text += strspn(text, " \t");
	if (isdigit((unsigned char)*text))
		return parse_seconds(text, ret_delay_ns);
	return parse_date(text, now_ns, ret_delay_ns);
}

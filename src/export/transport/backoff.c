/* SPDX-License-Identifier: Apache-2.0 */
#include "export/transport/backoff.h"

uint64_t backoff_next(struct backoff *backoff, uint32_t random, uint64_t retry_after_ns)
{
	uint64_t limit_ns = backoff->limit_ns ? backoff->limit_ns : backoff->initial_ns, delay_ns;

	if (limit_ns > backoff->max_ns)
		limit_ns = backoff->max_ns;
	backoff->limit_ns = limit_ns > backoff->max_ns / 2 ? backoff->max_ns : limit_ns * 2;
	delay_ns = (uint64_t)((unsigned __int128)limit_ns * random >> 32);
	return delay_ns > retry_after_ns ? delay_ns : retry_after_ns;
}

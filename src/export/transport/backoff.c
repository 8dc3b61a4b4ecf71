/* SPDX-License-Identifier: Apache-2.0 */
#include "export/transport/backoff.h"

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

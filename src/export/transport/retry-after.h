/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The header Retry-After, as RFC 9110 has it (10.2.3). It comes from outside. libcurl would also
 * take the digits at the beginning of anything else.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/duration.h"

#define RETRY_AFTER_MAX_NS (300 * NS_PER_S)

struct sd_event;

/* What the head of the answer asks for, that is being read. */
struct retry_after {
	struct sd_event *event; /* borrowed: its clock says how far a date is away */
	uint64_t delay_ns;	/* at most RETRY_AFTER_MAX_NS; 0: nothing, or what has passed */
};

/*
 * text: the value, seconds in digits or a date in one of the three forms; now_s: since 1970, for a
 * date. Whole seconds, at most RETRY_AFTER_MAX_NS. false: it is neither.
 */
bool retry_after_read(const char *text, uint64_t now_s, uint64_t *ret_delay_ns);
/*
 * A line of the head of an answer, for CURLOPT_HEADERFUNCTION; user: a struct retry_after. What an
 * earlier answer to the same request says, as 100 Continue or that of a proxy, is forgotten.
 */
size_t retry_after_on_line(char *line, size_t size, size_t n, void *user);

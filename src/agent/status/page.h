/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How the agent and its exporters fare, in words. now_ns: CLOCK_BOOTTIME. */

#include "export/exporter.h"

struct agent;

/*
 * "delivered 3 s ago, no answer for 2 s, 4 KiB waiting", "failing for 40 s, 312 KiB waiting:
 * connection refused"
 */
void page_append_health(const struct exporter *exporter, uint64_t now_ns, struct buf *out);
/* Where it sends to or writes, without a password or a query; "" if that is nowhere. */
void page_append_place(const struct exporter *exporter, struct buf *out);
/*
 * The answer of the socket: a digit (0: all is well, 1: something fails), the page for people, a
 * NUL, and the same as one JSON object.
 */
void page_append(const struct agent *agent, uint64_t now_ns, struct buf *out);
/* Each problem of the agent itself, between before and after. */
void page_append_problems(const struct agent *agent, const char *before, const char *after,
			  struct buf *out);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How an exporter, and the agent itself, fares, in words. now_ns: CLOCK_BOOTTIME. */

#include "export/exporter.h"
#include "util/buf.h"

struct agent;

/* "delivered 3 s ago, no answer for 2 s, 4 KiB waiting", "failing for 40 s, 312 KiB waiting: connection refused" */
void health_append(const struct exporter *exporter, uint64_t now_ns, struct buf *out);
/* Each problem of the agent itself, between before and after. */
void health_append_problems(const struct agent *agent, const char *before, const char *after, struct buf *out);
/* before, "40 s" or "3 min", after */
void health_append_age(struct buf *out, const char *before, uint64_t age_ns, const char *after);
/* Where it sends to or writes, without a password or a query; "" if that is nowhere. */
void health_append_place(const struct exporter *exporter, struct buf *out);

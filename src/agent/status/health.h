/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How an exporter has fared, by its counts. Times are CLOCK_BOOTTIME. */

#include "export/exporter.h"
#include "util/buf.h"

struct health {
	uint64_t n_delivered;	/* points */
	uint64_t delivered_ns;	/* the last of them; 0: none yet */
	uint64_t failing_ns;	/* since when; 0: it is not */
	unsigned int n_changes; /* of the exporter's stats */
};

/* Takes the exporter's counts. True if there is news. */
bool health_note(struct health *health, const struct exporter *exporter, uint64_t now_ns);
/* "delivered 3 s ago", "failing for 40 s, 312 KiB waiting: connection refused" */
void health_append(const struct health *health, const struct exporter *exporter, uint64_t now_ns, struct buf *out);
/* "40 s", "3 min" */
void health_append_age(struct buf *out, uint64_t age_ns);
/* Where it sends to or writes, without a password or a query; "" if that is nowhere. */
void health_append_place(const struct exporter *exporter, struct buf *out);

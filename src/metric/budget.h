/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the process may hold: a number of series of all collectors together, and a number of bytes for series
 * and the kernel's tables. The set of collectors owns it; metrics and collectors charge it.
 */

#include <stdbool.h>
#include <stdint.h>

struct budget {
	uint64_t limit_series, limit_bytes; /* 0: none */
	uint64_t n_series;		    /* that something feeds; without the overflow series */
	uint64_t series_bytes;		    /* of all series in memory, with what exporters keep with them */
	uint64_t table_bytes;		    /* of the kernel's tables */
};

/* For one series more. */
static inline bool budget_has_room(const struct budget *budget)
{
	return (!budget->limit_series || budget->n_series < budget->limit_series) &&
	       (!budget->limit_bytes || budget->series_bytes + budget->table_bytes < budget->limit_bytes);
}

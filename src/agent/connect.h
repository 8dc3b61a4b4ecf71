/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Can the receivers be reached? Nothing is counted for that, and nothing delivered. */

#include "config/config.h"

/*
 * Tries the receivers of all exporters, all at the same time and for 15 seconds at most. Writes a
 * line for each to out: the exporter, its endpoint without secrets, what happened, and how long
 * that took. made: which signals there would be to send. 0; 1 if one failed; -errno.
 */
int agent_connect(const struct config *config, enum signals made, FILE *out);

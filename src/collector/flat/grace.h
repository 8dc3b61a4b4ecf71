/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * When has every BPF program ended that runs now? The kernel answers with membarrier(MEMBARRIER_CMD_GLOBAL), which
 * waits for some milliseconds, so a thread asks. Where the kernel refuses, time has to do.
 */

#include <stdbool.h>
#include <stdint.h>

struct grace {
	uint64_t ticket;
	uint64_t begin_ns;
};

struct grace grace_begin(uint64_t now_ns);
bool grace_is_over(const struct grace *grace, uint64_t now_ns);

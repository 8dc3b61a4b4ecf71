/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The answer of the socket: a digit (0: all is well, 1: something fails), the page for people, a NUL, and the same as
 * one JSON object.
 */

#include <stdint.h>

struct agent;
struct buf;

/* now_ns: CLOCK_BOOTTIME. */
void page_append(const struct agent *agent, uint64_t now_ns, struct buf *out);

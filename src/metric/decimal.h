/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Numbers as text: exact for programs, short for people. All append to out. */

#include <stdbool.h>
#include <stdint.h>

#include "util/buf.h"

/*
 * raw / divisor in decimal, every digit exact: 1500000000 / 1000000000 is "1.5". A quotient that
 * does not end (its divisor has other factors than 2 and 5) is cut after 18 decimals. is_signed:
 * raw is an int64_t.
 */
void decimal_quotient(struct buf *out, uint64_t raw, uint64_t divisor, bool is_signed);
/*
 * Writes the quotient to a place with room for DECIMAL_BYTES. Returns the place after its last
 * digit; writes no NUL.
 */
#define DECIMAL_BYTES 39
char *decimal_put(char *at, uint64_t raw, uint64_t divisor);
/*
 * A sample rate, in (0, 1), for a count n of at least 2. Its inverse gives n again, whether a
 * receiver rounds it or cuts it off. Written as decimal_put() does, with room for
 * DECIMAL_RATE_BYTES.
 */
#define DECIMAL_RATE_BYTES 64
char *decimal_put_rate(char *at, uint64_t n);
/*
 * The shortest decimal that reads back as the same double; valid JSON. value is finite. Returns
 * text.
 */
#define DECIMAL_DOUBLE_BYTES 32
const char *decimal_print_double(char text[DECIMAL_DOUBLE_BYTES], double value);
/*
 * About three digits and a unit: "1.50ms", "64.0KiB", "12.3k". unit is the metric's: "s" and "By"
 * have their own scales; all others are counted in thousands.
 */
void decimal_human(struct buf *out, double value, const char *unit);
/* Like decimal_human(), with up to nine digits, none of them a 0 at the end of decimals. */
void decimal_human_exact(struct buf *out, double value, const char *unit);

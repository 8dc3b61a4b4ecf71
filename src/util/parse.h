/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Text to values. All return 0 or -EINVAL (-ERANGE where the text is well formed but the number does
 * not fit) and leave their output untouched on failure. White space around the text is the caller's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int parse_bool(const char *text, bool *ret_value);	    /* yes/no, true/false, on/off, 1/0 */
int parse_u64(const char *text, uint64_t *ret_value);	    /* decimal or 0x, nothing else */
int parse_s64(const char *text, int64_t *ret_value);	    /* the same with a sign */
int parse_duration_ns(const char *text, uint64_t *ret_ns);  /* "10s" "500ms" "1m30s"; a unit is required but for 0 */
int parse_size_bytes(const char *text, uint64_t *ret_bytes); /* "64KiB" "512B"; KB, MB are 1000s; so here */

/*
 * The name of a list that a writer most likely meant, for "did you mean": the least edit distance, if
 * that is at most a third of the length (and at least one edit is always forgiven). NULL: none.
 */
const char *parse_nearest(const char *text, const char *const *names, size_t n_names);

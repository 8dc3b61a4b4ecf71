/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Text to values. All return 0 or -EINVAL (-ERANGE where the text is well formed but the number
 * does not fit) and leave their output untouched on failure. White space around the text is the
 * caller's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct parse_unit {
	const char *name;
	uint64_t factor;
};
/* Greatest first, ended by a NULL name. The first name of a factor is the one to print. */
extern const struct parse_unit parse_duration_units[], parse_size_units[];

/*
 * A word of A-Z a-z 0-9 _ . - that does not begin with . or -: a key, a section, a collector, an
 * exporter.
 */
bool parse_is_name(const char *text);

/* yes/no, true/false, on/off, 1/0, in any case */
int parse_bool(const char *text, bool *ret_value);
int parse_u64(const char *text, uint64_t *ret_value); /* decimal or 0x, nothing else */
int parse_s64(const char *text, int64_t *ret_value);  /* the same with a sign */
/*
 * "10s" "500ms" "1m30s" "2h" "1d": ns, us, ms, s, m or min, h, d; whole numbers, the greater unit
 * first, each once; a blank may stand before a unit and between parts. A unit is required, except
 * for 0.
 */
int parse_duration_ns(const char *text, uint64_t *ret_ns);
/*
 * "64KiB" "1MiB" "512B": B, KiB, MiB, GiB, TiB; KB or kB, MB, GB, TB are powers of 1000. One whole
 * number, perhaps a blank, one unit, which is required except for 0.
 */
int parse_size_bytes(const char *text, uint64_t *ret_bytes);

/* Cuts off blanks and tabs at both ends, in place. Returns the text's new beginning. */
char *parse_strip(char *text);
/*
 * "%41" to "A", in place. -EINVAL where '%' is not followed by two hexadecimal digits, or by 00;
 * text is then spoilt.
 */
int parse_percent(char *text);

/*
 * The name of a list that a writer most likely meant, for "did you mean": the least edit distance
 * (insert, delete, replace, swap neighbours; letters' case does not count), if that is at most a
 * quarter of text's length; one edit is always forgiven, a wholly different text never. NULL: none.
 * Of several at the same distance, the first. items: as for array_find().
 */
#define parse_nearest(text, items, n) parse_nearest_of(text, items, n, sizeof(*(items)))
const char *parse_nearest_of(const char *text, const void *items, size_t n, size_t item_bytes);
/* For fnmatch(), a "[" without its "]" matches nothing. -EINVAL with a complaint. */
int parse_check_pattern(const char *text, const char **ret_complaint);

/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/grammar/buckets.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BOUND_MAX  (UINT64_C(1) << 53) /* of linear and fixed: any number up to here is a double */
#define DIGITS_MAX 15

static const char is_no_layout[] = "is not a layout; write exp2 0..27, exp2 floor 0..27, exp2zero 0..27, linear 0..1000 step 50 or fixed 1 2 5, "
				   "in whole numbers as the map counts, and then perhaps sum 28";

static bool add_bound(struct buckets *buckets, uint64_t upper, uint64_t key)
{
	if (buckets->n == HISTOGRAM_BUCKETS_MAX - 1)
		return false;
	buckets->bounds[buckets->n++] = (struct histogram_bound){ upper, key };
	return true;
}

/* The largest value in the bucket of a power of two. */
static uint64_t upper_of(uint64_t exponent, bool is_floor)
{
	return is_floor ? (UINT64_C(2) << exponent) - 1 : UINT64_C(1) << exponent;
}

/* Each reads what follows the word, and moves *at past it. */
static const char *read_exp2(const char **at, bool has_zero, uint32_t n_buckets,
			     struct buckets *buckets)
{
	uint64_t first = 0, last = n_buckets ? n_buckets - 2 : 63u + has_zero;
	bool is_floor;
	int n = 0;

	if (!has_zero)
		(void)sscanf(*at, " floor%n", &n);
	is_floor = n;
	*at += n;
	n = 0;
	if (sscanf(*at, " %" SCNu64 "..%" SCNu64 "%n", &first, &last, &n) == 1 || last > 63u + has_zero ||
	    first > last)
		return "has a range that is not one of powers of two; write exp2 0..27, at most 0..63 (exp2zero: 0..64)";
	for (uint64_t key = first; key <= last; key++)
		add_bound(buckets, has_zero && !key ? 0 : upper_of(key - has_zero, is_floor), key);
	*at += n;
	return NULL;
}

static const char *read_linear(const char **at, bool is_key, struct buckets *buckets)
{
	uint64_t first, last, step;
	int n = 0;

	if (sscanf(*at, " %" SCNu64 "..%" SCNu64 " step %" SCNu64 "%n", &first, &last, &step, &n) != 3 || !step ||
	    step > BOUND_MAX || last > BOUND_MAX || first > last)
		return "has no range and step; write linear 0..1000 step 50";
	if ((last - first) % step || (is_key && first % step))
		return "has a step that does not lead from the first to the last bound, or from 0 to the first if the key says "
		       "the bucket; write linear 0..1000 step 50";
	for (uint64_t value = first; value <= last; value += step)
		if (!add_bound(buckets, is_key ? value + step - 1 : value, value / step))
			return "has more than 1023 bounds; make the step larger";
	*at += n;
	return NULL;
}

static const char *read_fixed(const char **at, struct buckets *buckets)
{
	uint64_t bound;

	for (int n; sscanf(*at, " %" SCNu64 "%n", &bound, &n) == 1; *at += n) {
		if (bound > BOUND_MAX ||
		    (buckets->n && bound <= buckets->bounds[buckets->n - 1].upper))
			return "has bounds that do not rise, or not up to 2^53; write them from the least to the greatest";
		if (!add_bound(buckets, bound, bound))
			return "has more than 1023 bounds; remove some";
	}
	return buckets->n ? NULL : "has no bounds; write fixed 1 2 5 10, in whole numbers as the map counts";
}

static const char *read_layout(const char *at, uint32_t n_buckets, struct buckets *buckets)
{
	char word[16] = "";
	const char *complaint;
	int n = 0;

	sscanf(at, "%15s%n", word, &n);
	at += n;
	if (!strcmp(word, "exp2"))
		complaint = read_exp2(&at, false, n_buckets, buckets);
	else if (!strcmp(word, "exp2zero"))
		complaint = read_exp2(&at, true, n_buckets, buckets);
	else if (!strcmp(word, "linear"))
		complaint = read_linear(&at, !n_buckets, buckets);
	else if (!strcmp(word, "fixed"))
		complaint = read_fixed(&at, buckets);
	else
		complaint = is_no_layout;
	if (complaint || !*at)
		return complaint;
	n = 0;
	buckets->has_sum = sscanf(at, " sum %" SCNu64 "%n", &buckets->sum_key, &n) == 1;
	if (!buckets->has_sum || at[n])
		return is_no_layout;
	if (buckets->sum_key >= buckets->bounds[0].key &&
	    buckets->sum_key <= buckets->bounds[buckets->n - 1].key)
		return "says that one of its buckets has the sum; write the number that has it, as 28 in exp2 0..27 sum 28";
	return NULL;
}

const char *buckets_parse(const char *text, uint32_t n_buckets, struct buckets *ret_buckets)
{
	const char *complaint;

	ret_buckets->n = 0;
	ret_buckets->has_sum = false;
	complaint = strpbrk(text, "+-") ? is_no_layout : read_layout(text, n_buckets, ret_buckets);
	if (complaint)
		ret_buckets->n = 0;
	return complaint;
}

const char *range_parse(const char *text, const char *unit, struct histogram_layout *layout)
{
	const char *usual = !strcmp(unit, "By") ? "4..22" : "0..18", *range = text;
	int least = layout->offset + 1, greatest = layout->offset + (int)layout->n_buckets - 2;
	int first, last, step = 1, n = 0;

	if (!range)
		range = !strcmp(unit, "s") ? "-18..0" : usual;
	if (sscanf(range, "%d..%d%n step %d%n", &first, &last, &n, &step, &n) < 2 || range[n] || step < 1 ||
	    first > last)
		return "is not a range of powers of two; write -20..4 for bounds from 2^-20 to 2^4, and perhaps step 2 for every "
		       "second one";
	if (text && (first < least || last > greatest))
		return "has bounds that the buckets do not have; write a range within -29..16 for times, 0..45 for other values";
	if ((last - first) % step)
		return "has a step that does not lead from the first to the last bound; write one like -20..4 step 2";
	if (first < least || last > greatest)
		return NULL;
	layout->n_explicit = (uint32_t)((last - first) / step + 2);
	layout->first = (uint32_t)(first - layout->offset);
	layout->step = (uint32_t)step;
	return NULL;
}

const char *multiply_parse(const char *text, uint64_t *ret_factor, uint64_t *ret_divisor)
{
	size_t n = strspn(text, "0123456789"), n_decimals = text[n] == '.' ? strspn(text + n + 1, "0123456789") : 0;
	uint64_t divisor = 1, factor, a, b, rest;

	for (size_t i = 0; i < n_decimals && i < DIGITS_MAX; i++)
		divisor *= 10;
	factor = strtoull(text, NULL, 10) * divisor +
		 (n_decimals ? strtoull(text + n + 1, NULL, 10) : 0);
	if (!n || n + n_decimals > DIGITS_MAX ||
	    text[n + n_decimals + (n_decimals != 0)] || !factor)
		return "is not a decimal number above 0 of at most 15 digits; write one like 1024 or 0.000001";
	for (a = factor, b = divisor; b; a = b, b = rest)
		rest = a % b;
	*ret_factor = factor / a;
	*ret_divisor = divisor / a;
	return NULL;
}

const char *buckets_check(const char *text)
{
	struct buckets buckets;

	return buckets_parse(text, 32, &buckets);
}

const char *range_check(const char *text)
{
	return range_parse(text, "", &(struct histogram_layout){ .offset = -30, .n_buckets = 77 });
}

const char *multiply_check(const char *text)
{
	uint64_t factor, divisor;

	return multiply_parse(text, &factor, &divisor);
}

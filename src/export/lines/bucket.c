/* SPDX-License-Identifier: Apache-2.0 */
#include "export/lines/bucket.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/bounds.h"
#include "export/decimal.h"

#define VALUE_MAX 1e30 /* above any number of 64 bits, in any unit */
#define WHOLE_MAX 1e23 /* has 24 digits, which NAME_SUFFIX_BYTES has room for */

/* Very small numbers and those above WHOLE_MAX have an exponent, but without "+", which names do not keep. */
static void print_bound(double value, char text[32])
{
	char *plus;

	if (isinf(value) || (value >= 1 && value == floor(value) && value <= WHOLE_MAX)) {
		snprintf(text, 32, "%.0f", value);
		return;
	}
	decimal_print_double(text, value);
	plus = strchr(text, '+');
	if (plus)
		memmove(plus, plus + 1, strlen(plus));
}

/* A few digits and no exponent, which some receivers do not read. */
static void print_value(double value, char text[32])
{
	double shown = fmin(value, VALUE_MAX);
	int decimals = shown > 0 ? 5 - (int)floor(log10(shown)) : 0;

	snprintf(text, 32, "%.*f", decimals < 0 ? 0 : decimals > 25 ? 25 : decimals, shown);
}

/*
 * The value in (lower, upper] with the smallest relative error for any value there: it is as far from one bound
 * as from the other, in parts of each.
 */
static double middle(const struct histogram_layout *layout, uint32_t i)
{
	double base = layout->scale <= 0 ? ldexp(1, 1 << -layout->scale) : exp2(ldexp(1, -layout->scale));
	double upper = bounds_upper(layout, i);

	if (!i)
		return 0;
	if (isinf(upper)) /* taken for a bucket like the others */
		upper = i == 1 ? 1 : bounds_upper(layout, i - 1) * base;
	return 2 * upper / (1 + base); /* with lower = upper / base, 2 * lower * upper / (lower + upper) */
}

struct bucket_text *bucket_texts_new(const struct metric *metric, double per_second, char dot)
{
	const struct histogram_layout *layout = &metric->layout;
	struct bucket_text *texts = calloc(layout->n_buckets, sizeof(*texts));
	char *point;

	for (uint32_t i = 0; texts && i < layout->n_buckets; i++) {
		print_bound(bounds_upper(layout, i) * per_second, texts[i].bound);
		print_value(middle(layout, i) * per_second, texts[i].middle);
		point = strchr(texts[i].bound, '.');
		if (point)
			*point = dot;
	}
	return texts;
}

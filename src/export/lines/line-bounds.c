/* SPDX-License-Identifier: Apache-2.0 */
#include "export/lines/line-bounds.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/bounds.h"

#define VALUE_MAX 1e30 /* no number of 64 bits comes near it, in whatever unit */
#define WHOLE_MAX 1e23 /* has 24 digits: LINE_BOUND_BYTES */

/* In decimal; what is very small or above WHOLE_MAX has an exponent, but no "+", which is not kept in names. */
static void print_number(double value, char text[32])
{
	char *plus;

	if (isinf(value)) {
		snprintf(text, 32, "inf");
		return;
	}
	if (value >= 1 && value == floor(value) && value <= WHOLE_MAX) {
		snprintf(text, 32, "%.0f", value);
		return;
	}
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(text, 32, "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	plus = strchr(text, '+');
	if (plus)
		memmove(plus, plus + 1, strlen(plus));
}

/* With a handful of digits and without any exponent: a value for receivers that know no other. */
static void print_value(double value, char text[32])
{
	double shown = fmin(value, VALUE_MAX);
	int decimals = shown > 0 ? 5 - (int)floor(log10(shown)) : 0;

	snprintf(text, 32, "%.*f", decimals < 0 ? 0 : decimals > 25 ? 25 : decimals, shown);
}

/*
 * The value that stands for all of (lower, upper] with the smallest error that any of them may have: as far from
 * the one as from the other, in parts of each.
 */
static double middle(const struct histogram_layout *layout, uint32_t i)
{
	double base = layout->scale <= 0 ? ldexp(1, 1 << -layout->scale) : exp2(ldexp(1, -layout->scale));
	double upper = bounds_upper(layout, i);

	if (!i)
		return 0;
	if (isinf(upper)) /* as if it were a bucket like the others */
		upper = i == 1 ? 1 : bounds_upper(layout, i - 1) * base;
	return 2 * upper / (1 + base); /* of lower = upper / base: 2 * lower * upper / (lower + upper) */
}

void line_bounds_done(struct line_bounds *bounds)
{
	free(bounds->text);
	free(bounds->level);
	free(bounds->middle);
}

int line_bounds_init(struct line_bounds *bounds, const struct metric *metric, double per_second)
{
	uint32_t n = metric->layout.n_buckets;

	*bounds = (struct line_bounds){ .metric = metric, .n = n };
	bounds->text = calloc(n, sizeof(*bounds->text));
	bounds->level = calloc(n, sizeof(*bounds->level));
	bounds->middle = calloc(n, sizeof(*bounds->middle));
	if (!bounds->text || !bounds->level || !bounds->middle) {
		line_bounds_done(bounds);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++) {
		print_number(bounds_upper(&metric->layout, i) * per_second, bounds->text[i]);
		print_value(middle(&metric->layout, i) * per_second, bounds->middle[i]);
		memcpy(bounds->level[i], bounds->text[i], sizeof(*bounds->level));
		for (char *byte = bounds->level[i]; *byte; byte++)
			*byte = *byte == '.' ? '_' : *byte;
	}
	return 0;
}

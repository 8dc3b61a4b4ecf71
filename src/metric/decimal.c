/* SPDX-License-Identifier: Apache-2.0 */
#include "metric/decimal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DECIMALS_MAX 18

static char *put_whole(char *at, uint64_t number)
{
	char digits[20];
	size_t n = 0;

	do
		digits[sizeof(digits) - ++n] = (char)('0' + number % 10);
	while (number /= 10);
	memcpy(at, digits + sizeof(digits) - n, n);
	return at + n;
}

char *decimal_put(char *at, uint64_t raw, uint64_t divisor)
{
	uint64_t rest, digit;

	if (divisor == 1)
		return put_whole(at, raw);
	at = put_whole(at, raw / divisor);
	rest = raw % divisor;
	if (!rest)
		return at;
	*at++ = '.';
	for (int i = 0; rest && i < DECIMALS_MAX; i++) {
		/* The wide division is some ten times slower. */
		digit = divisor <= UINT64_MAX / 10 ? rest * 10 / divisor :
						     (uint64_t)((unsigned __int128)rest * 10 /
								divisor);
		*at++ = (char)('0' + digit);
		/* what overflows is gone again: it is below divisor */
		rest = rest * 10 - digit * divisor;
	}
	return at;
}

#define RATE_EXACT_MAX (UINT64_C(1) << 46) /* beyond, the long division would overflow */

/*
 * By long division, up to where the inverse of what stands there, which is n + rest / whole, is
 * near enough.
 */
char *decimal_put_rate(char *at, uint64_t n)
{
	uint64_t rest = 1, whole = 0;
	double power = 1;
	char *start = at;

	at = stpcpy(at, "0.");
	do {
		rest *= 10;
		power *= 10;
		whole = whole * 10 + rest / n;
		*at++ = (char)('0' + rest / n);
		rest %= n;
	} while (n < RATE_EXACT_MAX && rest * 100000 >= whole);
	/* As a double it may be above 1 / n nevertheless: then the next one below. */
	if (n < RATE_EXACT_MAX && 1 / ((double)whole / power) >= (double)n)
		return at;
	return start + snprintf(start, DECIMAL_RATE_BYTES, "%.40f", nextafter(1 / (double)n, 0));
}

void decimal_quotient(struct buf *out, uint64_t raw, uint64_t divisor, bool is_signed)
{
	char *at = (char *)buf_reserve(out, 1 + DECIMAL_BYTES), *end = at;

	if (!at)
		return;
	if (is_signed && (int64_t)raw < 0) {
		*end++ = '-';
		raw = 0 - raw;
	}
	out->size += (size_t)(decimal_put(end, raw, divisor) - at);
}

const char *decimal_print_double(char text[DECIMAL_DOUBLE_BYTES], double value)
{
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(text, DECIMAL_DOUBLE_BYTES, "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	return text;
}

struct scale {
	double from; /* used for values from here on */
	double divisor;
	const char *suffix;
};

static const struct scale scale_time[] = {
	{ 86400, 86400, "d" }, { 3600, 3600, "h" },    { 60, 60, "min" },  { 1, 1, "s" },
	{ 1e-3, 1e-3, "ms" },  { 1e-6, 1e-6, "\xc2\xb5s" }, { 0, 1e-9, "ns" },
};
static const struct scale scale_bytes[] = {
	{ 0x1p40, 0x1p40, "TiB" }, { 0x1p30, 0x1p30, "GiB" }, { 0x1p20, 0x1p20, "MiB" },
	{ 0x1p10, 0x1p10, "KiB" }, { 0, 1, "B" },
};
static const struct scale scale_count[] = {
	{ 1e12, 1e12, "T" }, { 1e9, 1e9, "G" }, { 1e6, 1e6, "M" }, { 1e4, 1e3, "k" }, { 0, 1, "" },
};

static const struct scale *find_scale(double value, const char *unit)
{
	const struct scale *scale = scale_count;

	if (!strcmp(unit, "s"))
		scale = scale_time;
	else if (!strcmp(unit, "By"))
		scale = scale_bytes;
	while (scale->from > 0 && value < scale->from)
		scale++;
	return scale;
}

void decimal_human_exact(struct buf *out, double value, const char *unit)
{
	const struct scale *scale = find_scale(value, unit);

	buf_printf(out, "%.9g%s", value / scale->divisor, scale->suffix);
}

void decimal_human(struct buf *out, double value, const char *unit)
{
	const struct scale *scale = find_scale(value, unit);
	double shown = value / scale->divisor;

	if (shown == floor(shown) || shown >= 100)
		buf_printf(out, "%.0f%s", shown, scale->suffix);
	else
		buf_printf(out, "%.*f%s", shown < 10 ? 2 : 1, shown, scale->suffix);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "view/histogram.h"

#include <inttypes.h>
#include <math.h>

#include "metric/bounds.h"
#include "metric/decimal.h"
#include "view/grid.h"

#define BARS_MAX    32
#define BAR_WIDTH   40
#define LIMIT_WIDTH 10
#define OTHER_WIDTH (2 * LIMIT_WIDTH + 18) /* of a line, besides its bar */

void histogram_bars(const uint64_t *bucket, uint32_t first, uint32_t end, struct buf *out)
{
	uint64_t heights[BARS_MAX] = { 0 }, most = 1;
	uint32_t n = first < end ? end - first : 0, together = (n + BARS_MAX - 1) / BARS_MAX;

	for (uint32_t i = 0; i < n; i++)
		heights[i / together] += bucket[first + i];
	n = n ? (n + together - 1) / together : 0;
	for (uint32_t i = 0; i < n; i++)
		most = heights[i] > most ? heights[i] : most;
	for (uint32_t i = 0; i < n; i++) {
		/* U+2581 to U+2588 */
		char bar[] = "\xe2\x96\x81";

		bar[2] = (char)(bar[2] + (char)(7.0 * (double)heights[i] / (double)most));
		buf_append_text(out, heights[i] ? bar : " ");
	}
}

/* The upper bound of bucket i, of -1: 0, right in that width. */
static void append_bound(const struct metric *metric, int64_t i, unsigned int width,
			 struct buf *out)
{
	double upper = i < 0 ? 0 : bounds_upper(metric, (uint32_t)i);
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	unsigned int taken;

	if (isinf(upper))
		buf_append_text(&text, "\xe2\x88\x9e");
	else if (!upper)
		buf_append_byte(&text, '0');
	else if (metric->layout.bounds)
		decimal_human_exact(&text, upper, metric->unit);
	else
		decimal_human(&text, upper, metric->unit);
	taken = grid_width(buf_text(&text));
	buf_printf(out, "%*s%s", width > taken ? (int)(width - taken) : 0, "", buf_text(&text));
}

void histogram_axis(const struct metric *metric, uint32_t first, uint32_t end, char *ret_text,
		    size_t size)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT;

	if (first < end) {
		append_bound(metric, (int64_t)first - 1, 0, &text);
		buf_append_text(&text, "\xe2\x80\xa6");
		append_bound(metric, (int64_t)end - 1, 0, &text);
	}
	snprintf(ret_text, size, "%s", buf_text(&text));
}

void histogram_print(const struct metric *metric, const uint64_t *bucket, unsigned int width,
		     struct buf *out)
{
	static const char stars[] = "****************************************";
	unsigned int bar = !width || width > OTHER_WIDTH + BAR_WIDTH ? BAR_WIDTH : 1;
	uint32_t first = 0, end = metric->layout.n_buckets;
	uint64_t most = 1;

	if (bar == 1 && width > OTHER_WIDTH)
		bar = width - OTHER_WIDTH;
	bounds_trim(bucket, &first, &end);
	for (uint32_t i = first; i < end; i++)
		most = bucket[i] > most ? bucket[i] : most;
	if (first < end)
		buf_printf(out, "%*s : count     distribution\n", 2 * LIMIT_WIDTH + 4, "value");
	for (uint32_t i = first; i < end; i++) {
		/* Exactly 0, which may be far from the next value. */
		bool is_zero = !i && !metric->layout.bounds;

		append_bound(metric, (int64_t)i - 1,
			     is_zero ? 2 * LIMIT_WIDTH + 4 : LIMIT_WIDTH, out);
		buf_append_text(out, is_zero ? "" : " -> ");
		if (!is_zero)
			append_bound(metric, i, LIMIT_WIDTH, out);
		buf_printf(out, " : %-8" PRIu64 " |%-*.*s|\n", bucket[i], (int)bar,
			   (int)((double)bar * (double)bucket[i] / (double)most), stars);
		while (is_zero && i + 1 < end && !bucket[i + 1])
			i++;
	}
}

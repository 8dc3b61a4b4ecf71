/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "test.h"

#include <stdlib.h>

#include "accounted.h"
#include "export/lines/lines.h"
#include "metric/series.h"

/* Some metrics, and what a writer makes of them: all pieces behind one another, a newline between them. */
struct rig {
	struct metric metrics[3], *list[3];
	struct batch batch;
	struct exporter exporter;
	struct setting_list tags;
	struct lines lines;
	struct buf out;
	size_t n_points;
};

static const struct attribute resource[] = {
	{ .name = "host.name", .type = ATTRIBUTE_TEXT, .text = "vm1" },
	{ .name = "deployment.environment.name", .type = ATTRIBUTE_TEXT, .text = "prod/eu" },
};

static inline int put(void *user, uint8_t *data, size_t size, size_t n_points)
{
	struct rig *rig = user;

	if (rig->out.size && rig->out.data[rig->out.size - 1] != '\n')
		buf_append_byte(&rig->out, '\n');
	buf_append(&rig->out, data, size);
	rig->n_points += n_points;
	exporter_account(&rig->exporter, POINTS_DELIVERED, n_points);
	free(data);
	return 0;
}

static inline void rig_init(struct rig *rig, enum dialect_id dialect, const char *template)
{
	static const struct exporter_ops ops = { .type = "test" }; /* what is put has arrived: nothing waits */
	static const struct exporter_context context = { .version = "1" };
	static char *names[] = { "host.name", "deployment.environment.name" };
	static const struct metric kinds[] = {
		{ .scope = "test", .name = "a.sum", .unit = "{call}", .kind = METRIC_SUM, .divisor = 1 },
		{ .scope = "test", .name = "a.gauge", .unit = "By", .kind = METRIC_GAUGE, .divisor = 1 },
		{ .scope = "test", .name = "a.time", .unit = "s", .kind = METRIC_HISTOGRAM, .divisor = 1000000000,
		  .layout = { 0, -3, 6 } },
	};

	*rig = (struct rig){ .exporter = { .name = "test", .ops = &ops, .context = &context },
			     .batch = { .time_ns = UINT64_C(1700000010999999999), .previous_ns = 1, .n_metrics = 3 } };
	for (size_t i = 0; i < 3; i++) {
		rig->metrics[i] = kinds[i];
		metric_init_series(&rig->metrics[i], NULL);
		rig->list[i] = &rig->metrics[i];
	}
	rig->batch.metrics = rig->list;
	rig->tags = (struct setting_list){ .items = names, .n_items = 2 };
	rig->lines = (struct lines){
		.time_unit = dialect_table[dialect].is_graphite ? LINES_SECONDS : LINES_MICROSECONDS,
		.pack = { .limit_bytes = 8192, .put = put, .user = rig },
		.exporter = &rig->exporter,
	};
	assert_ok(naming_init(&rig->lines.naming, &dialect_table[dialect], template, resource, 2, &rig->tags));
}

static inline void rig_done(struct rig *rig)
{
	lines_done(&rig->lines);
	for (size_t i = 0; i < 3; i++)
		metric_done_series(&rig->metrics[i]);
	buf_done(&rig->out);
}

static inline void begin(struct rig *rig)
{
	for (size_t i = 0; i < 3; i++)
		series_begin(&rig->metrics[i]);
}

static inline int push(struct rig *rig, unsigned int losses)
{
	int err;

	for (size_t i = 0; i < 3; i++)
		series_end(&rig->metrics[i]);
	buf_reset(&rig->out);
	rig->exporter.n_losses = losses;
	err = lines_push(&rig->lines, &rig->batch, rig->batch.time_ns / UINT64_C(1000000000));
	assert_accounted(&rig->exporter);
	return err;
}

/* With attributes "name", "text", …, ended by NULL. */
static inline struct series *series(struct rig *rig, size_t metric, const char *const *texts)
{
	struct attributes attributes;
	struct series *result;

	attributes_init(&attributes);
	for (; *texts; texts += 2)
		assert_ok(attributes_add_text(&attributes, texts[0], texts[1], strlen(texts[1])));
	assert_ok(series_get(&rig->metrics[metric], &attributes, 1, &result));
	return result;
}

#define SERIES(rig, metric, ...) series((rig), (metric), (const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })
#define assert_lines(rig, losses, expected)                        \
	do {                                                       \
		assert_ok(push((rig), (losses)));                  \
		assert_string_equal(buf_text(&(rig)->out), (expected)); \
	} while (0)

static inline void add_times(struct rig *rig, uint64_t sum, uint64_t zero, uint64_t low, uint64_t last)
{
	const uint64_t bucket[6] = { zero, 0, low, 0, 0, last };

	begin(rig);
	series_add_histogram(SERIES(rig, 2), sum, bucket);
}

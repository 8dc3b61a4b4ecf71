/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the fixture to standard output as an exporter of TYPE would:
 *
 *     golden-export json | bpftrace-json | csv | console | histogram | otlp {cumulative|delta} {explicit|exponential} | lines VARIANT
 */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/exporter.h"
#include "export/lines/lines.h"
#include "export/otlp/encode.h"
#include "fixture.h"

static int write_body(void *user, const uint8_t *data, size_t size, size_t n_points)
{
	return fwrite(data, 1, size, stdout) == size ? 0 : -1;
}

static int otlp(const struct batch *batch, const char *temporality, const char *histogram)
{
	const struct attribute resource[] = {
		{ .name = "service.name", .type = ATTRIBUTE_TEXT, .text = "bpfpush" },
		{ .name = "host.cpus", .type = ATTRIBUTE_NUMBER, .number = 2 },
	};
	static uint8_t room[1 << 20];
	const struct otlp_encoding encoding = {
		.temporality = strcmp(temporality, "delta") ? OTLP_CUMULATIVE : OTLP_DELTA,
		.histogram = strcmp(histogram, "exponential") ? OTLP_EXPLICIT : OTLP_EXPONENTIAL,
		.has_zero_points = true,
		.limit_bytes = sizeof(room),
		.room = room,
		.resource = resource,
		.n_resource = 2,
		.version = "1.2.3",
	};
	struct otlp_encoded encoded;

	return otlp_encode(&encoding, batch, write_body, NULL, &encoded) || encoded.n_too_large;
}

static int stream(const struct batch *batch, const char *type, bool has_histograms)
{
	const struct assignment histogram = { "histogram", "yes", "", 0 };
	struct diag diag = DIAG_INIT;

	const struct exporter_ops *ops = exporter_find(type);
	struct exporter_context context = { .version = "1.2.3" };
	struct exporter *exporter;
	void *options = calloc(1, ops->settings->size_bytes);
	int err;

	if (!options || setting_table_init(ops->settings, options) < 0 ||
	    (has_histograms && setting_table_set(ops->settings, options, &histogram, &diag)) ||
	    exporter_open("golden", ops, options, &context, &exporter) < 0)
		return 1;
	err = exporter_encode(exporter, batch);
	if (exporter->stats.points[POINTS_DELIVERED] != FIXTURE_POINTS)
		err = 1;
	exporter_free(exporter);
	setting_table_done(ops->settings, options);
	free(options);
	return err != 0;
}

/* A piece, under a line that tells its size and how many points end in it. */
static int write_piece(void *user, uint8_t *data, size_t size, size_t n_points)
{
	*(size_t *)user += n_points;
	printf("-- %zu bytes, %zu points\n%.*s%s", size, n_points, (int)size, (const char *)data,
	       data[size - 1] == '\n' ? "" : "\n");
	free(data);
	return 0;
}

static const struct variant {
	const char *name;
	enum dialect_id dialect;
	enum lines_histogram histogram;
	enum lines_unit unit;
	bool is_cumulative, sends_unchanged;
	size_t n_points; /* that have lines */
} variants[] = {
	{ "plain", DIALECT_PLAIN, LINES_COUNTERS, LINES_MICROSECONDS, false, false, 11 },
	{ "plain-timer", DIALECT_PLAIN, LINES_TIMER, LINES_SECONDS, false, true, 12 },
	{ "graphite", DIALECT_GRAPHITE, LINES_COUNTERS, LINES_NANOSECONDS, false, false, 11 },
	{ "dogstatsd", DIALECT_DOGSTATSD, LINES_COUNTERS, LINES_MILLISECONDS, false, true, 14 },
	{ "dogstatsd-distribution", DIALECT_DOGSTATSD, LINES_DISTRIBUTION, LINES_SECONDS, false, false, 10 },
	{ "influx", DIALECT_INFLUX, LINES_COUNTERS, LINES_SECONDS, false, false, 10 },
	{ "dotted", DIALECT_DOTTED, LINES_COUNTERS, LINES_SECONDS, false, false, 11 },
	{ "tagged", DIALECT_TAGGED, LINES_COUNTERS, LINES_SECONDS, true, false, 11 },
};

static int lines(const struct batch *batch, const struct variant *variant)
{
	const struct attribute resource[] = {
		{ .name = "host.name", .type = ATTRIBUTE_TEXT, .text = "vm1.example.com" },
	};
	char *tag = (char[]){ "host.name" };
	const struct setting_list tags = { .items = &tag, .n_items = 1 };
	struct exporter exporter = { .name = "golden" };
	size_t n_points = 0;
	struct lines writer = {
		.histogram = variant->histogram,
		.time_unit = variant->unit,
		.is_cumulative = variant->is_cumulative,
		.sends_unchanged = variant->sends_unchanged,
		.pack = { .limit_bytes = 1432, .put = write_piece, .user = &n_points },
		.exporter = &exporter,
	};
	int err;

	if (naming_init(&writer.naming, &dialect_table[variant->dialect], NULL, resource, 1, &tags) < 0)
		return 1;
	err = lines_push(&writer, batch, batch->time_ns / UINT64_C(1000000000));
	lines_done(&writer);
	return err || n_points != variant->n_points || exporter.stats.points[POINTS_PUSHED] != n_points;
}

static int lines_variant(const struct batch *batch, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(variants); i++)
		if (!strcmp(variants[i].name, name))
			return lines(batch, &variants[i]);
	return 1;
}

int main(int argc, char **argv)
{
	struct fixture fixture;
	int status;

	if (argc < 2 || !setlocale(LC_CTYPE, "C.UTF-8"))
		return 1;
	fixture_init(&fixture);
	if (!strcmp(argv[1], "otlp") && argc == 4)
		status = otlp(&fixture.batch, argv[2], argv[3]);
	else if (!strcmp(argv[1], "lines") && argc == 3)
		status = lines_variant(&fixture.batch, argv[2]);
	else
		status = strcmp(argv[1], "histogram") ? stream(&fixture.batch, argv[1], false) :
							stream(&fixture.batch, "console", true);
	fixture_done(&fixture);
	return status;
}

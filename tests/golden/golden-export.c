/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the fixture to standard output as an exporter of TYPE would:
 *
 *     golden-export json | bpftrace-json | console | otlp {cumulative|delta} {explicit|exponential}
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/exporter.h"
#include "export/otlp-encode.h"
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
		.limit_bytes = sizeof(room),
		.room = room,
		.resource = resource,
		.n_resource = 2,
		.version = "1.2.3",
	};
	size_t too_large;

	return otlp_encode(&encoding, batch, write_body, NULL, &too_large) || too_large;
}

static int stream(const struct batch *batch, const char *type)
{
	const struct exporter_ops *ops = exporter_find(type);
	struct exporter_context context = { .version = "1.2.3" };
	struct exporter *exporter;
	void *options = calloc(1, ops->options_size);
	int err;

	if (!options || options_init(ops->options, ops->n_options, options) < 0 ||
	    exporter_open("golden", ops, options, &context, &exporter) < 0)
		return 1;
	err = exporter_push(exporter, batch);
	if (exporter->stats.points_exported != FIXTURE_POINTS)
		err = 1;
	exporter_free(exporter);
	options_done(ops->options, ops->n_options, options);
	free(options);
	return err != 0;
}

int main(int argc, char **argv)
{
	struct fixture fixture;
	int status;

	if (argc < 2)
		return 1;
	fixture_init(&fixture);
	if (!strcmp(argv[1], "otlp") && argc == 4)
		status = otlp(&fixture.batch, argv[2], argv[3]);
	else
		status = stream(&fixture.batch, argv[1]);
	fixture_done(&fixture);
	return status;
}

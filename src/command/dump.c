/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "build-config.h"
#include "command/setup.h"
#include "export/otlp/options.h"

#define OTLP_LIMIT_BYTES (64u << 20)
#define DECODER "protoc --decode=opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceRequest"

/* The stages of the data, in order. */
static const struct stage {
	const char *name;
	bool needs_start;
	const char *exporter; /* prints the batch; or, NULL: */
	void (*print)(const struct collector *collector, FILE *f);
} stages[] = {
	{ "descriptor", false, NULL, collector_dump_descriptor },
	{ "shape", false, NULL, collector_dump_shape },
	{ "snapshot", true, NULL, collector_dump_snapshot },
	{ "batch", true, "json" },
	{ "otlp", true },
};

/*
 * The collector that was added only to name cgroups is printed unless others were asked for by
 * name.
 */
static int dump_collectors(const struct arguments *arguments, const struct setup *setup,
			   const struct stage *stage)
{
	size_t n = arguments->n_words > 1 ? setup->set.n_shown : setup->set.n;

	for (size_t i = 0; i < n; i++)
		stage->print(setup->set.items[i], stdout);
	return EXIT_OK;
}

static int write_body(void *user, const uint8_t *data, size_t size, size_t n_points)
{
	return fwrite(data, 1, size, stdout) == size ? 0 : -EIO;
}

/*
 * As the first exporter of this type encodes, or the one that the service would have without any.
 * -ENOMEM.
 */
static int find_encoding(const struct arguments *arguments, struct setup *setup,
			 struct otlp_encoding *ret_encoding)
{
	const struct config *config = setup->config;
	struct otlp_options *options;
	size_t i = 0;

	while (i < config->n_exporters && strcmp(config->exporters[i].ops->type, "otlp"))
		i++;
	if (i == config->n_exporters) {
		if (setup_replace_exporters(setup, "otlp", arguments))
			return -ENOMEM;
		i = 0;
	}
	options = config->exporters[i].options;
	*ret_encoding = options->encoding;
	options->encoding.owner_attribute = NULL; /* the caller's, since the exporter will go */
	return 0;
}

/* The body of an OTLP request as it would be sent, before compression; for protoc --decode. */
static int dump_otlp(const struct setup *setup, struct otlp_encoding *encoding)
{
	_cleanup_(freep) uint8_t *room = malloc(OTLP_LIMIT_BYTES);
	struct otlp_encoded encoded;

	encoding->limit_bytes = OTLP_LIMIT_BYTES;
	encoding->room = room;
	encoding->resource = setup->config->resource.items;
	encoding->n_resource = setup->config->resource.n;
	encoding->version = VERSION;
	if (!room || otlp_encode(encoding, agent_batch(setup->agent), write_body, NULL, &encoded))
		return EXIT_INTERNAL;
	return EXIT_OK;
}

/* Counts for a while, then prints what is there. */
static int dump_started(const struct arguments *arguments, struct setup *setup,
			const struct stage *stage)
{
	struct otlp_encoding encoding = { 0 };
	bool is_otlp = !strcmp(stage->name, "otlp");
	int err = is_otlp ? find_encoding(arguments, setup, &encoding) : 0;
	/* it is borrowed in all else */
	_cleanup_(freep) _unused_ char *owner_attribute = encoding.owner_attribute;
	enum exit_code code;

	if (err)
		return EXIT_INTERNAL;
	code = setup_count(arguments, setup, stage->exporter);
	if (code != EXIT_OK)
		return code;
	if (is_otlp)
		return dump_otlp(setup, &encoding);
	return stage->exporter ? EXIT_OK : dump_collectors(arguments, setup, stage);
}

int command_dump(const struct arguments *arguments)
{
	_cleanup_(setup_done) struct setup setup = { 0 };
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	const struct stage *stage =
		diag_find(&diag, "bpfpush dump", 0, "stage", arguments->words[0], stages, ARRAY_SIZE(stages));
	enum exit_code code;

	if (!stage) {
		fputs(buf_text(&diag.text), stderr);
		return EXIT_USE;
	}
	if (!strcmp(stage->name, "otlp") && isatty(STDOUT_FILENO)) {
		fprintf(stderr, "bpfpush dump: otlp is binary, and a terminal cannot show it: write it to a file, or to " DECODER "\n");
		return EXIT_USE;
	}
	code = setup_open(arguments, arguments->words + 1, &setup);
	if (code != EXIT_OK)
		return code;
	if (stage->needs_start)
		return dump_started(arguments, &setup, stage);
	return dump_collectors(arguments, &setup, stage);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "build-config.h"
#include "command/command.h"
#include "export/otlp/encode.h"

#define DURATION_NS    1000000000ull
#define OTLP_LIMIT_BYTES (64u << 20)

/* The stops of the way of the data, in its order. */
static const struct stop {
	const char *name;
	bool needs_start;
	const char *exporter; /* prints the batch; NULL: the collector prints itself */
} stops[] = {
	{ "descriptor", false, NULL },
	{ "shape", false, NULL },
	{ "snapshot", true, NULL },
	{ "batch", true, "json" },
	{ "otlp", true, NULL },
};

static const struct stop *find_stop(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(stops); i++)
		if (!strcmp(stops[i].name, name))
			return &stops[i];
	return NULL;
}

static int dump_collectors(const struct setup *setup, const char *stop)
{
	for (size_t i = 0; i < setup->set.n; i++)
		(void)collector_dump(setup->set.items[i], stop, stdout);
	return EXIT_OK;
}

static int write_body(void *user, const uint8_t *data, size_t size, size_t n_points)
{
	return fwrite(data, 1, size, stdout) == size ? 0 : -EIO;
}

/* The body of an OTLP request as it would be sent, before compression; for protoc --decode. */
static int dump_otlp(const struct setup *setup, const struct agent *agent)
{
	_cleanup_(freep) uint8_t *room = malloc(OTLP_LIMIT_BYTES);
	const struct otlp_encoding encoding = {
		.limit_bytes = OTLP_LIMIT_BYTES,
		.room = room,
		.resource = setup->config->resource.items,
		.n_resource = setup->config->resource.n,
		.version = VERSION,
	};
	struct otlp_encoded encoded;

	if (!room || otlp_encode(&encoding, agent_batch(agent), write_body, NULL, &encoded))
		return EXIT_INTERNAL;
	return EXIT_OK;
}

/* Counts for a while, then prints what is there. */
static int dump_started(const struct arguments *arguments, struct setup *setup, const struct stop *stop)
{
	_cleanup_(setup_free_exporter) struct config_exporter exporter = { 0 };
	_cleanup_(agent_freep) struct agent *agent = NULL;
	struct agent_options options = {
		.config = setup->config, .set = &setup->set, .exporters = &exporter, .is_once = true
	};
	int err, status;

	if (stop->exporter && setup_make_exporter(stop->exporter, NULL, NULL, &exporter))
		return EXIT_INTERNAL;
	options.n_exporters = stop->exporter != NULL;
	err = agent_new(&options, &agent);
	if (err)
		return setup_exit_code(err);
	if (agent_once(agent, arguments->duration_ns ? arguments->duration_ns : DURATION_NS,
		       arguments->command, &status))
		return EXIT_INTERNAL;
	if (!strcmp(stop->name, "otlp"))
		return dump_otlp(setup, agent);
	return stop->exporter ? EXIT_OK : dump_collectors(setup, stop->name);
}

int command_dump(const struct arguments *arguments)
{
	const struct stop *stop = arguments->n_words ? find_stop(arguments->words[0]) : NULL;
	_cleanup_(setup_done) struct setup setup = { 0 };
	enum exit_code code;

	if (!stop) {
		fprintf(stderr, "bpfpush dump: say which stop: descriptor, shape, snapshot, batch or otlp\n");
		return EXIT_USE;
	}
	code = setup_open(arguments, arguments->n_words > 1 ? (const char *const *)arguments->words + 1 : NULL, &setup);
	if (code != EXIT_OK)
		return code;
	return stop->needs_start ? dump_started(arguments, &setup, stop) : dump_collectors(&setup, stop->name);
}

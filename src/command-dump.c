/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "agent.h"
#include "command.h"

#define DURATION_NS 1000000000ull

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

/* Counts for a while, then prints what is there. */
static int dump_started(const struct arguments *arguments, struct setup *setup, const struct stop *stop)
{
	_cleanup_(setup_free_exporter) struct config_exporter exporter = { 0 };
	_cleanup_(agent_freep) struct agent *agent = NULL;
	struct agent_options options = {
		.config = setup->config, .set = &setup->set, .exporters = &exporter, .is_once = true
	};
	int err, status;

	if (stop->exporter && setup_make_exporter(stop->exporter, NULL, &exporter))
		return EXIT_INTERNAL;
	options.n_exporters = stop->exporter != NULL;
	err = agent_new(&options, &agent);
	if (err)
		return setup_exit_code(err);
	if (agent_once(agent, arguments->duration_ns ? arguments->duration_ns : DURATION_NS,
		       arguments->command, &status))
		return EXIT_INTERNAL;
	return stop->exporter ? EXIT_OK : dump_collectors(setup, stop->name);
}

int command_dump(const struct arguments *arguments)
{
	const struct stop *stop = arguments->n_words ? find_stop(arguments->words[0]) : NULL;
	_cleanup_(setup_done) struct setup setup = { 0 };
	enum exit_code code;

	if (!stop) {
		fprintf(stderr, "bpfpush dump: say which stop: descriptor, shape, snapshot or batch\n");
		return EXIT_USE;
	}
	code = setup_open(arguments, arguments->n_words > 1 ? (const char *const *)arguments->words + 1 : NULL, &setup);
	if (code != EXIT_OK)
		return code;
	return stop->needs_start ? dump_started(arguments, &setup, stop) : dump_collectors(&setup, stop->name);
}

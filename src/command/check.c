/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "command/setup.h"
#include "util/plural.h"

static void print_exporters(const struct config *config)
{
	if (config->n_exporters) {
		printf("%zu exporter%s", config->n_exporters, plural(config->n_exporters));
		for (size_t i = 0; i < config->n_exporters; i++)
			printf("%s%s", i ? ", " : ": ", config->exporters[i].name);
	} else if (config->is_export_off) {
		printf("exporting is switched off");
	} else {
		printf("no exporter configured: the service pushes OTLP to http://localhost:4318");
	}
	printf("\n");
}

int command_check(const struct arguments *arguments)
{
	_cleanup_(setup_done) struct setup setup = { 0 };
	enum exit_code code = setup_open(arguments, arguments->words, &setup);

	if (code != EXIT_OK)
		return code;
	printf("OK: %zu collector%s (", setup.set.n_shown, plural(setup.set.n_shown));
	for (size_t i = 0; i < setup.set.n_shown; i++)
		printf("%s%s", i ? ", " : "", setup.set.items[i]->name);
	printf("), ");
	print_exporters(setup.config);
	return EXIT_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "command.h"

int command_check(const struct arguments *arguments)
{
	const char *const *names = arguments->n_words ? (const char *const *)arguments->words : NULL;
	_cleanup_(setup_done) struct setup setup = { 0 };
	enum exit_code code = setup_open(arguments, names, &setup);

	if (code != EXIT_OK)
		return code;
	printf("OK: %zu collectors (", setup.set.n);
	for (size_t i = 0; i < setup.set.n; i++)
		printf("%s%s", i ? ", " : "", collector_name(setup.set.items[i]));
	printf("), %zu exporters", setup.config->n_exporters);
	for (size_t i = 0; i < setup.config->n_exporters; i++)
		printf("%s%s", i ? ", " : ": ", setup.config->exporters[i].name);
	printf("\n");
	return EXIT_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every collector that could be switched on. The descriptors say it all, so nothing is opened or
 * attached.
 */
#include <string.h>

#include "agent/collector-search.h"
#include "collector/descriptor.h"
#include "command/setup.h"
#include "util/array.h"
#include "util/log.h"

#define NAME_WIDTH 12
#define COST_WIDTH 11 /* "walk, clock" */

static void add_line(const struct wanted_collector *collector, bool is_on, bool is_json,
		     struct buf *out)
{
	_cleanup_(descriptor_freep) struct descriptor *descriptor =
		collector_search_describe(collector);
	const char *about = descriptor ? descriptor->description : "";
	const char *cost = descriptor ? descriptor->cost : NULL;

	if (!is_json) {
		buf_printf(out, "%-*s %-3s", NAME_WIDTH, collector->name, is_on ? "on" : "off");
		buf_printf(out, "  %-*s", COST_WIDTH, cost ?: "-");
		buf_printf(out, "  %s\n", *about ? about : "the descriptor cannot be read: see bpfpush check");
		return;
	}
	buf_begin_object(out, "collector", collector->name, "description", about, "directory", collector->path,
			 "cost", cost);
	buf_printf(out, "\"enabled\":%s}\n", is_on ? "true" : "false");
}

int command_available(const struct arguments *arguments, struct buf *out)
{
	_cleanup_(collector_search_done) struct collector_search search = { 0 }, all = { 0 };
	_cleanup_(config_freep) struct config *config = NULL;
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	int err;

	if (arguments->n_words || arguments->command) {
		fprintf(stderr, "bpfpush list: --available shows all collectors: remove %s\n",
			arguments->n_words ? "their names" : "\"--\" and the command");
		return EXIT_USE;
	}
	err = setup_read(arguments, &diag, &config) ?:
	      collector_search(config, NULL, &diag, &search);
	if (!err && !diag.n_errors)
		err = collector_search_all(&search, &all);
	array_for_each (collector, all.wanted, all.n_wanted) {
		bool is_on = array_find(search.wanted, search.n_wanted, collector->name);

		if (!strcmp(collector->name, INFRASTRUCTURE))
			is_on = !collector_is_disabled(config, INFRASTRUCTURE);
		add_line(collector, is_on, arguments->is_json, out);
	}
	log_lines(LOG_LEVEL_ERROR, buf_text(&diag.text));
	if (diag.n_errors)
		return EXIT_SETTINGS;
	return err ? EXIT_INTERNAL : EXIT_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each collector is and, given the privilege, how it works on this machine: everything is
 * attached for a moment with the kernel's program statistics on, and released again.
 */
#include <inttypes.h>
#include <string.h>

#include "command/setup.h"
#include "util/array.h"

#define MIB	    (1 << 20)

static const char *const states[] = {
	[PROGRAM_WAITING] = "alternative",
	[PROGRAM_OFF] = "off",
	[PROGRAM_REFUSED] = "refused",
	[PROGRAM_ATTACHED] = "attached",
};
static const char *const kinds[] = { "sum", "gauge", "histogram" };

/* The same for a person and as JSON. */
struct page {
	struct buf text, json;
	bool is_started;
};

static void add_program(struct page *page, const struct program *program)
{
	bool is_known = page->is_started || program->state != PROGRAM_WAITING;
	const char *state = is_known ? states[program->state] : "not loaded";
	const char *choice = program_choice(program), *about = program->error ?: choice;
	struct loss loss = program_loss(program);

	buf_printf(&page->text, "  program  %-28s %-32s %s", program->name, program->section, state);
	if (program->state == PROGRAM_ATTACHED)
		buf_printf(&page->text, ", %" PRIu64 " runs, %" PRIu64 " ns a run, %" PRIu64 " missed", program->runs,
			   program->runs ? program->run_time_ns / program->runs : 0, program->missed);
	if (program->state == PROGRAM_ATTACHED && loss.missed && loss.is_known) {
		buf_append_text(&page->text, " (");
		loss_append(&loss, &page->text);
		buf_append_byte(&page->text, ')');
	}
	buf_printf(&page->text, "%s%s\n", about ? ": " : "", about ?: "");

	buf_begin_object(&page->json, "name", program->name, "hook", program->hook, "section", program->section,
			 "state", state, "error", program->error, "choice", choice);
	buf_printf(&page->json, "\"runs\":%" PRIu64 ",\"run_time_ns\":%" PRIu64 ",\"missed\":%" PRIu64, program->runs,
		   program->run_time_ns, program->missed);
	if (loss.is_known)
		buf_printf(&page->json, ",\"missed_ratio\":%.9g", loss_share(&loss));
	buf_append_text(&page->json, "},");
}

/* The size and the memory of a table are known once it is loaded. */
static void add_map(struct page *page, const struct collector_map *map)
{
	uint64_t bytes = collector_map_kernel_bytes(map);

	buf_printf(&page->text, "  map      %-28s %s", map->name, map->type);
	if (page->is_started && map->n_keys)
		buf_printf(&page->text, ", %" PRIu32 " of", map->n_keys);
	if (page->is_started && map->max_entries)
		buf_printf(&page->text, "%s %" PRIu32 " %s", map->n_keys ? "" : ",", map->max_entries,
			   map->max_entries == 1 ? "entry" : "entries");
	if (bytes)
		buf_printf(&page->text, ", %" PRIu64 " KiB", bytes / 1024);
	buf_append_byte(&page->text, '\n');

	buf_begin_object(&page->json, "name", map->name, "type", map->type);
	buf_printf(&page->json, "\"max_entries\":%" PRIu32 ",\"keys\":%" PRIu32 ",\"memory_bytes\":%" PRIu64 "},",
		   map->max_entries, map->n_keys, bytes);
}

static void add_metric(struct page *page, const struct metric *metric)
{
	buf_printf(&page->text, "  metric   %-40s %-9s [%s] %s\n", metric->name, kinds[metric->kind], metric->unit,
		   metric->description);
	buf_begin_object(&page->json, "name", metric->name, "kind", kinds[metric->kind], "unit", metric->unit,
			 "description", metric->description);
	buf_end_list(&page->json, "},");
}

/* What a setting does is said by the collector's descriptor, unless it is one of a header. */
static void add_setting(struct page *page, const struct collector *collector, const struct setting *setting)
{
	const struct descriptor_param *param = descriptor_find_param(collector->descriptor, setting->name);
	const char *about = param ? param->description : NULL;
	_cleanup_(buf_done) struct buf value = BUF_INIT;

	if (!setting_show(&collector->settings, setting, &value))
		return;
	if (!param && !strcmp(setting->name, "per_process"))
		about = "One series for each process";
	buf_printf(&page->text, "  setting  %s = %s  %s\n", setting->name, buf_text(&value), about ?: "");
	buf_begin_object(&page->json, "name", setting->name, "description", about ?: "", "default",
			 param ? param->default_text : NULL, "value", buf_text(&value));
	buf_end_list(&page->json, "},");
}

static void add_collector(struct page *page, struct collector *collector)
{
	const char *description = collector->descriptor->description;
	const struct programs *programs = &collector->object->programs;
	const struct budget *budget = collector->budget;

	buf_printf(&page->text, "%s: %s\n  from %s\n", collector->name, description,
		   collector->is_probe ? collector->conf_path : collector->directory);
	buf_begin_object(&page->json, "collector", collector->name, "description", description, "directory",
			 collector->directory);
	buf_append_text(&page->json, "\"programs\":[");
	array_for_each (program, programs->items, programs->n)
		if (collector_uses(collector, program))
			add_program(page, program);
	buf_end_list(&page->json, "],\"maps\":[");
	collector_find_maps(collector);
	array_for_each (map, collector->maps, collector->n_maps)
		add_map(page, map);
	buf_end_list(&page->json, "],\"metrics\":[");
	for (size_t i = 0; i < collector->n_metrics; i++)
		add_metric(page, collector->metrics[i]);
	buf_end_list(&page->json, "],\"settings\":[");
	array_for_each (setting, collector->settings.items, collector->is_probe ? 0 : collector->settings.n)
		add_setting(page, collector, setting);
	buf_append_byte(&page->text, '\n');
	buf_end_list(&page->json, "],");
	buf_printf(&page->json,
		   "\"budget\":{\"series\":%" PRIu64 ",\"series_limit\":%" PRIu64 ",\"memory_bytes\":%" PRIu64
		   ",\"memory_limit_bytes\":%" PRIu64 "}}\n",
		   budget->n_series, budget->limit_series, budget->series_bytes + budget->table_bytes,
		   budget->limit_bytes);
}

int command_list(const struct arguments *arguments)
{
	_cleanup_(closep) _unused_ int statistics = -1;
	_cleanup_(setup_done) struct setup setup = { 0 };
	_cleanup_(agent_freep) struct agent *agent = NULL;
	struct page page = { 0 };
	struct buf *out = arguments->is_json ? &page.json : &page.text;
	const struct budget *budget;
	enum exit_code code;
	int status;
	size_t n;

	if (arguments->is_available)
		return command_available(arguments);
	code = setup_open(arguments, arguments->words, &setup);
	if (code != EXIT_OK)
		return code;
	statistics = programs_enable_stats(); /* without CAP_SYS_ADMIN, runs and times stay 0 */
	if (setup_replace_exporters(&setup, NULL, NULL, NULL))
		return EXIT_INTERNAL;
	setup.set.refused = calloc(setup.set.n, sizeof(*setup.set.refused));
	code = setup_count(arguments, &setup, false, &agent, &status);
	page.is_started = code == EXIT_OK;
	if (code == EXIT_RIGHTS && setup.set.n_shown)
		fprintf(stderr, "bpfpush list: nothing was attached: only what the files say is shown\n");
	else if (code != EXIT_OK && !setup.set.n_refused)
		return code;
	/* The collector that was added only to name cgroups is shown unless others were asked for by name. */
	n = arguments->n_words ? setup.set.n_shown : setup.set.n;
	for (size_t i = 0; i < n; i++)
		add_collector(&page, setup.set.items[i]);
	for (size_t i = 0; i < setup.set.n_refused; i++)
		add_collector(&page, setup.set.refused[i]);
	budget = setup.set.budget;
	if (page.is_started)
		buf_printf(&page.text, "budget: %" PRIu64 " of %" PRIu64 " series, %.1f of %.1f MiB for tables and series\n",
			   budget->n_series, budget->limit_series,
			   (double)(budget->series_bytes + budget->table_bytes) / MIB,
			   (double)budget->limit_bytes / MIB);
	fputs(buf_text(out), stdout);
	if (!setup.set.n_refused || buf_error(out))
		code = buf_error(out) ? EXIT_INTERNAL : EXIT_OK;
	buf_done(&page.text);
	buf_done(&page.json);
	return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each collector is and, given the privilege, how it works on this machine: everything is
 * attached for a moment with the kernel's program statistics on, and released again.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command/setup.h"
#include "util/array.h"
#include "util/duration.h"

#define DURATION_NS NS_PER_S
#define MIB	    (1 << 20)

static const char *const states[] = {
	[PROGRAM_WAITING] = "alternative",
	[PROGRAM_OFF] = "off",
	[PROGRAM_REFUSED] = "refused",
	[PROGRAM_ATTACHED] = "attached",
};
static const char *const kinds[] = { "sum", "gauge", "histogram" };

static const char *state_of(const struct program *program, bool is_started)
{
	return is_started || program->state != PROGRAM_WAITING ? states[program->state] : "not loaded";
}

/* The size and the memory of a table are known once it is loaded. */
static void list_map(const struct collector_map *map, bool is_started)
{
	uint64_t bytes = collector_map_kernel_bytes(map);

	printf("  map      %-28s %s", map->name, map->type);
	if (is_started && map->n_keys)
		printf(", %" PRIu32 " of", map->n_keys);
	if (is_started && map->max_entries)
		printf("%s %" PRIu32 " %s", map->n_keys ? "" : ",", map->max_entries,
		       map->max_entries == 1 ? "entry" : "entries");
	if (bytes)
		printf(", %" PRIu64 " KiB", bytes / 1024);
	putchar('\n');
}

/* What a setting does, by the collector's descriptor; or for a setting of a header. */
static void describe(const struct collector *collector, const struct setting *setting, struct buf *about)
{
	const struct descriptor_param *param = descriptor_find_param(collector->descriptor, setting->name);

	if (param)
		buf_append_text(about, param->description ?: "");
	else if (!strcmp(setting->name, "per_process"))
		buf_append_text(about, "One series for each process");
}

static void list_budget(const struct budget *budget)
{
	printf("budget: %" PRIu64 " of %" PRIu64 " series, %.1f of %.1f MiB for tables and series\n", budget->n_series,
	       budget->limit_series, (double)(budget->series_bytes + budget->table_bytes) / MIB,
	       (double)budget->limit_bytes / MIB);
}

static void list_runs(const struct program *program)
{
	struct loss loss = program_loss(program);
	_cleanup_(buf_done) struct buf share = BUF_INIT;

	printf(", %" PRIu64 " runs, %" PRIu64 " ns a run, %" PRIu64 " missed", program->runs,
	       program->runs ? program->run_time_ns / program->runs : 0, program->missed);
	if (!loss.missed || !loss.is_known)
		return;
	loss_append(&loss, &share);
	printf(" (%s)", buf_text(&share));
}

static void list_collector(struct collector *collector, bool is_started)
{
	const struct programs *programs = &collector->object->programs;

	printf("%s: %s\n  from %s\n", collector->name, collector->descriptor->description, collector->directory);
	for (uint32_t i = 0; i < programs->n; i++) {
		const struct program *program = &programs->items[i];
		const char *about;

		if (!collector_uses(collector, program))
			continue;
		printf("  program  %-28s %-32s %s", program->name, program->section, state_of(program, is_started));
		if (program->state == PROGRAM_ATTACHED)
			list_runs(program);
		about = program->error ?: program_choice(program);
		printf("%s%s\n", about ? ": " : "", about ?: "");
	}
	collector_find_maps(collector);
	array_for_each (map, collector->maps, collector->n_maps)
		list_map(map, is_started);
	for (size_t i = 0; i < collector->n_metrics; i++) {
		const struct metric *metric = collector->metrics[i];

		printf("  metric   %-40s %-9s [%s] %s\n", metric->name, kinds[metric->kind], metric->unit, metric->description);
	}
	for (size_t i = 0; i < collector->settings.n; i++) {
		_cleanup_(buf_done) struct buf value = BUF_INIT, about = BUF_INIT;
		const struct setting *setting = &collector->settings.items[i];

		if (!setting_show(&collector->settings, setting, &value))
			continue;
		describe(collector, setting, &about);
		printf("  setting  %s = %s  %s\n", setting->name, buf_text(&value), buf_text(&about));
	}
	putchar('\n');
}

/* Pairs of a name and a text, ended by NULL, after before; those without a text are left out. */
static void print_members(const char *before, ...)
{
	_cleanup_(buf_done) struct buf out = BUF_INIT;
	const char *name, *text;
	va_list pairs;

	va_start(pairs, before);
	while ((name = va_arg(pairs, const char *))) {
		text = va_arg(pairs, const char *);
		if (!text)
			continue;
		buf_printf(&out, "%s\"%s\":", before, name);
		buf_append_json(&out, text);
		before = ",";
	}
	va_end(pairs);
	fputs(buf_text(&out), stdout);
}

static void list_settings_json(const struct collector *collector)
{
	printf("],\"settings\":[");
	for (size_t i = 0, n = 0; i < collector->settings.n; i++) {
		_cleanup_(buf_done) struct buf value = BUF_INIT, about = BUF_INIT;
		const struct setting *setting = &collector->settings.items[i];
		const struct descriptor_param *param = descriptor_find_param(collector->descriptor, setting->name);

		if (!setting_show(&collector->settings, setting, &value))
			continue;
		describe(collector, setting, &about);
		print_members(n++ ? ",{" : "{", "name", setting->name, "description", buf_text(&about), "default",
			      param ? param->default_text : NULL, "value", buf_text(&value), NULL);
		putchar('}');
	}
	putchar(']');
}

static void list_json(struct collector *collector, bool is_started)
{
	const struct budget *budget = collector->budget;
	const struct programs *programs = &collector->object->programs;

	print_members("{", "collector", collector->name, "description", collector->descriptor->description ?: "",
		      "directory", collector->directory, NULL);
	printf(",\"programs\":[");
	for (uint32_t i = 0, n = 0; i < programs->n; i++) {
		const struct program *program = &programs->items[i];
		struct loss loss = program_loss(program);

		if (!collector_uses(collector, program))
			continue;
		print_members(n++ ? ",{" : "{", "name", program->name, "hook", program->hook, "section",
			      program->section, "state", state_of(program, is_started), "error", program->error, "choice",
			      program_choice(program), NULL);
		printf(",\"runs\":%" PRIu64 ",\"run_time_ns\":%" PRIu64 ",\"missed\":%" PRIu64, program->runs,
		       program->run_time_ns, program->missed);
		printf(loss.is_known ? ",\"missed_ratio\":%.9g}" : "}", loss_share(&loss));
	}
	printf("],\"maps\":[");
	collector_find_maps(collector);
	array_for_each (map, collector->maps, collector->n_maps) {
		print_members(map > collector->maps ? ",{" : "{", "name", map->name, "type", map->type, NULL);
		printf(",\"max_entries\":%" PRIu32 ",\"keys\":%" PRIu32 ",\"memory_bytes\":%" PRIu64 "}", map->max_entries,
		       map->n_keys, collector_map_kernel_bytes(map));
	}
	printf("],\"metrics\":[");
	for (size_t i = 0; i < collector->n_metrics; i++) {
		const struct metric *metric = collector->metrics[i];

		print_members(i ? ",{" : "{", "name", metric->name, "kind", kinds[metric->kind], "unit", metric->unit,
			      "description", metric->description, NULL);
		putchar('}');
	}
	list_settings_json(collector);
	printf(",\"budget\":{\"series\":%" PRIu64 ",\"series_limit\":%" PRIu64 ",\"memory_bytes\":%" PRIu64
	       ",\"memory_limit_bytes\":%" PRIu64 "}}\n",
	       budget->n_series, budget->limit_series, budget->series_bytes + budget->table_bytes, budget->limit_bytes);
}

int command_list(const struct arguments *arguments)
{
	_cleanup_(setup_done) struct setup setup = { 0 };
	_cleanup_(agent_freep) struct agent *agent = NULL;
	enum exit_code code = setup_open(arguments, arguments->words, &setup);
	/* Without CAP_SYS_ADMIN, runs and times stay 0. */
	_cleanup_(closep) _unused_ int statistics = programs_enable_stats();
	bool is_started;
	int status;
	size_t n;

	if (code != EXIT_OK)
		return code;
	if (setup_replace_exporters(&setup, NULL, NULL, NULL))
		return EXIT_INTERNAL;
	code = setup_count(arguments, &setup, false, DURATION_NS, &agent, &status);
	is_started = code == EXIT_OK;
	if (code == EXIT_RIGHTS && setup.set.n_shown)
		fprintf(stderr, "bpfpush list: nothing was attached: only what the files say is shown\n");
	else if (code != EXIT_OK)
		return code;
	/* The collector that was added only to name cgroups is shown unless others were asked for by name. */
	n = arguments->n_words ? setup.set.n_shown : setup.set.n;
	for (size_t i = 0; i < n; i++)
		(arguments->is_json ? list_json : list_collector)(setup.set.items[i], is_started);
	if (is_started && !arguments->is_json)
		list_budget(setup.set.budget);
	return EXIT_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each collector is and, given the privilege, how it works on this machine: everything is
 * attached for a moment with the kernel's program statistics on, and released again.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "command/setup.h"
#include "export/text/json-text.h"
#include "util/duration.h"
#include "util/log.h"

#define DURATION_NS NS_PER_S

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
	if (is_started && map->max_entries)
		printf(", %" PRIu32 " entries", map->max_entries);
	if (bytes)
		printf(", %" PRIu64 " KiB", bytes / 1024);
	putchar('\n');
}

static const struct descriptor_param *find_param(const struct collector *collector, const struct setting *setting)
{
	for (size_t i = 0; i < collector->descriptor->n_params; i++)
		if (!strcmp(collector->descriptor->params[i].name, setting->name))
			return &collector->descriptor->params[i];
	return NULL;
}

/* What a setting does: as its pair says, or as the headers do that bring it along. */
static void describe(const struct collector *collector, const struct setting *setting, struct buf *about)
{
	const struct descriptor_param *param = find_param(collector, setting);
	const char *suffix = strstr(setting->name, "_slots");

	if (param)
		buf_append_text(about, param->description ?: "");
	else if (!strcmp(setting->name, "per_process"))
		buf_append_text(about, "One series for each process");
	else if (suffix)
		buf_printf(about, "Keys for each CPU in table %.*s", (int)(suffix - setting->name), setting->name);
}

static void list_collector(struct collector *collector, bool is_started)
{
	const struct programs *programs = &collector->programs;
	struct collector_map map;

	printf("%s: %s\n  from %s\n", collector->name, collector->descriptor->description, collector->directory);
	for (uint32_t i = 0; i < programs->n; i++) {
		const struct program *program = &programs->items[i];

		printf("  program  %-28s %-32s %s", program->name, program->section, state_of(program, is_started));
		if (program->state == PROGRAM_ATTACHED)
			printf(", %" PRIu64 " runs, %" PRIu64 " ns a run, %" PRIu64 " missed", program->runs,
			       program->runs ? program->run_time_ns / program->runs : 0, program->missed);
		printf("%s%s\n", program->error ? ": " : "", program->error ? program->error : "");
	}
	for (size_t i = 0; collector_map(collector, i, &map); i++)
		list_map(&map, is_started);
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
		json_append_text(&out, text);
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
		const struct descriptor_param *param = find_param(collector, setting);

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
	const struct programs *programs = &collector->programs;
	struct collector_map map;

	print_members("{", "collector", collector->name, "description", collector->descriptor->description ?: "",
		      "directory", collector->directory, NULL);
	printf(",\"programs\":[");
	for (uint32_t i = 0; i < programs->n; i++) {
		const struct program *program = &programs->items[i];

		print_members(i ? ",{" : "{", "name", program->name, "hook", program->hook, "section",
			      program->section, "state", state_of(program, is_started), "error", program->error, NULL);
		printf(",\"runs\":%" PRIu64 ",\"run_time_ns\":%" PRIu64 ",\"missed\":%" PRIu64 "}", program->runs,
		       program->run_time_ns, program->missed);
	}
	printf("],\"maps\":[");
	for (size_t i = 0; collector_map(collector, i, &map); i++) {
		print_members(i ? ",{" : "{", "name", map.name, "type", map.type, NULL);
		printf(",\"max_entries\":%" PRIu32 ",\"keys\":%" PRIu32 ",\"memory_bytes\":%" PRIu64 "}", map.max_entries, map.n_keys,
		       collector_map_kernel_bytes(&map));
	}
	printf("],\"metrics\":[");
	for (size_t i = 0; i < collector->n_metrics; i++) {
		const struct metric *metric = collector->metrics[i];

		print_members(i ? ",{" : "{", "name", metric->name, "kind", kinds[metric->kind], "unit", metric->unit,
			      "description", metric->description, NULL);
		putchar('}');
	}
	list_settings_json(collector);
	printf("}\n");
}

/* CAP_BPF in the effective set (capabilities(7), proc(5)). */
static bool may_attach(void)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/self/status", "re");
	unsigned long long effective = 0;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "CapEff: %llx", &effective) == 1)
			break;
	return effective >> CAP_BPF & 1;
}

/*
 * Attaches everything for a moment. False, with a message, where that is not allowed or not
 * possible.
 */
static bool start(const struct arguments *arguments, struct setup *setup, struct agent **ret_agent)
{
	struct agent_options options = { .config = setup->config, .set = &setup->set, .is_once = true };
	int err, status;

	if (!may_attach()) {
		fprintf(stderr, "bpfpush list: CAP_BPF is missing, so nothing was attached: only what the files say is shown\n");
		return false;
	}
	err = agent_new(&options, ret_agent);
	if (err)
		return false;
	/* A kernel before 5.8 does not have it: then runs and times stay 0. */
	_cleanup_(closep) _unused_ int statistics = programs_enable_stats();

	err = agent_once(*ret_agent, arguments->duration_ns ? arguments->duration_ns : DURATION_NS,
			 arguments->command, &status);
	return !err;
}

int command_list(const struct arguments *arguments)
{
	_cleanup_(setup_done) struct setup setup = { 0 };
	_cleanup_(agent_freep) struct agent *agent = NULL;
	enum exit_code code = setup_open(arguments, arguments->words, &setup);
	bool is_started;
	size_t n;

	if (code != EXIT_OK)
		return code;
	is_started = start(arguments, &setup, &agent);
	if (!is_started && !setup.set.n_shown) {
		/*
		 * None could be started, which is logged; what their files say can be shown all the
		 * same.
		 */
		setup_done(&setup);
		code = setup_open(arguments, arguments->words, &setup);
		if (code != EXIT_OK)
			return code;
	}
	/* The pair that was added only to name cgroups is shown unless others were asked for by name. */
	n = arguments->n_words ? setup.set.n_shown : setup.set.n;
	for (size_t i = 0; i < n; i++)
		(arguments->is_json ? list_json : list_collector)(setup.set.items[i], is_started);
	return EXIT_OK;
}

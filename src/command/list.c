/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each collector is and, given the privilege, how it works on this machine: everything is
 * attached for a moment with the kernel's program statistics on, and released again.
 */
#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>

#include "agent/collector-search.h"
#include "collector/hook/target.h"
#include "command/setup.h"
#include "util/array.h"
#include "util/log.h"

#define MIB	    (1 << 20)

/* Of a line of list --available. */
#define NAME_WIDTH 12
#define COST_WIDTH 11 /* "walk, clock" */

static const char *const states[] = {
	[PROGRAM_WAITING] = "alternative",
	[PROGRAM_OFF] = "off",
	[PROGRAM_REFUSED] = "refused",
	[PROGRAM_ATTACHED] = "attached",
};

#define WIDTH_MIN 40
#define INDENT	  11 /* of what goes on in the next line */

/* The page for a person and as JSON. */
struct page {
	struct buf text, json;
	bool is_started;
	uint64_t measured_ns;
	double total_ratio; /* of a CPU, for all programs */
	int name_width, numbers_at; /* columns for what most programs have */
};

/*
 * Of the time of one CPU: of all programs of the collector, or of those that no collector before it
 * has, too.
 */
static double cpu_ratio(const struct page *page, const struct collector *collector, bool is_own)
{
	const struct programs *programs = &collector->object->programs;
	uint64_t sum_ns = 0;

	array_for_each (program, programs->items, programs->n)
		if (is_own ? program->collector == collector : collector_uses(collector, program))
			sum_ns += program->run_time_ns;
	return page->measured_ns ? (double)sum_ns / (double)page->measured_ns : 0;
}

static void add_program(struct page *page, const struct program *program)
{
	bool is_known = page->is_started || program->state != PROGRAM_WAITING;
	const char *state = is_known ? states[program->state] : "not loaded";
	const char *choice = program_choice(program), *about = program->error ?: choice;
	char places[64];
	double ratio = page->measured_ns ?
		       (double)program->run_time_ns / (double)page->measured_ns : 0;
	size_t begin = page->text.size;
	struct loss loss = program_loss(program);

	snprintf(places, sizeof(places), "at all %zu %s", program->n_places,
		 section_is(program->section, " usdt ") ? "places" : "functions of this name");
	if (!about && program->n_places > 1)
		about = places;
	buf_printf(&page->text, "  %-*s %s", page->name_width, program->name, program->section);
	if (page->text.size - begin > (size_t)page->numbers_at) {
		buf_append_byte(&page->text, '\n');
		begin = page->text.size;
	}
	buf_printf(&page->text, "%*s", page->numbers_at - (int)(page->text.size - begin), "");
	if (program->state == PROGRAM_ATTACHED)
		buf_printf(&page->text, " %9" PRIu64 " %6" PRIu64 " %6.2f %6" PRIu64, program->runs,
			   program->runs ? program->run_time_ns / program->runs : 0, ratio * 100,
			   program->missed);
	else
		buf_printf(&page->text, " %s", state);
	if (program->state == PROGRAM_ATTACHED && loss.missed && loss.is_known) {
		buf_append_text(&page->text, " (");
		loss_append(&loss, &page->text);
		buf_append_byte(&page->text, ')');
	}
	if (about)
		buf_printf(&page->text, "\n%*s%s", INDENT, "", about);
	buf_append_byte(&page->text, '\n');

	buf_begin_object(&page->json, "name", program->name, "hook", program->hook, "section", program->section,
			 "state", state, "error", program->error, "choice", choice);
	buf_printf(&page->json, "\"runs\":%" PRIu64 ",\"run_time_ns\":%" PRIu64 ",\"cpu_ratio\":%.9g,\"missed\":%" PRIu64,
		   program->runs, program->run_time_ns, ratio, program->missed);
	if (loss.is_known)
		buf_printf(&page->json, ",\"missed_ratio\":%.9g", loss_share(&loss));
	buf_append_text(&page->json, "},");
}

/* The size and the memory of a table are known once it is loaded. */
static void add_map(struct page *page, const struct collector_map *map)
{
	uint64_t bytes = collector_map_kernel_bytes(map);
	size_t begin = page->text.size;
	const char *unit = map->max_entries == 1 ? "entry" : "entries";

	buf_printf(&page->text, "  map      %-*s %s", page->name_width, map->name, map->type);
	if (page->is_started && map->n_keys)
		buf_printf(&page->text, ", %" PRIu32 " of", map->n_keys);
	if (page->is_started && map->max_entries)
		buf_printf(&page->text, "%s %" PRIu32 " %s", map->n_keys ? "" : ",",
			   map->max_entries, unit);
	if (bytes)
		buf_printf(&page->text, ", %" PRIu64 " KiB", bytes / 1024);
	buf_append_byte(&page->text, '\n');
	if (strchr(map->name, '.')) /* the compiler's, of variables */
		page->text.size = begin;

	buf_begin_object(&page->json, "name", map->name, "type", map->type);
	buf_printf(&page->json, "\"max_entries\":%" PRIu32 ",\"keys\":%" PRIu32 ",\"memory_bytes\":%" PRIu64 "},",
		   map->max_entries, map->n_keys, bytes);
}

static void add_metric(struct page *page, const struct metric *metric)
{
	const char *kind = metric->is_updown ? "updowncounter" : metric_kinds[metric->kind];

	buf_printf(&page->text, "  metric   %-40s %-9s [%s] %s\n", metric->name, kind, metric->unit, metric->description);
	buf_begin_object(&page->json, "name", metric->name, "kind", kind, "unit", metric->unit, "description",
			 metric->description);
	buf_end_list(&page->json, "},");
}

/* What a setting does is said by the collector's descriptor, unless it is one of a header. */
static void add_setting(struct page *page, const struct collector *collector,
			const struct variable *variable)
{
	const struct descriptor_param *param = descriptor_find_param(collector->descriptor,
								     variable->name);
	const char *default_text = param ? param->default_text : NULL;
	const char *about = param ? param->description : NULL;
	_cleanup_(buf_done) struct buf value = BUF_INIT;

	if (!variable_show(&collector->variables, variable, &value))
		return;
	if (!param && !strcmp(variable->name, "per_process"))
		about = "One series for each process";
	buf_printf(&page->text, "  setting  %s = %s  %s\n", variable->name, buf_text(&value), about ?: "");
	buf_begin_object(&page->json, "name", variable->name, "description", about ?: "",
			 "default", default_text, "value", buf_text(&value));
	buf_end_list(&page->json, "},");
}

static void add_event(struct page *page, const struct event_kind *event)
{
	const char *kind = event->is_span ? "span" : "event";
	const char *severity = event->is_span ? NULL : severity_name(event->severity);

	buf_printf(&page->text, "  %-8s %-40s %-9s %s\n", kind, event->name, severity ?: "",
		   event->description);
	buf_begin_object(&page->json, "name", event->name, "kind", kind, "severity", severity,
			 "description", event->description);
	buf_end_list(&page->json, "},");
}

static void add_collector(struct page *page, struct collector *collector)
{
	const char *description = collector->descriptor->description;
	const struct programs *programs = &collector->object->programs;
	const struct budget *budget = collector->budget;
	double ratio = cpu_ratio(page, collector, false);
	const struct event_kind *event;

	buf_printf(&page->text, "%s: %s\n  from %s\n", collector->name, description,
		   collector->is_probe ? collector->conf_path : collector->directory);
	buf_printf(&page->text, "  %-*s %-*s      runs ns/run  CPU %% missed\n", page->name_width, "program",
		   page->numbers_at - page->name_width - 3, "hook");
	buf_begin_object(&page->json, "collector", collector->name, "description", description, "directory",
			 collector->directory);
	buf_printf(&page->json, "\"cpu_ratio\":%.9g,\"programs\":[", ratio);
	array_for_each (program, programs->items, programs->n)
		if (collector_uses(collector, program))
			add_program(page, program);
	buf_end_list(&page->json, "],\"maps\":[");
	if (page->is_started)
		buf_printf(&page->text, "  %-*s%24.2f\n", page->numbers_at - 2, "all of them", ratio * 100);
	collector_find_maps(collector);
	array_for_each (map, collector->maps, collector->n_maps)
		add_map(page, map);
	buf_end_list(&page->json, "],\"metrics\":[");
	for (size_t i = 0; i < collector->n_metrics; i++)
		add_metric(page, collector->metrics[i]);
	buf_end_list(&page->json, "],\"events\":[");
	for (size_t i = 0; (event = collector_event(collector, i, NULL)); i++)
		add_event(page, event);
	buf_end_list(&page->json, "],\"settings\":[");
	if (!collector->is_probe)
		array_for_each (variable, collector->variables.items, collector->variables.n)
			add_setting(page, collector, variable);
	buf_append_byte(&page->text, '\n');
	buf_end_list(&page->json, "],");
	buf_printf(&page->json,
		   "\"budget\":{\"series\":%" PRIu64 ",\"series_limit\":%" PRIu64 ",\"memory_bytes\":%" PRIu64
		   ",\"memory_limit_bytes\":%" PRIu64 "},\"total_cpu_ratio\":%.9g}\n",
		   budget->n_series, budget->limit_series,
		   budget->series_bytes + budget->table_bytes,
		   budget->limit_bytes, page->total_ratio);
}

/* The first n of those that run, and all that do not. */
static void add_set(struct page *page, const struct collector_set *set, size_t n)
{
	const struct budget *budget = set->budget;

	for (size_t i = 0; i < set->n; i++)
		page->total_ratio += cpu_ratio(page, set->items[i], true);
	for (size_t i = 0; i < n; i++)
		add_collector(page, set->items[i]);
	for (size_t i = 0; i < set->n_refused; i++)
		add_collector(page, set->refused[i]);
	if (!page->is_started)
		return;
	buf_printf(&page->text, "all programs: %.2f %% of a CPU\nbudget: %" PRIu64 " of %" PRIu64 " series, "
		   "%.1f of %.1f MiB for tables and series\n", page->total_ratio * 100, budget->n_series,
		   budget->limit_series, (double)(budget->series_bytes + budget->table_bytes) / MIB,
		   (double)budget->limit_bytes / MIB);
}

/*
 * Every collector that could be switched on. The descriptors say it all, so nothing is opened or
 * attached.
 */
static void add_available(const struct wanted_collector *collector, bool is_on, bool is_json,
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

static enum exit_code list_available(const struct arguments *arguments, struct buf *out)
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
		add_available(collector, is_on, arguments->is_json, out);
	}
	log_lines(LOG_LEVEL_ERROR, buf_text(&diag.text));
	if (diag.n_errors)
		return EXIT_SETTINGS;
	return err ? EXIT_INTERNAL : EXIT_OK;
}

/*
 * Lines that are too wide go on in the next one, with a whole word, further to the left if it is a
 * long one.
 */
static void print_folded(struct buf *out, size_t width)
{
	const char *text = buf_text(out);
	size_t indent = 0, word;

	while (*text) {
		size_t length = strcspn(text, "\n"), cut = length;

		if (indent + length > width)
			for (cut = width - indent; cut > INDENT && text[cut] != ' '; cut--)
				;
		cut = cut > INDENT ? cut : length;
		printf("%*s%.*s\n", (int)indent, "", (int)cut, text);
		indent = cut < length ? INDENT : 0;
		text += cut + 1;
		word = strcspn(text, " \n");
		if (indent + word > width)
			indent = word < width ? width - word : 0;
	}
}

int command_list(const struct arguments *arguments)
{
	_cleanup_(closep) _unused_ int statistics = -1;
	_cleanup_(setup_done) struct setup setup = { 0 };
	struct winsize size = { 0 };
	bool is_terminal = !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col >= WIDTH_MIN;
	bool is_narrow = is_terminal && size.ws_col < 100;
	struct page page = { .name_width = is_narrow ? 20 : 28, .numbers_at = is_narrow ? 49 : 69 };
	struct buf *out = arguments->is_json ? &page.json : &page.text;
	size_t width = is_terminal && !arguments->is_json ? size.ws_col : SIZE_MAX;
	enum exit_code code;

	if (arguments->is_available) {
		code = list_available(arguments, out);
		print_folded(out, width);
		buf_done(out);
		return code;
	}
	code = setup_open(arguments, arguments->words, &setup);
	if (code != EXIT_OK)
		return code;
	statistics = programs_enable_stats(); /* without CAP_SYS_ADMIN, runs and times stay 0 */
	setup.set.refused = calloc(setup.set.n, sizeof(*setup.set.refused));
	code = setup_count(arguments, &setup, NULL);
	page.is_started = code == EXIT_OK;
	if (page.is_started)
		page.measured_ns = agent_batch(setup.agent)->time_ns -
				   agent_batch(setup.agent)->previous_ns;
	if (code == EXIT_RIGHTS && setup.set.n_shown)
		fprintf(stderr, "bpfpush list: nothing was attached: only what the files say is shown\n");
	else if (code != EXIT_OK && !setup.set.n_refused)
		return code;
	/*
	 * The collector that was added only to name cgroups is shown unless others were asked for
	 * by name.
	 */
	add_set(&page, &setup.set, arguments->n_words ? setup.set.n_shown : setup.set.n);
	print_folded(out, width);
	if (!setup.set.n_refused || buf_error(out))
		code = buf_error(out) ? EXIT_INTERNAL : EXIT_OK;
	buf_done(&page.text);
	buf_done(&page.json);
	return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "command/ask.h"

#include <stdio.h>
#include <string.h>

#include "agent/collector-search.h"
#include "agent/scope.h"
#include "util/array.h"
#include "util/parse.h"
#include "view/grid.h"

#define PER_PROCESS "per_process"

/* key of the collector called name, for an option. */
static int set_one(const struct collector_set *set, const char *option, const char *name,
		   const char *key, const char *value, struct diag *diag)
{
	const struct assignment assignment = { key, value, option, 0, 0 };
	struct collector *collector = collector_named(set->items, set->n_shown, name);
	_cleanup_(buf_done) struct buf others = BUF_INIT;

	if (collector)
		return collector_set(collector, &assignment, diag);
	if (!strcmp(option, "--duration")) {
		diag_add(diag, option, 0, "needs the collector %s: add it to the words", name);
		return 0;
	}
	for (size_t i = 0; i < set->n_shown; i++)
		buf_printf(&others, "%s%s", i ? ", " : "", set->items[i]->name);
	diag_add(diag, option, 0, "collector \"%s\" does not count here: name it among the words; now these count: %s", name,
		 buf_text(&others));
	return 0;
}

/* text: COLLECTOR.KEY=VALUE. The name of a collector may hold dots. */
static int set_written(const struct collector_set *set, const char *text, struct diag *diag)
{
	char name[COLLECTOR_NAME_BYTES + 1], key[64];
	const char *equals = strchr(text, '='),
		*dot = equals ? memrchr(text, '.', (size_t)(equals - text)) : NULL;

	if (!dot || dot == text || dot + 1 == equals) {
		diag_add(diag, "--set", 0, "\"%s\": write COLLECTOR.KEY=VALUE", text);
		return 0;
	}
	snprintf(name, sizeof(name), "%.*s", (int)(dot - text), text);
	snprintf(key, sizeof(key), "%.*s", (int)(equals - dot - 1), dot + 1);
	return set_one(set, "--set", name, key, equals + 1, diag);
}

bool ask_is_of_processes(const struct arguments *arguments)
{
	static const char *const known[] = { "process", "pid", "executable.name", "creation.time" };
	const struct setting_list *lists[] = { &arguments->by, &arguments->where };
	bool is_found = false;

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		for (size_t j = 0; j < lists[i]->n_items; j++) {
			const char *word = lists[i]->items[j] + (*lists[i]->items[j] == '!');
			_cleanup_(freep) char *attribute = strndup(word, strcspn(word, "!="));

			for (size_t k = 0; attribute && k < ARRAY_SIZE(known); k++)
				is_found |= question_is_named(known[k], attribute);
		}
	return is_found;
}

bool ask_is_general(const struct arguments *arguments)
{
	bool is_detail = arguments->format || arguments->is_all || arguments->is_histogram ||
			 arguments->is_heatmap;

	is_detail |= arguments->n_words || arguments->probes.n_items || arguments->where.n_items;
	is_detail |= arguments->duration_calls != NULL;
	for (size_t i = 0; i < arguments->by.n_items; i++)
		is_detail |= strcmp(arguments->by.items[i], "unit") &&
			     strcmp(arguments->by.items[i], "process");
	return arguments->name == COMMAND_ONCE && !is_detail;
}

/* Collectors without processes count as they do. option: that needs one with them, or "". */
static int set_per_process(const struct collector_set *set, const char *option, struct diag *diag)
{
	const struct assignment yes = { PER_PROCESS, "yes", option, 0, 0 };
	size_t n = 0;
	int err = 0;

	for (size_t i = 0; i < set->n_shown && !err; i++) {
		if (!variable_find(&set->items[i]->variables, PER_PROCESS))
			continue;
		n++;
		err = collector_set(set->items[i], &yes, diag);
	}
	if (!n && *option)
		diag_add(diag, option, 0, "no collector that counts here has the setting per_process; \"bpfpush list\" shows "
					  "the settings of each");
	return err;
}

static int set_all(const struct arguments *arguments, const struct collector_set *set,
		   struct diag *diag)
{
	const char *option = arguments->is_per_process ? "--per-process" : "";
	int err = 0;

	if (array_find(arguments->by.items, arguments->by.n_items, "process"))
		option = "--by=process";
	for (size_t i = 0; i < arguments->settings.n_items && !err; i++)
		err = set_written(set, arguments->settings.items[i], diag);
	if (arguments->duration_calls && !err)
		err = set_one(set, "--duration", "syscalls", "duration", arguments->duration_calls, diag);
	if ((*option || ask_is_of_processes(arguments)) && !err)
		err = set_per_process(set, option, diag);
	return err;
}

/* A question is about some metrics if a word is not the name of a collector. */
static int add_metrics(const struct arguments *arguments, char *const *words,
		       const struct collector_set *set,
		       struct diag *diag, struct question *question)
{
	bool has_metric = false;
	int err = 0;

	for (char *const *word = words; *word; word++)
		has_metric |= !collector_named(set->items, set->n_shown, *word);
	if (has_metric && !(arguments->name & (COMMAND_ASKS | COMMAND_REPORT)))
		diag_add(diag, "bpfpush", 0, "only once, top and report take metrics; name their collectors: %s",
			 set->items[0]->name);
	for (; has_metric && *words && !err; words++)
		err = setting_list_add(&question->metrics, *words);
	for (size_t i = 0; has_metric && i < set->n_shown && !err; i++)
		if (set->items[i]->is_probe)
			err = setting_list_add(&question->metrics, set->items[i]->name);
	return err;
}

/*
 * An attribute may be written with an end of its name; of columns, which have one of these kinds,
 * only the heading.
 */
static void check_word(const char *option, const char *word, const struct names *names,
		       unsigned int kinds, struct diag *diag)
{
	const char *known[GRID_NUMBERS_MAX + ARRAY_SIZE(names->items)];
	size_t n = kinds ? grid_list_numbers(kinds, known) : 0;

	for (size_t i = 0; i < names->n; i++) {
		const char *heading = grid_heading(names->items[i]);

		if (!kinds && question_is_named(word, names->items[i]))
			return;
		if (!array_find(known, n, heading))
			known[n++] = heading;
	}
	if (array_find(known, n, word))
		return;
	if (!kinds && parse_nearest(word, names->items, names->n))
		diag_add_unknown(diag, option, 0, "attribute", word, names->items, names->n);
	else
		diag_add_unknown(diag, option, 0, kinds ? "column" : "attribute", word, known, n);
}

/* The attributes and kinds of the metrics that are asked for. */
static void list_words(const struct collector_set *set, const struct question *question,
		       struct names *names, unsigned int *kinds)
{
	for (size_t i = 0; i < set->n_shown; i++)
		for (size_t j = 0; j < set->items[i]->n_metrics; j++) {
			if (!question_wants_metric(question, set->items[i]->metrics[j]))
				continue;
			collector_list_attributes(set->items[i], set->items[i]->metrics[j], names);
			*kinds |= 1U << set->items[i]->metrics[j]->kind;
		}
}

static void list_event_words(const struct collector_set *set, struct names *names)
{
	for (size_t i = 0; i < set->n_shown; i++)
		for (size_t j = 0; collector_event(set->items[i], j, names); j++)
			;
}

static void check_words(const struct arguments *arguments, const struct collector_set *set,
		       const struct question *question, struct diag *diag)
{
	struct names names = { 0 };
	unsigned int kinds = 0;
	bool has_owner = false;

	if (arguments->name == COMMAND_EVENTS)
		list_event_words(set, &names);
	else
		list_words(set, question, &names, &kinds);
	for (size_t i = 0; i < question->by.n_items; i++)
		if (strcmp(question->by.items[i], "none"))
			check_word("--by", question->by.items[i], &names, 0, diag);
	for (size_t i = 0; i < question->n_conditions; i++)
		check_word("--where", question->conditions[i].attribute, &names, 0, diag);
	/* The columns of a table of units are others. */
	if (arguments->sort && !ask_is_general(arguments) &&
	    (arguments->name == COMMAND_ONCE || question->metrics.n_items))
		check_word("--sort", arguments->sort, &names, kinds, diag);
	for (size_t i = 0; i < names.n; i++)
		has_owner |= attribute_owner(names.items[i]) != NULL;
	if (arguments->is_alone && !has_owner)
		diag_add(diag, "bpfpush", 0, "what is asked for is not counted for each unit, so not for a command alone: "
					     "add --whole-machine");
}

int ask_collectors(const struct arguments *arguments, char *const *words,
		   const struct collector_set *set,
		   struct diag *diag, struct question *ret_question)
{
	int err = question_init(ret_question, &arguments->by, &arguments->where, diag);
	char condition[64];

	err = err ?: set_all(arguments, set, diag);
	err = err ?: add_metrics(arguments, words, set, diag, ret_question);
	if (!err && !diag->n_errors)
		check_words(arguments, set, ret_question, diag);
	if (err || !arguments->is_alone)
		return err;
	/* only what the command does */
	snprintf(condition, sizeof(condition), "unit=%s", scope_name());
	return question_add(ret_question, condition, diag);
}

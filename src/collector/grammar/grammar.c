/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/grammar/grammar.h"

#include <regex.h>

#include "collector/descriptor.h"
#include "collector/grammar/buckets.h"
#include "util/duration.h"
#include "util/parse.h"

/*
 * A POSIX extended regular expression, and the end of the message about a text that it does not
 * match.
 */
struct grammar_pattern {
	const char *text, *complaint;
	bool is_compiled;
	regex_t compiled;
};

#define NAME  "[a-z][a-z0-9_]*([.][a-z][a-z0-9_]*)*"
#define COSTS "(walk|rare|hot|clock)"

static struct grammar_pattern name = { "^" NAME "$", "is not a lower-case dotted name; write one like \"disk.io.direction\"" };
static struct grammar_pattern unit = { "^[^ \t]{1,63}$", "is not a UCUM unit; write s, By, 1 or an annotation like {call}" };
static struct grammar_pattern kind = {
	"^(gauge|updowncounter)$", "cannot be set here: only gauge and updowncounter can (a sum or a histogram follows from the "
				   "member's type); write one of them or remove the line" };
static struct grammar_pattern object = {
	"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", "is not a plain name; write NAME for NAME.bpf.o in the descriptor's directory" };
/* Of the numbers of a collector, some may cost more than others. */
static struct grammar_pattern cost = {
	"^" COSTS "(, " COSTS ")*$", "is not a list of walk, rare, hot and clock; write one like \"walk, rare\"" };
static struct grammar_pattern attribute = {
	"^" NAME "=.", "is not a lower-case dotted name and a value; write attribute = disk.io.direction=read" };
static struct grammar_pattern pair = { "=", "has no number and text; write value = number=text" };
static struct grammar_pattern rate = { "^(0*[1-9][0-9]{0,18}|0x0*[1-9a-fA-F][0-9a-fA-F]{0,15})$", "is not a whole number above 0" };
static struct grammar_pattern filled = { ".", "is empty; write what to look for or to show, or remove the line" };

static const char *check_pattern(struct grammar_pattern *pattern, const char *word)
{
	if (!pattern->is_compiled)
		pattern->is_compiled = !regcomp(&pattern->compiled, pattern->text,
						REG_EXTENDED | REG_NOSUB);
	return pattern->is_compiled && !regexec(&pattern->compiled, word, 0, NULL, 0) ? NULL :
	       pattern->complaint;
}

const char *grammar_check(const struct grammar_key *key, const char *word)
{
	if (key->pattern)
		return check_pattern(key->pattern, word);
	return key->check ? key->check(word) : NULL;
}

const char *grammar_check_name(const char *word)
{
	return check_pattern(&name, word);
}

static const char *check_expire(const char *value)
{
	uint64_t ns;

	return !parse_duration_ns(value, &ns) && ns >= NS_PER_S ? NULL : "is not a time of at least 1s; write one like 10m";
}

#define LIST(list) offsetof(struct descriptor, list), offsetof(struct descriptor, n_##list), \
		   sizeof(*((struct descriptor *)NULL)->list)
#define PLACE(structure, subject) \
	offsetof(struct structure, subject), offsetof(struct structure, line)
#define EVENT_PLACE offsetof(struct descriptor_event, of.map), \
		    offsetof(struct descriptor_event, of.line), \
		    .flag_offset = offsetof(struct descriptor_event, is_span)

#define EVENT_KEYS(section) \
	{ section, "name", offsetof(struct descriptor_event, of.name), NULL, true, .pattern = &name }, \
	{ section, "description", offsetof(struct descriptor_event, of.description), NULL, true }, \
	{ section, "record", offsetof(struct descriptor_event, of.record), NULL, true }, \
	{ section, "attribute", offsetof(struct descriptor_event, of.attributes), NULL, false, \
	  GRAMMAR_PAIRS, .pattern = &attribute }, \
	{ section, "when", offsetof(struct descriptor_event, of.when) }

const struct grammar_section grammar_sections[GRAMMAR_SECTIONS] = {
	{ "collector" },
	{ "param", "NAME", LIST(params), PLACE(descriptor_param, name) },
	{ "metric", "MAP.MEMBER", LIST(metrics), PLACE(descriptor_metric, map),
	  offsetof(struct descriptor_metric, member) },
	{ "event", "MAP", LIST(events), EVENT_PLACE, .flag = false },
	{ "span", "MAP", LIST(events), EVENT_PLACE, .flag = true },
	{ "label", "MAP.MEMBER", LIST(labels), PLACE(descriptor_label, map),
	  offsetof(struct descriptor_label, member) },
	{ "program", "NAME", LIST(programs), PLACE(descriptor_program, name) },
	{ "cgroups", "MAP", LIST(cgroups), PLACE(descriptor_cgroups, map) },
};

const struct grammar_key grammar_keys[GRAMMAR_KEYS] = {
	{ "collector", "description", offsetof(struct descriptor, description), NULL, true },
	{ "collector", "object", offsetof(struct descriptor, object), .pattern = &object },
	{ "collector", "cost", offsetof(struct descriptor, cost), .pattern = &cost },
	{ "param", "default", offsetof(struct descriptor_param, default_text) },
	{ "param", "symbol", offsetof(struct descriptor_param, symbol) },
	{ "param", "description", offsetof(struct descriptor_param, description) },
	{ "metric", "name", offsetof(struct descriptor_metric, name), NULL, true, .pattern = &name },
	{ "metric", "unit", offsetof(struct descriptor_metric, unit), NULL, true, .pattern = &unit },
	{ "metric", "description", offsetof(struct descriptor_metric, description), NULL, true },
	{ "metric", "kind", offsetof(struct descriptor_metric, kind), .pattern = &kind },
	{ "metric", "attribute", offsetof(struct descriptor_metric, attributes), NULL, false, GRAMMAR_PAIRS,
	  .pattern = &attribute },
	{ "metric", "when", offsetof(struct descriptor_metric, when) },
	{ "metric", "buckets", offsetof(struct descriptor_metric, buckets), buckets_check, false,
	  GRAMMAR_TEXT, true },
	{ "metric", "range", offsetof(struct descriptor_metric, range), range_check },
	{ "metric", "bucket", offsetof(struct descriptor_metric, bucket) },
	{ "metric", "multiply", offsetof(struct descriptor_metric, multiply), multiply_check },
	{ "metric", "cpu", offsetof(struct descriptor_metric, cpu), .pattern = &name },
	{ "metric", "cpus", offsetof(struct descriptor_metric, cpus), .words = { "sum", "max", "last" } },
	{ "metric", "expire", offsetof(struct descriptor_metric, expire), check_expire },
	{ "metric", "zero", offsetof(struct descriptor_metric, zero), .words = { "yes", "no" } },
	{ "metric", "since", offsetof(struct descriptor_metric, since), .words = { "start", "zero" } },
	{ "metric", "record", offsetof(struct descriptor_metric, record) },
	EVENT_KEYS("event"),
	{ "event", "severity", offsetof(struct descriptor_event, severity),
	  .words = { "trace", "debug", "info", "warn", "error", "fatal" } },
	EVENT_KEYS("span"),
	{ "label", "name", offsetof(struct descriptor_label, name), .pattern = &name },
	{ "label", "as", offsetof(struct descriptor_label, as) },
	{ "label", "prefix", offsetof(struct descriptor_label, prefix), .pattern = &filled },
	{ "label", "value", offsetof(struct descriptor_label, values), NULL, false, GRAMMAR_PAIRS,
	  .pattern = &pair },
	{ "label", "match", offsetof(struct descriptor_label, matches), NULL, false, GRAMMAR_LIST,
	  .pattern = &filled },
	{ "label", "other", offsetof(struct descriptor_label, other), .pattern = &filled },
	{ "program", "when", offsetof(struct descriptor_program, when) },
	{ "program", "map", offsetof(struct descriptor_program, map) },
	{ "program", "runs", offsetof(struct descriptor_program, runs), .words = { "once", "seed" } },
	{ "program", "events", offsetof(struct descriptor_program, events) },
	{ "program", "backup", offsetof(struct descriptor_program, backup) },
	{ "program", "target", offsetof(struct descriptor_program, target) },
	{ "program", "binary", offsetof(struct descriptor_program, binary) },
	{ "program", "event", offsetof(struct descriptor_program, event) },
	{ "program", "frequency", offsetof(struct descriptor_program, frequency), .pattern = &rate },
	{ "program", "period", offsetof(struct descriptor_program, period), .pattern = &rate },
	{ "program", "interface", offsetof(struct descriptor_program, interfaces), NULL, false, GRAMMAR_LIST },
	{ "program", "mode", offsetof(struct descriptor_program, mode), .words = { "generic", "native" } },
	{ "cgroups", "match", offsetof(struct descriptor_cgroups, matches), NULL, false, GRAMMAR_LIST,
	  .pattern = &filled },
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/grammar/grammar.h"

#include <fnmatch.h>
#include <string.h>

#include "collector/descriptor.h"
#include "collector/grammar/buckets.h"
#include "util/duration.h"
#include "util/parse.h"

static const char *check_name(const char *value, size_t size)
{
	const char *end = value + size;
	bool is_start = true;

	for (; value < end; value++) {
		bool is_letter = *value >= 'a' && *value <= 'z';
		bool is_later = (*value >= '0' && *value <= '9') || *value == '_' || *value == '.';

		if (!is_letter && (is_start || !is_later))
			break;
		is_start = *value == '.';
	}
	return value < end || is_start ? "is not a lower-case dotted name; write one like \"disk.io.direction\"" : NULL;
}

const char *grammar_check_name(const char *value)
{
	return check_name(value, strlen(value));
}

static const char *check_unit(const char *value)
{
	return *value && strlen(value) <= 63 && !strpbrk(value, " \t") ? NULL :
		"is not a UCUM unit; write s, By, 1 or an annotation like {call}";
}

static const char *check_kind(const char *value)
{
	return !strcmp(value, "gauge") ? NULL :
		"cannot be set here: only gauge can (a sum or a histogram follows from the member's type); write "
		"kind = gauge or remove the line";
}

static const char *check_object(const char *value)
{
	return parse_is_name(value) ? NULL : "is not a plain name; write NAME for NAME.bpf.o in the descriptor's directory";
}

/* Of the numbers of a collector, some may cost more than others. */
static const char *check_cost(const char *value)
{
	const char *pattern = "@(walk|rare|hot|clock)*(, @(walk|rare|hot|clock))";

	return fnmatch(pattern, value, FNM_EXTMATCH) ?
		       "is not a list of walk, rare, hot and clock; write one like \"walk, rare\"" :
		       NULL;
}

static const char *check_rate(const char *value)
{
	uint64_t number;

	return parse_u64(value, &number) || !number ? "is not a whole number above 0" : NULL;
}

static const char *check_attribute(const char *value)
{
	const char *equals = strchr(value, '=');

	if (!equals || equals == value || !equals[1])
		return "has no name and value; write attribute = name=value";
	return check_name(value, (size_t)(equals - value));
}

static const char *check_value(const char *value)
{
	return strchr(value, '=') ? NULL : "has no number and text; write value = number=text";
}

static const char *check_text(const char *value)
{
	return *value ? NULL : "is empty; write what to look for or to show, or remove the line";
}

static const char *check_expire(const char *value)
{
	uint64_t ns;

	return !parse_duration_ns(value, &ns) && ns >= NS_PER_S ? NULL : "is not a time of at least 1s; write one like 10m";
}

#define LIST(list) offsetof(struct descriptor, list), offsetof(struct descriptor, n_##list), \
		   sizeof(*((struct descriptor *)NULL)->list)
#define PLACE(structure, subject) offsetof(struct structure, subject), offsetof(struct structure, line)

const struct grammar_section grammar_sections[GRAMMAR_SECTIONS] = {
	{ "collector" },
	{ "param", "NAME", LIST(params), PLACE(descriptor_param, name) },
	{ "metric", "MAP.MEMBER", LIST(metrics), PLACE(descriptor_metric, map), offsetof(struct descriptor_metric, member) },
	{ "label", "MAP.MEMBER", LIST(labels), PLACE(descriptor_label, map), offsetof(struct descriptor_label, member) },
	{ "program", "NAME", LIST(programs), PLACE(descriptor_program, name) },
	{ "cgroups", "MAP", LIST(cgroups), PLACE(descriptor_cgroups, map) },
};

const struct grammar_key grammar_keys[GRAMMAR_KEYS] = {
	{ "collector", "description", offsetof(struct descriptor, description), NULL, true },
	{ "collector", "object", offsetof(struct descriptor, object), check_object },
	{ "collector", "cost", offsetof(struct descriptor, cost), check_cost },
	{ "param", "default", offsetof(struct descriptor_param, default_text) },
	{ "param", "symbol", offsetof(struct descriptor_param, symbol) },
	{ "param", "description", offsetof(struct descriptor_param, description) },
	{ "metric", "name", offsetof(struct descriptor_metric, name), grammar_check_name, true },
	{ "metric", "unit", offsetof(struct descriptor_metric, unit), check_unit, true },
	{ "metric", "description", offsetof(struct descriptor_metric, description), NULL, true },
	{ "metric", "kind", offsetof(struct descriptor_metric, kind), check_kind },
	{ "metric", "attribute", offsetof(struct descriptor_metric, attributes), check_attribute, false, GRAMMAR_PAIRS },
	{ "metric", "when", offsetof(struct descriptor_metric, when) },
	{ "metric", "buckets", offsetof(struct descriptor_metric, buckets), buckets_check, false, GRAMMAR_TEXT, true },
	{ "metric", "bucket", offsetof(struct descriptor_metric, bucket) },
	{ "metric", "multiply", offsetof(struct descriptor_metric, multiply), multiply_check },
	{ "metric", "cpu", offsetof(struct descriptor_metric, cpu), grammar_check_name },
	{ "metric", "cpus", offsetof(struct descriptor_metric, cpus), .words = { "sum", "max", "last" } },
	{ "metric", "expire", offsetof(struct descriptor_metric, expire), check_expire },
	{ "metric", "zero", offsetof(struct descriptor_metric, zero), .words = { "yes", "no" } },
	{ "metric", "since", offsetof(struct descriptor_metric, since), .words = { "start", "zero" } },
	{ "metric", "record", offsetof(struct descriptor_metric, record) },
	{ "label", "name", offsetof(struct descriptor_label, name), grammar_check_name },
	{ "label", "as", offsetof(struct descriptor_label, as) },
	{ "label", "prefix", offsetof(struct descriptor_label, prefix), check_text },
	{ "label", "value", offsetof(struct descriptor_label, values), check_value, false, GRAMMAR_PAIRS },
	{ "label", "match", offsetof(struct descriptor_label, matches), check_text, false, GRAMMAR_LIST },
	{ "label", "other", offsetof(struct descriptor_label, other), check_text },
	{ "program", "when", offsetof(struct descriptor_program, when) },
	{ "program", "map", offsetof(struct descriptor_program, map) },
	{ "program", "runs", offsetof(struct descriptor_program, runs), .words = { "once", "seed" } },
	{ "program", "events", offsetof(struct descriptor_program, events) },
	{ "program", "backup", offsetof(struct descriptor_program, backup) },
	{ "program", "target", offsetof(struct descriptor_program, target) },
	{ "program", "binary", offsetof(struct descriptor_program, binary) },
	{ "program", "event", offsetof(struct descriptor_program, event) },
	{ "program", "frequency", offsetof(struct descriptor_program, frequency), check_rate },
	{ "program", "period", offsetof(struct descriptor_program, period), check_rate },
	{ "program", "interface", offsetof(struct descriptor_program, interfaces), NULL, false, GRAMMAR_LIST },
	{ "program", "mode", offsetof(struct descriptor_program, mode), .words = { "generic", "native" } },
	{ "cgroups", "match", offsetof(struct descriptor_cgroups, matches), check_text, false, GRAMMAR_LIST },
};

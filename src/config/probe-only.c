/* SPDX-License-Identifier: Apache-2.0 */
/* The condition of a [probe]: only = VALUE OPERATOR NUMBER. */
#include "config/probe-internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "util/array.h"
#include "util/parse.h"

#define LATENCY	   "latency"
#define ERRORS_MAX 4095
#define OPERATORS  "<>=!"

/* The names of the object's enum probe_only, in lower case. */
static const struct probe_operator {
	const char *text, *name;
} operators[] = {
	{ "<", "less" }, { "<=", "at_most" }, { ">", "greater" }, { ">=", "at_least" },
	{ "=", "equal" }, { "==", "equal" }, { "!=", "other" },
};

static bool split_condition(const char *text, struct probe_condition *ret_condition)
{
	struct probe_condition condition = { .value = "" };
	char sign[4] = "", rest[2];

	if (sscanf(text, " %127[^" OPERATORS " ] %3[" OPERATORS "] %63s %1s", condition.value, sign,
		   condition.bound, rest) != 3)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(operators); i++)
		if (!strcmp(operators[i].text, sign))
			condition.operator = &operators[i];
	*ret_condition = condition;
	return condition.operator;
}

bool probe_is_timed(const struct probe *probe)
{
	struct probe_condition condition;

	return probe->only && split_condition(probe->only, &condition) &&
	       !strcmp(condition.value, LATENCY);
}

/* "ENOENT" or "2", as the negative number that the kernel returns. */
static bool parse_error(const char *text, int64_t *ret_number)
{
	const char *name;
	uint64_t number;

	if (!parse_u64(text, &number) && number <= ERRORS_MAX) {
		*ret_number = -(int64_t)number;
		return true;
	}
	for (int i = 1; i <= ERRORS_MAX; i++) {
		name = strerrorname_np(i);
		if (!name || strcmp(name, text))
			continue;
		*ret_number = -i;
		return true;
	}
	return false;
}

static void write_condition(struct probe *probe, const struct probe_condition *condition,
			    int64_t bound)
{
	char number[32];

	snprintf(number, sizeof(number), "%" PRId64, bound);
	probe_write_param(probe, "only", condition->operator->name);
	probe_write_param(probe, "only_bound", number);
}

static void read_latency(struct probe *probe, const struct probe_condition *condition)
{
	uint64_t ns;

	if (parse_duration_ns(condition->bound, &ns) || ns > INT64_MAX) {
		complain(probe, "only", "\"%s\" is not a duration; write one like 10ms", condition->bound);
		return;
	}
	probe_write_param(probe, "only_latency", "yes");
	write_condition(probe, condition, (int64_t)ns);
}

static bool is_measured(const struct probe *probe, const struct probe_value *value)
{
	const struct probe_value *measured = &probe->measured;

	return !measured->from ||
	       (!strcmp(measured->name, value->name) && measured->type == value->type);
}

bool probe_condition_read(struct probe *probe, struct probe_condition *ret_condition)
{
	if (!split_condition(probe->only, ret_condition)) {
		complain(probe, "only", "\"%s\" is not a condition; write one like ret:s32 < 0, latency > 10ms or errno = ENOENT",
			 probe->only);
		return false;
	}
	if (!strcmp(ret_condition->value, LATENCY)) {
		read_latency(probe, ret_condition);
		return false;
	}
	if (!strcmp(ret_condition->value, "errno"))
		snprintf(ret_condition->value, sizeof(ret_condition->value), "ret:errno");
	return true;
}

void probe_condition_write(struct probe *probe, const struct probe_condition *condition,
			   const struct probe_value *value)
{
	const char *sign = condition->operator->text;
	bool is_error = probe_value_is(value, IS_ERROR);
	bool is_equality = strspn(sign, "=!") == strlen(sign);
	int64_t bound;

	if (value->text || probe_value_is(value, IS_WIDE))
		complain(probe, "only", "\"%s\" is not a number; name one", value->name);
	else if (!is_measured(probe, value))
		complain(probe, "only", "\"%s\" is not what is measured; write %s", value->name, probe->word);
	else if (is_error && !is_equality)
		complain(probe, "only", "errors have no order; compare with = or !=");
	else if (is_error && !parse_error(condition->bound, &bound))
		complain(probe, "only", "\"%s\" is not an error; write one like ENOENT, or 0 for none", condition->bound);
	else if (!is_error && parse_s64(condition->bound, &bound))
		complain(probe, "only", "\"%s\" is not a whole number", condition->bound);
	else {
		if (!probe->measured.from)
			probe_write_value(probe, "value", value);
		write_condition(probe, condition, bound);
	}
}

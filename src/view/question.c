/* SPDX-License-Identifier: Apache-2.0 */
#include "view/question.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "util/array.h"
#include "util/parse.h"

/* What "process" stands for. */
static const char *const process_attributes[] = { "process.pid", "process.executable.name", "unit" };

bool question_is_named(const char *word, const char *name)
{
	size_t length = strlen(name), n = strlen(word);

	if (!strcmp(word, "unit"))
		return attribute_owner(name) != NULL;
	return length >= n && !strcmp(name + length - n, word) &&
	       (length == n || name[length - n - 1] == '.');
}

bool question_lists(const struct setting_list *list, const char *name)
{
	for (size_t i = 0; i < list->n_items; i++)
		if (question_is_named(list->items[i], name))
			return true;
	return false;
}

int question_add(struct question *question, const char *text, struct diag *diag)
{
	bool is_absent = *text == '!';
	struct condition *condition = array_add(&question->conditions, &question->n_conditions,
						sizeof(*condition));
	const char *complaint;
	char *equals;
	if (!condition || !(condition->attribute = strdup(text + is_absent)))
		return -ENOMEM;
	equals = strchr(condition->attribute, '=');
	condition->is_negated = is_absent;
	if (equals) {
		condition->pattern = equals + 1;
		condition->is_negated = equals > condition->attribute && equals[-1] == '!';
		equals[condition->is_negated ? -1 : 0] = '\0';
	}
	if (!*condition->attribute || (is_absent && equals))
		diag_add(diag, "--where", 0, "\"%s\": write ATTRIBUTE, !ATTRIBUTE, ATTRIBUTE=PATTERN or ATTRIBUTE!=PATTERN",
			 text);
	else if (condition->pattern && parse_check_pattern(condition->pattern, &complaint))
		diag_add(diag, "--where", 0, "\"%s\": %s", text, complaint);
	return 0;
}

int question_init(struct question *question, const struct setting_list *by,
		  const struct setting_list *where, struct diag *diag)
{
	int err = 0;

	*question = (struct question){ 0 };
	for (size_t i = 0; i < by->n_items && !err; i++) {
		bool is_process = !strcmp(by->items[i], "process");

		for (size_t j = 0; j < (is_process ? ARRAY_SIZE(process_attributes) : 1) && !err;
		     j++)
			err = setting_list_add(&question->by,
					       is_process ? process_attributes[j] : by->items[i]);
	}
	for (size_t i = 0; i < where->n_items && !err; i++)
		err = question_add(question, where->items[i], diag);
	return err;
}

void question_done(struct question *question)
{
	for (size_t i = 0; i < question->n_conditions; i++)
		free(question->conditions[i].attribute);
	free(question->conditions);
	setting_list_clear(&question->metrics);
	setting_list_clear(&question->by);
	*question = (struct question){ 0 };
}

bool question_is_empty(const struct question *question)
{
	return !question->metrics.n_items && !question->by.n_items && !question->n_conditions;
}

const struct attribute *question_find(const char *word, const struct series *series)
{
	array_for_each (attribute, series->attributes, series->n_attributes)
		if (question_is_named(word, attribute->name))
			return attribute;
	return NULL;
}

static bool is_exempt(const struct question *question, const struct metric *metric)
{
	return question->exempt && !strcmp(question->exempt, metric->scope);
}

bool question_wants_metric(const struct question *question, const struct metric *metric)
{
	for (size_t i = 0; i < question->metrics.n_items; i++)
		if (!strcmp(question->metrics.items[i], metric->scope) ||
		    question_is_named(question->metrics.items[i], metric->name))
			return true;
	return !question->metrics.n_items || is_exempt(question, metric);
}

/* A list is matched as it is shown. */
static bool is_match(const char *pattern, const struct attribute *attribute)
{
	_cleanup_(buf_done) struct buf list = BUF_INIT;
	char number[ATTRIBUTE_NUMBER_BYTES];
	const char *text = attribute_text(attribute, number);

	if (attribute->type == ATTRIBUTE_TEXTS) {
		attribute_append(&list, attribute);
		text = buf_text(&list);
	}
	return !fnmatch(pattern, text, FNM_NOESCAPE);
}

static bool is_met(const struct condition *condition, const struct attribute *attributes, size_t n)
{
	array_for_each (attribute, attributes, n)
		if (question_is_named(condition->attribute, attribute->name) &&
		    (!condition->pattern || is_match(condition->pattern, attribute)))
			return !condition->is_negated;
	return condition->is_negated;
}

static bool are_met(const struct question *question, const struct attribute *attributes, size_t n)
{
	for (size_t i = 0; i < question->n_conditions; i++)
		if (!is_met(&question->conditions[i], attributes, n))
			return false;
	return true;
}

bool question_wants(const struct question *question, const struct series *series)
{
	return series_is_overflow(series) || is_exempt(question, series->metric) ||
	       are_met(question, series->attributes, series->n_attributes);
}

bool question_wants_owner(const struct question *question, const struct attributes *attributes)
{
	array_for_each (condition, question->conditions, question->n_conditions)
		if (!strcmp(condition->attribute, "unit") &&
		    !is_met(condition, attributes->items, attributes->n))
			return false;
	return true;
}

bool question_wants_event(const struct question *question, const struct attributes *attributes)
{
	return are_met(question, attributes->items, attributes->n);
}

void question_choose(const struct question *question, const struct series *series,
		     struct attributes *ret_attributes)
{
	attributes_init(ret_attributes);
	for (unsigned int i = 0; i < series->n_attributes; i++)
		if (!question->by.n_items || is_exempt(question, series->metric) ||
		    question_lists(&question->by, series->attributes[i].name))
			ret_attributes->items[ret_attributes->n++] = series->attributes[i];
}

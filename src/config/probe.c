/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Understands a [probe] section. What the section alone tells is checked here; whether there is such a function,
 * symbol or event is checked where every collector's hooks are.
 */
#include "config/internal.h"
#include "config/probe-internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"

#define CALLS HOOK_HAS_ARGUMENTS | HOOK_IS_FUNCTION
#define USE_RETURN "; write kretprobe: or uretprobe:, or measure = latency"

static const struct hook_kind hook_kinds[] = {
	{ "kprobe", "FUNCTION", CALLS, { "function__multi__enter", "function__kprobe__enter" },
	  { "function__multi__leave", "function__kprobe__leave" }, USE_RETURN },
	{ "kretprobe", "FUNCTION", CALLS | HOOK_HAS_RESULT, { "function__multi__enter", "function__kprobe__enter" },
	  { "function__multi__leave", "function__kprobe__leave" }, "" },
	{ "uprobe", "BINARY:FUNCTION", CALLS, { "user_enter" }, { "user_leave" }, USE_RETURN },
	{ "uretprobe", "BINARY:FUNCTION", CALLS | HOOK_HAS_RESULT, { "user_enter" }, { "user_leave" }, "" },
	{ "usdt", "BINARY:PROVIDER:NAME", HOOK_HAS_ARGUMENTS, { "user_mark" }, { 0 }, "; it has arg0 to arg5" },
	{ "tracepoint", "CATEGORY:NAME", HOOK_HAS_FIELDS, { "event__raw", "event__tp" }, { 0 },
	  "; write the name of one of its fields, or use rawtp:" },
	{ "rawtp", "NAME", HOOK_HAS_ARGUMENTS, { "event__raw" }, { 0 }, "; it has arg0 to arg5" },
	{ "perf", "EVENT", HOOK_IS_SAMPLED, { "sample" }, { 0 }, "; it can only be counted, by what runs" },
};

#define ROW(member, key, type, ...) SETTING(struct probe, member, key, type, ##__VA_ARGS__)

static const struct setting_row rows[] = {
	ROW(hook, "hook", SETTING_TEXT, NULL),
	ROW(measure, "measure", SETTING_TEXT, "count"),
	ROW(by, "by", SETTING_WORDS, NULL),
	ROW(name, "name", SETTING_TEXT, NULL),
	ROW(unit, "unit", SETTING_TEXT, NULL),
	ROW(description, "description", SETTING_TEXT, NULL),
	ROW(period, "period", SETTING_TEXT, NULL),
	ROW(frequency, "frequency", SETTING_TEXT, NULL),
};
const struct setting_table probe_settings = SETTING_TABLE(rows, struct probe);

/* While a section is understood. */
struct reader {
	struct probe *probe;
	struct diag *diag;
	struct event_format format;
	bool has_format; /* else any word may be a field */
};

#define complain(reader, key, ...) \
	assignments_complain(&(reader)->probe->all, (reader)->diag, key, NULL, __VA_ARGS__)

/* The same for a word that is none of a list. */
#define complain_of_unknown(reader, key, what, word, items, n)                                     \
	({                                                                                         \
		struct assignment place_ = assignments_place(&(reader)->probe->all, key, NULL);     \
		diag_add_unknown((reader)->diag, place_.path, place_.line, what, word, items, n);  \
	})

/* Has it as many parts as the form, and none of them is empty? */
static bool is_whole(const char *target, const char *form)
{
	if (!*target || *target == ':')
		return false;
	for (; *target && form; target++)
		if (*target == ':') {
			form = strchr(form, ':');
			form = form && target[1] && target[1] != ':' ? form + 1 : NULL;
		}
	return form && !strchr(form, ':');
}

static void find_hook(struct reader *reader)
{
	struct probe *probe = reader->probe;
	const char *colon;
	char kind[64];

	if (!probe->hook) {
		diag_add(reader->diag, probe->all.path, probe->all.line,
			 "[probe %s] lacks \"hook\"; add a line like hook = kprobe:vfs_read", probe->section);
		return;
	}
	colon = strchr(probe->hook, ':');
	snprintf(kind, sizeof(kind), "%.*s", (int)strcspn(probe->hook, ":"), probe->hook);
	probe->kind = array_find(hook_kinds, ARRAY_SIZE(hook_kinds), kind);
	if (!probe->kind) {
		complain_of_unknown(reader, "hook", "kind of hook", kind, hook_kinds, ARRAY_SIZE(hook_kinds));
		return;
	}
	probe->target = colon ? colon + 1 : "";
	if (is_whole(probe->target, probe->kind->form))
		return;
	complain(reader, "hook", "\"%s\" is not as it should be; write %s:%s", probe->hook, kind, probe->kind->form);
	probe->kind = NULL;
}

/* Without tracefs, or the right to read it, the event's fields are not known; then it cannot be attached either. */
static void read_format(struct reader *reader)
{
	const struct probe *probe = reader->probe;
	char event[256];

	if (!(probe->kind->can & HOOK_HAS_FIELDS))
		return;
	snprintf(event, sizeof(event), "%s", probe->target);
	*strchrnul(event, ':') = '/';
	reader->has_format = !event_format_read(event, &reader->format);
}

/* ":s32", ":text", or "" for the whole register. */
static bool parse_type(const char *type, struct probe_value *value)
{
	char sign = *type ? type[1] : '\0', *end;
	unsigned long bits;

	if (!*type)
		return true;
	value->is_text = !strcmp(type, ":text");
	if (value->is_text)
		return true;
	bits = strtoul(type + (sign ? 2 : 1), &end, 10);
	value->bytes = (uint32_t)bits / 8;
	value->is_signed = sign == 's';
	return (sign == 's' || sign == 'u') && isdigit((unsigned char)type[2]) && !*end &&
	       (bits == 8 || bits == 16 || bits == 32 || bits == 64);
}

static bool find_field(struct reader *reader, const char *key, struct probe_value *value)
{
	const struct event_field *field = array_find(reader->format.fields, reader->format.n, value->word);
	const uint32_t bytes = field ? field->bytes : 8;

	if (!field && reader->has_format) {
		complain_of_unknown(reader, key, "field", value->word, reader->format.fields, reader->format.n);
		return false;
	}
	value->from = "field";
	value->offset = field ? field->offset : 0;
	value->is_text = field ? field->text != NULL : value->is_text;
	value->is_signed = field && field->is_signed;
	value->text = field ? field->text : NULL;
	value->bytes = value->is_text && bytes > 64 ? 64 : bytes;
	if (value->is_text || bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8)
		return true;
	complain(reader, key, "field \"%s\" of %s is neither a number nor a text; use another one", value->word, reader->probe->target);
	return false;
}

/* Where its value comes from; false after a complaint. */
static bool find_value(struct reader *reader, const char *key, struct probe_value *value)
{
	static const char *const arguments[] = { "arg0", "arg1", "arg2", "arg3", "arg4", "arg5" };
	const struct probe *probe = reader->probe;
	unsigned int can = probe->kind->can | (probe->is_paired ? HOOK_HAS_RESULT : 0);
	bool is_argument = !strncmp(value->word, "arg", 3) && isdigit((unsigned char)value->word[3]);
	const char *const *found = array_find(arguments, ARRAY_SIZE(arguments), value->word);

	if (can & HOOK_HAS_FIELDS && !is_argument && strcmp(value->word, "ret") != 0)
		return find_field(reader, key, value);
	if (is_argument && !found)
		complain(reader, key, "\"%s\" is out of range; there are arg0 to arg5", value->word);
	else if (found && !(can & HOOK_HAS_ARGUMENTS))
		complain(reader, key, "%s: has no arguments%s", probe->kind->name, probe->kind->remedy);
	else if (!found && (strcmp(value->word, "ret") || !(can & HOOK_HAS_RESULT)))
		complain(reader, key, "\"%s\" is not known at %s:%s", value->word, probe->kind->name, probe->kind->remedy);
	else
		value->from = found ? *found : "ret";
	return value->from;
}

static bool read_value(struct reader *reader, const char *key, const char *text, struct probe_value *ret_value)
{
	struct probe_value value = { .bytes = 8, .is_signed = true };
	const char *type = strchrnul(text, ':');

	snprintf(value.word, sizeof(value.word), "%.*s", (int)(type - text), text);
	if (!parse_type(type, &value)) {
		complain(reader, key, "\"%s\": there is no type \"%s\"; write text, or s or u with 8, 16, 32 or 64, like %s:s32", text,
			 type + 1, value.word);
		return false;
	}
	if (!find_value(reader, key, &value))
		return false;
	*ret_value = value;
	return true;
}

static void read_measure(struct reader *reader)
{
	static const char *const names[] = { "count", "latency", "sum", "histogram" };
	struct probe *probe = reader->probe;
	char word[32], value[128] = "", rest[2];
	const char *const *what;
	bool has_value;

	if (sscanf(probe->measure, "%31s %127s %1s", word, value, rest) > 2)
		*word = '\0';
	what = array_find(names, ARRAY_SIZE(names), word);
	has_value = what && what >= &names[2];
	probe->what = what ? *what : names[0];
	probe->is_paired = what == &names[1];
	if (!what || has_value != !!*value)
		complain(reader, "measure", "\"%s\" is not known; write count, latency, sum VALUE or histogram VALUE", probe->measure);
	else if (probe->is_paired && !(probe->kind->can & HOOK_IS_FUNCTION))
		complain(reader, "measure", "latency needs a function that returns; use kprobe: or uprobe:, or measure = count");
	else if (has_value && read_value(reader, "measure", value, &probe->measured) && probe->measured.is_text)
		complain(reader, "measure", "\"%s\" is a text; name a number", value);
}

static void read_by_word(struct reader *reader, const char *text)
{
	struct probe *probe = reader->probe;
	const struct {
		const char *word;
		bool *is_on;
	} words[] = { { "unit", &probe->by_unit }, { "process", &probe->by_process }, { "errno", &probe->by_errno },
		      { "cpu", &probe->by_cpu }, { "comm", &probe->by_comm } };
	struct probe_value value;

	array_for_each (word, words, ARRAY_SIZE(words))
		if (!strcmp(word->word, text)) {
			*word->is_on = true;
			return;
		}
	if (!read_value(reader, "by", text, &value))
		return;
	if (value.is_text && probe->text.from)
		complain(reader, "by", "\"%s\" is a second text; at most one is possible", text);
	else if (value.is_text && !strcmp(value.from, "ret"))
		complain(reader, "by", "\"%s\": a result cannot be read as text; name an argument", text);
	else if (value.is_text)
		probe->text = value;
	else if (probe->n_numbers == PROBE_NUMBERS)
		complain(reader, "by", "\"%s\" is a number more than %d, which are possible", text, PROBE_NUMBERS);
	else
		probe->numbers[probe->n_numbers++] = value;
}

static bool is_argument(const struct probe_value *value)
{
	return value->from && !strncmp(value->from, "arg", 3);
}

static void read_rest(struct reader *reader)
{
	struct probe *probe = reader->probe;
	bool has_result = probe->kind->can & HOOK_HAS_RESULT, is_sampled = probe->kind->can & HOOK_IS_SAMPLED;

	read_format(reader);
	read_measure(reader);
	for (size_t i = 0; i < probe->by.n_items; i++)
		read_by_word(reader, probe->by.items[i]);
	if (probe->by_errno && !has_result && !probe->is_paired)
		complain(reader, "by", "errno is known where a function returns" USE_RETURN);
	if (probe->period && !is_sampled)
		complain(reader, "period", "is for hook = perf:EVENT; remove the line");
	if (probe->frequency && !is_sampled)
		complain(reader, "frequency", "is for hook = perf:EVENT; remove the line");
	/* Arguments are lost where a function returns. */
	if (has_result) {
		probe->is_paired |= is_argument(&probe->measured) || is_argument(&probe->text);
		for (size_t i = 0; i < probe->n_numbers; i++)
			probe->is_paired |= is_argument(&probe->numbers[i]);
	}
}

/* The last part of the hook, as a name that no other probe has. */
static void name_hook(const struct config *config, const char *hook, size_t length, char name[48])
{
	const char *at = hook + length;
	size_t n;

	while (at > hook && at[-1] != ':')
		at--;
	at += strspn(at, "_.0123456789");
	n = (size_t)(hook + length - at);
	snprintf(name, 40, "%.*s", n < 36 ? (int)n : 36, at);
	for (char *c = name; *c; c++)
		*c = isalnum((unsigned char)*c) ? *c : '_';
	if (!*name)
		memcpy(name, "probe", sizeof("probe"));
	n = strlen(name);
	for (int i = 2; config_find_section(config, "probe", name); i++)
		snprintf(name + n, 48 - n, "_%d", i);
}

int config_add_probe(struct config *config, const char *text, struct diag *diag, const char **ret_name)
{
	_cleanup_(buf_done) struct buf section = BUF_INIT;
	const char *colon = strchr(text, ':'), *hook = colon ?: text, *by;
	size_t length;
	char name[48];
	int err;

	while (hook > text && hook[-1] != ' ')
		hook--;
	length = strcspn(hook, " ");
	by = hook + length + strspn(hook + length, " ");
	*ret_name = NULL;
	if (!colon || strpbrk(text, "\r\n") || (*by && strncmp(by, "by ", 3))) {
		diag_add(diag, "bpfpush", 0, "--probe \"%s\" is not as it should be; write MEASURE HOOK by VALUES, like "
			 "\"latency uprobe:libc:getaddrinfo by unit\"", text);
		return 0;
	}
	name_hook(config, hook, length, name);
	buf_printf(&section, "[probe %s]\nhook = %.*s\n", name, (int)length, hook);
	if (hook > text)
		buf_printf(&section, "measure = %.*s\n", (int)(hook - text), text);
	if (*by)
		buf_printf(&section, "by = %s\n", by + 3);
	err = buf_error(&section) ?: config_read_text(config, buf_text(&section), "bpfpush --probe", diag);
	if (!err && config_find_section(config, "probe", name))
		*ret_name = config_find_section(config, "probe", name)->name;
	return err;
}

int probe_describe(const struct config_section *section, struct diag *diag, struct probe_text *ret_text)
{
	struct probe probe = { .section = section->name,
			       .all = { section->settings, section->n_settings, section->path, section->line } };
	struct reader reader = { .probe = &probe, .diag = diag };
	unsigned int n_before = diag->n_errors;
	int err = setting_table_init(&probe_settings, &probe);

	for (size_t i = 0; i < section->n_settings && !err; i++)
		if (strcmp(section->settings[i].key, "drop_attributes")) /* which every collector has */
			err = setting_table_set(&probe_settings, &probe, &section->settings[i], diag);
	if (!err)
		find_hook(&reader);
	if (!err && probe.kind)
		read_rest(&reader);
	if (!err && diag->n_errors == n_before)
		err = probe_write(&probe, ret_text);
	setting_table_done(&probe_settings, &probe);
	return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Understands a [probe] section. What the section alone tells is checked here; whether there is such a function,
 * symbol or event is checked where every collector's hooks are.
 */
#include "config/event-format.h"
#include "config/internal.h"
#include "config/probe-internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"

#define CALLS HOOK_HAS_ARGUMENTS | HOOK_IS_FUNCTION
#define NO_TEXT "arguments can be text, results cannot"
#define USE_RETURN "write kretprobe: or uretprobe:, or measure = latency"

static const struct hook_kind hook_kinds[] = {
	{ "kprobe", "FUNCTION", CALLS, { "function__multi__enter", "function__kprobe__enter" },
	  { "function__multi__leave", "function__kprobe__leave" }, USE_RETURN },
	{ "kretprobe", "FUNCTION", CALLS | HOOK_HAS_RESULT, { "function__multi__enter", "function__kprobe__enter" },
	  { "function__multi__leave", "function__kprobe__leave" }, NO_TEXT },
	{ "uprobe", "BINARY:FUNCTION", CALLS, { "user_enter" }, { "user_leave" }, USE_RETURN },
	{ "uretprobe", "BINARY:FUNCTION", CALLS | HOOK_HAS_RESULT, { "user_enter" }, { "user_leave" }, NO_TEXT },
	{ "usdt", "BINARY:PROVIDER:NAME", HOOK_HAS_ARGUMENTS, { "user_mark" }, { 0 }, "it has arg0 to arg5" },
	{ "tracepoint", "CATEGORY:NAME", HOOK_HAS_FIELDS, { "event__raw", "event__tp" }, { 0 },
	  "write the name of one of its fields, or use rawtp:" },
	{ "rawtp", "NAME", HOOK_HAS_ARGUMENTS, { "event__raw" }, { 0 }, "it has arg0 to arg5" },
	{ "perf", "EVENT", HOOK_IS_SAMPLED, { "sample" }, { 0 }, "it can only be counted, by what runs" },
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
static const struct setting_table probe_settings = SETTING_TABLE(rows, struct probe);

/* While a section is understood. */
struct reader {
	struct probe *probe;
	struct diag *diag;
	struct event_fields fields;
};

#define complain(reader, key, ...) \
	assignments_complain(&(reader)->probe->all, (reader)->diag, key, NULL, __VA_ARGS__)

#define complain_of_word(reader, key, what, word, items, n)                                        \
	({                                                                                         \
		struct assignment place_ = assignments_place(&(reader)->probe->all, key, NULL);     \
		diag_add_unknown((reader)->diag, place_.path, place_.line, what, word, items, n);  \
	})

static size_t count_colons(const char *text)
{
	size_t n = 0;

	while ((text = strchr(text, ':')))
		n++, text++;
	return n;
}

static void find_hook(struct reader *reader)
{
	struct probe *probe = reader->probe;
	char kind[64];

	snprintf(kind, sizeof(kind), "%.*s", (int)strcspn(probe->hook ?: "", ":"), probe->hook ?: "");
	probe->kind = array_find(hook_kinds, ARRAY_SIZE(hook_kinds), kind);
	if (!probe->hook)
		diag_add(reader->diag, probe->all.path, probe->all.line,
			 "[probe %s] lacks \"hook\"; add a line like hook = kprobe:vfs_read", probe->section);
	else if (!probe->kind)
		complain_of_word(reader, "hook", "kind of hook", kind, hook_kinds, ARRAY_SIZE(hook_kinds));
	if (!probe->kind)
		return;
	probe->target = probe->hook + strlen(kind) + (probe->hook[strlen(kind)] == ':');
	if (*probe->target && *probe->target != ':' && !strstr(probe->target, "::") &&
	    probe->target[strlen(probe->target) - 1] != ':' &&
	    count_colons(probe->target) == count_colons(probe->kind->form))
		return;
	complain(reader, "hook", "\"%s\" does not have the right parts; write %s:%s", probe->hook, kind, probe->kind->form);
	probe->kind = NULL;
}

/* ":s32", ":text", or "" for the whole register. */
static bool parse_type(const char *type, struct probe_value *value)
{
	unsigned int bits = 64;
	char sign = 's';
	int end = 0;

	value->is_text = !strcmp(type, ":text");
	if (*type && !value->is_text && (sscanf(type, ":%c%u%n", &sign, &bits, &end) != 2 || type[end]))
		return false;
	value->bytes = bits / 8;
	value->is_signed = sign == 's';
	return (sign == 's' || sign == 'u') && (bits == 8 || bits == 16 || bits == 32 || bits == 64);
}

/* If they cannot be read, neither can the event be attached. */
static bool take_field(struct reader *reader, const char *key, struct probe_value *value)
{
	const struct event_field *field = array_find(reader->fields.items, reader->fields.n, value->word);

	value->from = "field";
	if (!field && reader->fields.n)
		complain_of_word(reader, key, "field", value->word, reader->fields.items, reader->fields.n);
	if (!field)
		return !reader->fields.n;
	value->offset = field->offset;
	value->is_signed = field->is_signed;
	value->is_text = field->text;
	value->text = field->text;
	value->bytes = field->text && field->bytes > 64 ? 64 : field->bytes;
	if (field->text || (field->bytes <= 8 && !(field->bytes & (field->bytes - 1))))
		return true;
	complain(reader, key, "field \"%s\" of %s is neither a number nor a text; use another one", value->word,
		 reader->probe->target);
	return false;
}

/* Where it comes from; false after a complaint. */
static bool read_value(struct reader *reader, const char *key, const char *text, struct probe_value *ret_value)
{
	static const char *const words[] = { "arg0", "arg1", "arg2", "arg3", "arg4", "arg5", "ret",
					     "unit", "process", "comm", "cpu", "errno" };
	const struct hook_kind *kind = reader->probe->kind;
	bool has_result = kind->can & HOOK_HAS_RESULT || reader->probe->is_paired;
	const char *type = strchrnul(text, ':');
	const char *const *found;
	struct probe_value value = { 0 };

	snprintf(value.word, sizeof(value.word), "%.*s", (int)(type - text), text);
	found = array_find(words, ARRAY_SIZE(words), value.word);
	if (!parse_type(type, &value))
		complain(reader, key, "\"%s\": there is no type \"%s\"; write text, or s or u with 8, 16, 32 or 64, like %s:s32", text,
			 type + 1, value.word);
	else if (kind->can & HOOK_HAS_FIELDS && !found)
		found = take_field(reader, key, &value) ? words : NULL;
	else if (!found && !strncmp(value.word, "arg", 3) && isdigit((unsigned char)value.word[3]))
		complain(reader, key, "\"%s\" is out of range; there are arg0 to arg5", text);
	else if (!found)
		complain_of_word(reader, key, "value", value.word, words, ARRAY_SIZE(words));
	else if (found == &words[6] ? !has_result || value.is_text :
				      !(kind->can & HOOK_HAS_ARGUMENTS) || found > &words[6])
		complain(reader, key, "\"%s\" is not known at %s:; %s", text, kind->name, kind->remedy);
	else
		value.from = *found;
	*ret_value = value;
	return found && value.from;
}

static void read_measure(struct reader *reader)
{
	static const char *const names[] = { "count", "latency", "sum", "histogram" };
	struct probe *probe = reader->probe;
	char word[32] = "", value[128] = "", rest[2];
	int n = sscanf(probe->measure, "%31s %127s %1s", word, value, rest);
	const char *const *what = array_find(names, ARRAY_SIZE(names), word);

	probe->what = what ? *what : names[0];
	probe->is_paired = what == &names[1];
	if (!what || n != (what >= &names[2] ? 2 : 1))
		complain(reader, "measure", "\"%s\" is not known; write count, latency, sum VALUE or histogram VALUE", probe->measure);
	else if (probe->is_paired && !(probe->kind->can & HOOK_IS_FUNCTION))
		complain(reader, "measure", "latency needs a function that returns; use kprobe: or uprobe:, or measure = count");
	else if (n == 2 && read_value(reader, "measure", value, &probe->measured) && probe->measured.is_text)
		complain(reader, "measure", "\"%s\" is a text; name a number", value);
}

static void read_by(struct reader *reader, const char *text)
{
	struct probe *probe = reader->probe;
	const struct {
		const char *word;
		bool *is_on;
	} words[] = { { "unit", &probe->by_unit }, { "process", &probe->by_process }, { "errno", &probe->by_errno },
		      { "cpu", &probe->by_cpu }, { "comm", &probe->by_comm } }, *word;
	struct probe_value value;

	word = array_find(words, ARRAY_SIZE(words), text);
	if (word)
		*word->is_on = true;
	else if (!read_value(reader, "by", text, &value))
		return;
	else if (value.is_text ? probe->text.from != NULL : probe->n_numbers == PROBE_NUMBERS)
		complain(reader, "by", "\"%s\" is one too many; at most %d numbers and one text are possible", text, PROBE_NUMBERS);
	else if (value.is_text)
		probe->text = value;
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

	if (probe->kind->can & HOOK_HAS_FIELDS)
		event_fields_read(probe->target, &reader->fields);
	read_measure(reader);
	for (size_t i = 0; i < probe->by.n_items; i++)
		read_by(reader, probe->by.items[i]);
	if (probe->by_errno && !has_result && !probe->is_paired)
		complain(reader, "by", "errno is known where a function returns; " USE_RETURN);
	if ((probe->period || probe->frequency) && !is_sampled)
		complain(reader, probe->period ? "period" : "frequency", "is for hook = perf:EVENT; remove the line");
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

bool probe_is_common(const char *key)
{
	return !strcmp(key, "drop_attributes") || !strcmp(key, "strict");
}

int probe_describe(const struct config_section *section, struct diag *diag, struct probe_text *ret_text)
{
	struct probe probe = { .section = section->name,
			       .all = { section->settings, section->n_settings, section->path, section->line } };
	struct reader reader = { .probe = &probe, .diag = diag };
	unsigned int n_before = diag->n_errors;
	int err = setting_table_init(&probe_settings, &probe);

	for (size_t i = 0; i < section->n_settings && !err; i++)
		if (!probe_is_common(section->settings[i].key))
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

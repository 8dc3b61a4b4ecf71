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
#include "util/parse.h"

#define CALLS HOOK_HAS_ARGUMENTS | HOOK_IS_FUNCTION
#define NO_TEXT "arguments can be text, results cannot"
#define USE_RETURN "write kretprobe: or uretprobe:, or measure = latency"

#define FUNCTION_PROGRAMS                                                                           \
	{                                                                                           \
		"function__multi__enter", "function__multi__leave", "function__kprobe__enter",      \
			"function__kprobe__leave"                                                   \
	}
#define USER_PROGRAMS { "user_enter", "user_leave" }

static const struct hook_kind hook_kinds[] = {
	{ "kprobe", "FUNCTION", 1, CALLS, FUNCTION_PROGRAMS, USE_RETURN },
	{ "kretprobe", "FUNCTION", 1, CALLS | HOOK_HAS_RESULT, FUNCTION_PROGRAMS, NO_TEXT },
	{ "uprobe", "BINARY:FUNCTION", 2, CALLS, USER_PROGRAMS, USE_RETURN },
	{ "uretprobe", "BINARY:FUNCTION", 2, CALLS | HOOK_HAS_RESULT, USER_PROGRAMS, NO_TEXT },
	{ "usdt", "BINARY:PROVIDER:NAME", 3, HOOK_HAS_ARGUMENTS, { "user_mark" }, "it has arg0 to arg5" },
	{ "tracepoint", "CATEGORY:NAME", 2, HOOK_HAS_FIELDS, { "event__raw", NULL, "event__tp" },
	  "write the name of one of its fields, or use rawtp:, which has arg0 to arg5" },
	{ "rawtp", "NAME", 1, HOOK_HAS_ARGUMENTS, { "event__raw" }, "it has arg0 to arg5" },
	{ "perf", "EVENT", 1, HOOK_IS_SAMPLED, { "sample" }, "it can only be counted, by what runs" },
};

const struct probe_word probe_words[PROBE_WORDS] = {
	{ "arg0", HOOK_HAS_ARGUMENTS },
	{ "arg1", HOOK_HAS_ARGUMENTS },
	{ "arg2", HOOK_HAS_ARGUMENTS },
	{ "arg3", HOOK_HAS_ARGUMENTS },
	{ "arg4", HOOK_HAS_ARGUMENTS },
	{ "arg5", HOOK_HAS_ARGUMENTS },
	{ "ret", HOOK_HAS_RESULT },
	{ "unit", 0, "by_unit" },
	{ "process", 0, "per_process" },
	{ "comm", 0, "by_comm", "comm", "thread.name" },
	{ "cpu", 0, "by_cpu", "cpu", "cpu.logical_number" },
	{ "errno", HOOK_HAS_RESULT, "by_errno" },
};

static const struct probe_measure measures[] = {
	{ "count", "numbers", NULL, "" },
	{ "latency", "times", "s", ".duration" },
	{ "sum", "numbers", "1", "" },
	{ "histogram", "values", "1", "" },
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

static void find_hook(struct reader *reader)
{
	struct probe *probe = reader->probe;
	const char *hook = probe->hook ?: "";
	int n = (int)strcspn(hook, ":"), ends[3] = { 0 };
	char kind[64];

	snprintf(kind, sizeof(kind), "%.*s", n, hook);
	probe->kind = array_find(hook_kinds, ARRAY_SIZE(hook_kinds), kind);
	if (!probe->hook)
		diag_add(reader->diag, probe->all.path, probe->all.line,
			 "[probe %s] lacks \"hook\"; add a line like hook = kprobe:vfs_read", probe->section);
	else if (!probe->kind)
		complain_of_word(reader, "hook", "kind of hook", kind, hook_kinds, ARRAY_SIZE(hook_kinds));
	if (!probe->kind)
		return;
	probe->target = hook + n + (hook[n] == ':');
	probe->is_classic = !strncmp(hook, "tracepoint:syscalls:", 20);
	sscanf(probe->target, "%*[^:]%n:%*[^:]%n:%*[^:]%n", &ends[0], &ends[1], &ends[2]);
	n = ends[probe->kind->n_parts - 1];
	if (n && !probe->target[n])
		return;
	complain(reader, "hook", "\"%s\" does not have the right parts; write %s:%s", hook, kind, probe->kind->form);
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

static void take_field(struct reader *reader, const char *key, struct probe_value *value)
{
	const struct event_field *field = array_find(reader->fields.items, reader->fields.n, value->word);

	reader->probe->is_classic = true;
	if (!field && reader->fields.n)
		complain_of_word(reader, key, "field", value->word, reader->fields.items, reader->fields.n);
	else if (field && !field->text && (field->bytes > 8 || field->bytes & (field->bytes - 1)))
		complain(reader, key, "field \"%s\" of %s is neither a number nor a text; use another one", value->word,
			 reader->probe->target);
	else
		value->from = "field";
	/* If they cannot be read, neither can the event be attached. */
	if (!field)
		return;
	value->offset = field->offset;
	value->is_signed = field->is_signed;
	value->is_text = field->text;
	value->text = field->text;
	value->bytes = field->text && field->bytes > 64 ? 64 : field->bytes;
}

/* Is it an argument, a result or a field? If not, it is on, or there is a complaint. */
static bool read_value(struct reader *reader, const char *key, const char *text, struct probe_value *value)
{
	struct probe *probe = reader->probe;
	unsigned int can = probe->kind->can | (probe->is_paired ? HOOK_HAS_RESULT : 0);
	const char *type = strchrnul(text, ':');
	const struct probe_word *word;

	*value = (struct probe_value){ 0 };
	snprintf(value->word, sizeof(value->word), "%.*s", (int)(type - text), text);
	word = array_find(probe_words, PROBE_WORDS, value->word);
	if (!parse_type(type, value))
		complain(reader, key, "\"%s\": there is no type \"%s\"; write text, or s or u with 8, 16, 32 or 64, like %s:s32", text,
			 type + 1, value->word);
	else if (!word && can & HOOK_HAS_FIELDS)
		take_field(reader, key, value);
	else if (!word)
		complain_of_word(reader, key, "value", value->word, probe_words, PROBE_WORDS);
	else if (word->needs & ~can || (word->needs == HOOK_HAS_RESULT && value->is_text) ||
		 (word->param && (*type || !strcmp(key, "measure"))))
		complain(reader, key, "\"%s\" is not known at %s:; %s", text, probe->kind->name, probe->kind->remedy);
	else if (word->param)
		probe->words |= 1u << (word - probe_words);
	else
		value->from = word->name;
	/* Where a function returns, its arguments are lost. */
	probe->is_paired |= value->from && word && word->needs == HOOK_HAS_ARGUMENTS && can & HOOK_HAS_RESULT;
	return value->from;
}

static void read_measure(struct reader *reader)
{
	struct probe *probe = reader->probe;
	struct probe_value *measured = &probe->values[PROBE_MEASURED];
	char word[32] = "", value[128] = "", rest[2];
	int n = sscanf(probe->measure, "%31s %127s %1s", word, value, rest);

	probe->what = array_find(measures, ARRAY_SIZE(measures), word);
	probe->is_paired = probe->what == &measures[1];
	if (!probe->what || n != (probe->what >= &measures[2] ? 2 : 1))
		complain(reader, "measure", "\"%s\" is not known; write count, latency, sum VALUE or histogram VALUE", probe->measure);
	else if (probe->is_paired && !(probe->kind->can & HOOK_IS_FUNCTION))
		complain(reader, "measure", "latency needs a function that returns; use kprobe: or uprobe:, or measure = count");
	else if (n == 2 && read_value(reader, "measure", value, measured) && measured->is_text)
		complain(reader, "measure", "\"%s\" is a text; name a number", value);
}

static void read_by(struct reader *reader, const char *text)
{
	struct probe_value value, *slot = reader->probe->values;
	size_t n = PROBE_NUMBERS;

	if (!read_value(reader, "by", text, &value))
		return;
	if (value.is_text)
		slot += PROBE_TEXT, n = 1;
	for (; n && slot->from; n--)
		slot++;
	if (n)
		*slot = value;
	else
		complain(reader, "by", "\"%s\" is one too many; at most %d numbers and one text are possible", text, PROBE_NUMBERS);
}

/* Each period of a clock is an interrupt, and below 10000 ns the kernel makes it longer but says the shorter one. */
static void check_clock(struct reader *reader, const char *key, const char *text, bool is_frequency)
{
	uint64_t number;

	if (text && strstr(reader->probe->target, "-clock") && !parse_u64(text, &number) &&
	    (is_frequency ? number > 10000 : number < 100000))
		complain(reader, key, "%s would leave a CPU little time for other work; write %s", text,
			 is_frequency ? "10000 or less" : "100000 or more (ns)");
}

/* Inside of an instruction, a probe would change what the program does. */
static void check_place(struct reader *reader)
{
	const struct probe *probe = reader->probe;
	const char *place = strchr(probe->target, ':'), *offset = place ? strchr(place, '+') : NULL;

	if (place && probe->kind->can & HOOK_IS_FUNCTION &&
	    (isdigit((unsigned char)place[1]) || (offset && strtoull(offset + 1, NULL, 0))))
		complain(reader, "hook", "\"%s\" has an offset, where there may be no instruction; name a function alone", place + 1);
}

static void read_rest(struct reader *reader)
{
	struct probe *probe = reader->probe;

	if (probe->kind->can & HOOK_HAS_FIELDS)
		event_fields_read(probe->target, &reader->fields);
	check_place(reader);
	check_clock(reader, "period", probe->period, false);
	check_clock(reader, "frequency", probe->frequency, true);
	read_measure(reader);
	for (size_t i = 0; i < probe->by.n_items; i++)
		read_by(reader, probe->by.items[i]);
	if ((probe->period || probe->frequency) && !(probe->kind->can & HOOK_IS_SAMPLED))
		complain(reader, probe->period ? "period" : "frequency", "is for hook = perf:EVENT; remove the line");
}

/* The last part of the hook, as a name that no other probe has. */
static void name_hook(const struct config *config, const char *hook, const char *end, char name[48])
{
	const char *at = end;
	size_t n;

	while (at > hook && at[-1] != ':')
		at--;
	at += strspn(at, "_.0123456789");
	snprintf(name, 37, "%.*s", at < end ? (int)(end - at) : 7, at < end ? at : "command"); /* probe is an object */
	for (char *c = name; *c; c++)
		*c = isalnum((unsigned char)*c) ? *c : '_';
	n = strlen(name);
	for (int i = 2; config_find_section(config, "probe", name); i++)
		snprintf(name + n, 48 - n, "_%d", i);
}

int config_add_probe(struct config *config, const char *text, struct diag *diag)
{
	_cleanup_(buf_done) struct buf section = BUF_INIT;
	const char *by = strstr(text, " by "), *end = by ?: text + strlen(text), *hook;
	char name[48];

	while (end > text && end[-1] == ' ')
		end--;
	for (hook = end; hook > text && hook[-1] != ' ';)
		hook--;
	if (!memchr(hook, ':', (size_t)(end - hook)) || strpbrk(text, "\r\n")) {
		diag_add(diag, "bpfpush", 0, "--probe \"%s\" is not as it should be; write MEASURE HOOK by VALUES, like "
			 "\"latency uprobe:libc:getaddrinfo by unit\"", text);
		return 0;
	}
	name_hook(config, hook, end, name);
	buf_printf(&section, "[probe %s]\nhook = %.*s\n", name, (int)(end - hook), hook);
	if (hook > text)
		buf_printf(&section, "measure = %.*s\n", (int)(hook - text), text);
	if (by)
		buf_printf(&section, "by = %s\n", by + 4);
	return buf_error(&section) ?: config_read_text(config, buf_text(&section), "bpfpush --probe", diag);
}

bool probe_is_common(const char *key)
{
	return !strcmp(key, "drop_attributes") || !strcmp(key, "strict");
}

int probe_describe(const struct config_section *section, struct diag *diag, struct descriptor_text *ret_text)
{
	struct probe probe = { .section = section->name,
			       .written = ret_text,
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
		err = probe_write(&probe);
	setting_table_done(&probe_settings, &probe);
	return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Understands a [probe] section. What the section alone tells is checked here; whether there is
 * such a function, symbol or event is checked where every collector's hooks are.
 */
#include "config/probe-internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/grammar/grammar.h"
#include "collector/hook/perf.h"
#include "config/internal.h"
#include "config/probe.h"
#include "util/array.h"
#include "util/parse.h"

#define CALLS HAS_ARGUMENTS | IS_FUNCTION
#define USE_RETURN "write kretprobe: or uretprobe:, or measure = latency"

#define FUNCTION_PROGRAMS \
	{ "function__multi__enter", "function__multi__leave", "function__kprobe__enter", "function__kprobe__leave" }
#define USER_PROGRAMS { "user_enter", "user_leave" }

static const struct hook_kind kinds[] = {
	{ "kprobe", "FUNCTION", 1, CALLS, FUNCTION_PROGRAMS, USE_RETURN },
	{ "kretprobe", "FUNCTION", 1, CALLS | HAS_RESULT, FUNCTION_PROGRAMS },
	{ "uprobe", "BINARY:FUNCTION", 2, CALLS, USER_PROGRAMS, USE_RETURN },
	{ "uretprobe", "BINARY:FUNCTION", 2, CALLS | HAS_RESULT, USER_PROGRAMS },
	{ "usdt", "BINARY:PROVIDER:NAME", 3, HAS_ARGUMENTS, { "user_mark" }, "it has only arguments" },
	{ "tracepoint", "CATEGORY:NAME", 2, HAS_FIELDS, { "event__raw", NULL, "event__tp" },
	  "write the name of one of its fields, or use rawtp:, which has arg0 to arg5" },
	{ "rawtp", "NAME", 1, HAS_ARGUMENTS, { "event__raw" }, "it has arg0 to arg5" },
	{ "perf", "EVENT", 1, IS_SAMPLED, { "sample" }, "it can only be counted, by what runs" },
};

/* What can be counted by, or measured if it has no param. The arguments come first. */
static const struct probe_word {
	const char *name;
	unsigned int needs;		/* of what a hook can */
	const char *param;		/* that switches it on */
	const char *member, *attribute; /* of the key, if its label has to say */
} words[] = {
	{ "arg0", HAS_ARGUMENTS }, { "arg1", HAS_ARGUMENTS }, { "arg2", HAS_ARGUMENTS },
	{ "arg3", HAS_ARGUMENTS }, { "arg4", HAS_ARGUMENTS }, { "arg5", HAS_ARGUMENTS },
	{ "ret", HAS_RESULT },
	{ "unit", 0, "by_unit" },
	{ "process", 0, "per_process" },
	{ "comm", 0, "by_comm", "unused_comm", "thread.name" },
	{ "cpu", 0, "by_cpu", "unused_cpu", "cpu.logical_number" },
	{ "errno", HAS_RESULT, "by_errno" },
};

static const struct probe_measure measures[] = {
	{ "count", "numbers", NULL, "" },
	{ "latency", "times", "s", ".duration" },
	{ "event", "events", NULL, "" },
	{ "sum", "numbers", "1", "", true },
	{ "histogram", "values", "1", "", true },
};

static int check_length(const char *text, const char **ret_complaint)
{
	*ret_complaint = "is longer than 255 bytes; write less";
	return strlen(text) > 255 ? -EINVAL : 0;
}

#define ROW(member, type, default) \
	SETTING(struct probe, member, #member, type, default, .check = check_length)
#define COMMON(key)		   SETTING(struct probe, common, key, SETTING_LIST, NULL)

static const struct setting_row rows[] = {
	ROW(hook, SETTING_TEXT, NULL), ROW(measure, SETTING_TEXT, "count"), ROW(by, SETTING_WORDS, NULL),
	ROW(show, SETTING_WORDS, NULL), ROW(only, SETTING_TEXT, NULL),
	ROW(name, SETTING_TEXT, NULL), ROW(unit, SETTING_TEXT, NULL),
					   ROW(description, SETTING_TEXT, NULL),
	ROW(period, SETTING_TEXT, NULL), ROW(frequency, SETTING_TEXT, NULL),
	COMMON("enabled"), COMMON("drop_attributes"), COMMON("strict"), COMMON("rate_limit"),
};
static const struct setting_table probe_settings = SETTING_TABLE(rows, struct probe);

/* As names of metrics and attributes are. */
static const char *make_name(char *text)
{
	for (char *c = text; *c; c++)
		*c = *c == '-' ? '_' : (char)tolower((unsigned char)*c);
	return text + strspn(text, "_");
}

static void find_hook(struct probe *probe)
{
	const struct assignment *given = assignments_find(&probe->all, "hook", NULL);
	const char *hook = probe->hook ?: "";
	int n = (int)strcspn(hook, ":"), ends[3] = { 0 };
	char kind[64];

	snprintf(kind, sizeof(kind), "%.*s", n, hook);
	probe->kind = array_find(kinds, ARRAY_SIZE(kinds), kind);
	if (!given)
		diag_add(probe->diag, probe->all.path, probe->all.line,
			 "[probe %s] lacks \"hook\"; add a line like hook = kprobe:vfs_read", probe->section);
	else if (!*given->value)
		complain(probe, "hook", "is empty; write one like kprobe:vfs_read");
	else if (!probe->kind && probe->hook)
		complain_of_word(probe, "hook", "kind of hook", kind, kinds, ARRAY_SIZE(kinds));
	if (!probe->kind)
		return;
	probe->target = hook + n + (hook[n] == ':');
	probe->is_classic = !strncmp(hook, "tracepoint:syscalls:", 20);
	if (!(probe->kind->can & IS_SAMPLED) &&
	    strpbrk(strrchr(probe->target, ':') ?: probe->target, "*?[")) {
		complain(probe, "hook", "\"%s\" has a wildcard; a probe is at one place, so write one name", hook);
		probe->kind = NULL;
		return;
	}
	sscanf(probe->target, "%*[^:]%n:%*[^:]%n:%*[^:]%n", &ends[0], &ends[1], &ends[2]);
	n = ends[probe->kind->n_parts - 1];
	if (n && !probe->target[n])
		return;
	complain(probe, "hook", "\"%s\" does not have the right parts; write %s:%s%s", hook, kind, probe->kind->form,
		 strstr(probe->target, "::") ? ", with the name that \"nm\" shows, like _ZN3one3twoEv" : "");
	probe->kind = NULL;
}

/* What a word cannot be here. True: it is reported. */
static bool is_refused(struct probe *probe, const char *key, const struct probe_word *word,
		       const struct probe_value *value, unsigned int can)
{
	const char *name = word->name;
	bool has_ret = probe->is_classic && strstr(probe->target, ":sys_exit_");

	if (word->needs & ~can && array_find(probe->fields.items, probe->fields.n, name))
		complain(probe, key, "\"%s\" is a word of probes; write args.%s for the field", name, name);
	else if (word->needs & ~can)
		complain(probe, key, "\"%s\" is not known at %s:; %s", name, probe->kind->name,
			 has_ret && !strcmp(name, "errno") ? "write ret:errno" : probe->kind->remedy);
	else if (word->param && (!strcmp(key, "measure") || !strcmp(key, "only")))
		complain(probe, key, "\"%s\" is not a number; name an argument, a result or a field", name);
	else if (word->param && value->type)
		complain(probe, key, "\"%s:%s\": only arguments, results and fields have a type; write %s", name, value->type->name, name);
	else if (word->needs == HAS_ARGUMENTS && word - words >= probe->n_arguments)
		complain(probe, key, "\"%s\" is not known at %s, which has %d argument%s; count from arg0", name, probe->hook,
			 probe->n_arguments, plural((uint64_t)probe->n_arguments));
	else if (word->needs == HAS_ARGUMENTS && *probe->unreadable[word - words])
		complain(probe, key, "\"%s\" of %s cannot be read: in one of its places it is %s; name another one, or none",
			 name, probe->hook, probe->unreadable[word - words]);
	else if (word->needs == HAS_RESULT && (word->param || probe_value_is(value, IS_ERROR)) &&
		 probe_is_of_libc(probe))
		complain(probe, key, "functions of the C library return -1, or codes of their own, so \"errno\" is not known; write "
			 "\"by ret\", or \"by ret:s32\" for an int");
	else
		return false;
	return true;
}

static void check_constants(struct probe *probe, const char *key, const struct probe_value *value)
{
	_cleanup_(buf_done) struct buf unused = BUF_INIT;
	const char *equals = value->constants ? "=" : "", *why = "this is not a name";
	bool is_field = value->from && !strcmp(value->from, "field");

	if (!value->from || !probe_value_is(value, IS_NAMED) ||
	    (value->constants && parse_is_name(value->constants)))
		return;
	if (!value->constants && is_field &&
	    (!probe->fields.n || event_names_write(&probe->fields, value->name, &unused)))
		return;
	if (!value->constants)
		why = is_field ? "the event has no names for the numbers of this field" : "the name of the enum is missing";
	complain(probe, key, "\"%s:enum%s%s\": %s; write %s:enum=NAME with the name of an enum of the kernel, or one of its constants",
		 value->name, equals, value->constants ?: "", why, value->name);
}

/*
 * Is it an argument, a result or a field? If not, it is on, or there is a complaint. text is cut
 * into name and type.
 */
static bool read_value(struct probe *probe, const char *key, char *text, struct probe_value *value)
{
	unsigned int can = probe->kind->can | (probe->is_paired ? HAS_RESULT : 0);
	const struct probe_word *word = NULL;
	char *type = text;

	*value = (struct probe_value){ strsep(&type, ":") };
	if (can & HAS_FIELDS && !strncmp(text, "args.", 5)) /* called as a word is */
		value->name += 5;
	else if (!(can & HAS_FIELDS) || strcmp(text, "ret"))
		word = array_find(words, ARRAY_SIZE(words), text);
	if (!probe_type_read(probe, key, type, value) ||
	    (word && is_refused(probe, key, word, value, can)))
		return false;
	if (!word && can & HAS_FIELDS)
		probe_take_field(probe, key, value);
	else if (!word)
		complain_of_word(probe, key, "value", text, words, ARRAY_SIZE(words));
	else if (word->param)
		probe_write_param(probe, word->param, "yes");
	else
		value->from = text;
	check_constants(probe, key, value);
	if (word && word->member)
		probe_write_label(probe, word->member, word->attribute, "");
	/* Where a function returns, its arguments are lost. */
	probe->is_paired |= value->from && word && word->needs == HAS_ARGUMENTS && can & HAS_RESULT;
	return value->from;
}

static void read_measure(struct probe *probe)
{
	struct probe_value *measured = &probe->measured;
	bool is_timed = probe_is_timed(probe);
	char word[32] = "", rest[2];
	int n = sscanf(probe->measure, "%31s %127s %1s", word, probe->word, rest);

	probe->what = array_find(measures, ARRAY_SIZE(measures), word);
	probe->is_event = probe->what && !strcmp(word, "event");
	probe->is_paired = probe->what == &measures[1] || is_timed;
	if (probe->what && probe->what->has_value && n == 1)
		complain(probe, "measure", "%s needs a value; write %s arg0, or another one that the hook has", word, word);
	else if (probe->what && !probe->what->has_value && n == 2)
		complain(probe, "measure", "%s takes no value; write %s alone", word, word);
	else if (!probe->what || n > 2)
		complain(probe, "measure", "\"%s\" is not known; write count, latency, event, sum VALUE or histogram VALUE", probe->measure);
	else if (probe->is_paired && !(probe->kind->can & IS_FUNCTION))
		complain(probe, is_timed ? "only" : "measure",
			 "latency needs a function that returns; use kprobe: or uprobe:, or count");
	else if (n == 2 && read_value(probe, "measure", probe->word, measured) && measured->text)
		complain(probe, "measure", "\"%s\" is a text; name a number", probe->word);
	else if (measured->type && (measured->type->label || probe_value_is(measured, IS_NAMED)))
		complain(probe, "measure", "\"%s:%s\" is shown by a name, and only a number can be measured; write %s", probe->word,
			 measured->type->name, probe->word);
	else if (measured->from)
		probe_write_value(probe, "value", measured);
	if (probe->unit && probe->is_event)
		complain(probe, "unit", "an event has none; remove the line");
	else if (probe->what == &measures[1] && probe->unit && strcmp(probe->unit, "s"))
		complain(probe, "unit", "a latency is shown in seconds; remove the line");
}

static void read_only(struct probe *probe)
{
	struct probe_condition condition;
	struct probe_value value;

	if (probe_condition_read(probe, &condition) &&
	    read_value(probe, "only", condition.value, &value))
		probe_condition_write(probe, &condition, &value);
}

/* list: by or show, whose words are the same. */
static void read_by(struct probe *probe, const char *key, const struct setting_list *list, size_t i)
{
	static const char *const slots[] = { "by0", "by1", "by2" };
	char *text = list->items[i], member[32];
	struct probe_value value;
	bool is_value = read_value(probe, key, text, &value);
	bool is_shown = list != &probe->show &&
			array_find(probe->show.items, probe->show.n_items, text);
	bool is_small = !value.text && !probe_value_is(&value, IS_WIDE);
	bool *taken = value.text ? &probe->has_text : &probe->has_address;
	const char *slot = value.text ? "text" : "address";

	if (is_shown || array_find(list->items, i, text))
		complain(probe, key, "\"%s\" is there twice; remove one", text);
	if (!is_value)
		return;
	if (is_small ? probe->n_numbers == ARRAY_SIZE(slots) : *taken) {
		complain(probe, key, "\"%s\" is one too many; at most %zu numbers, one text and one ipv6 are possible", text,
			 ARRAY_SIZE(slots));
		return;
	}
	if (is_small)
		slot = slots[probe->n_numbers++];
	else
		*taken = true;
	probe_write_value(probe, slot, &value);
	if (value.text)
		probe_write_param(probe, "text_is", value.text);
	snprintf(member, sizeof(member), "unused_%s", slot);
	probe_write_label(probe, member, probe->called,
			  make_name(strchr(text, '.') ? strchr(text, '.') + 1 : text));
	probe_write_type(probe, &value);
}

/* Inside of an instruction, a probe would change what the program does. */
static void check_place(struct probe *probe)
{
	const char *colon = strchr(probe->target, ':'), *place = colon ? colon + 1 : probe->target;
	const char *offset = strchr(place, '+');

	if (probe->kind->can & IS_FUNCTION &&
	    (isdigit((unsigned char)*place) || (offset && strtoull(offset + 1, NULL, 0))))
		complain(probe, "hook", "\"%s\" has an offset, where there may be no instruction; name a function alone", place);
}

static void check_event(struct probe *probe)
{
	const char *rate = probe->period ? "period" : "frequency";
	bool is_sampled = probe->kind->can & IS_SAMPLED;
	const char *of_event = is_sampled ? perf_complaint(probe->target, NULL, NULL) : NULL;
	const char *of_rate = is_sampled ?
			      perf_complaint(probe->target, probe->frequency, probe->period) : NULL;

	if (of_event)
		complain(probe, "hook", "%s", of_event);
	else if (of_rate)
		complain(probe, rate, "%s", of_rate);
	else if (!is_sampled && (probe->period || probe->frequency))
		complain(probe, rate, "is for hook = perf:EVENT; remove the line");
}

/* What the grammar of descriptors says of a key, and what is taken already. */
static void check_key(struct probe *probe, const struct assignment *setting)
{
	const struct grammar_key *key = grammar_keys, *end = grammar_keys + GRAMMAR_KEYS;
	const char *complaint;

	while (key < end && (strcmp(key->name, setting->key) || !(key->check || key->pattern)))
		key++;
	complaint = key < end && *setting->value ? grammar_check(key, setting->value) : NULL;
	if (!strcmp(setting->key, "by") &&
	    (*setting->value ? setting->value[strlen(setting->value) - 1] == ',' :
	     !probe->by.n_items))
		complaint = "ends where a word should follow; write one, such as unit";
	else if (!strcmp(setting->key, "name") &&
		 (!strncmp(setting->value, "bpfpush.", 8) || !strncmp(setting->value, "otel.", 5)))
		complaint = "begins with bpfpush. or otel., which bpfpush gives itself; write another one";
	for (const char *c = setting->value; *c && !complaint && !strcmp(setting->key, "unit"); c++)
		if (*c & 0x80)
			complaint = "is not ASCII, as units of UCUM are; write one like s, By or {call}";
	if (complaint)
		diag_add(probe->diag, setting->path, setting->line, "%s \"%.80s\" %s", setting->key,
			 setting->value, complaint);
}

static void translate_probe(struct probe *probe)
{
	unsigned int n_before = probe->diag->n_errors;

	if (probe->kind->can & HAS_FIELDS)
		event_fields_read(probe->target, &probe->fields);
	if (!strcmp(probe->kind->name, "usdt"))
		probe_look_at_marks(probe);
	check_place(probe);
	check_event(probe);
	read_measure(probe);
	if (probe->what && probe->only)
		read_only(probe);
	if (probe->what && probe->show.n_items && !probe->is_event)
		complain(probe, "show", "is for measure = event; write by");
	if (probe->what && !probe->is_event && assignments_find(&probe->all, "rate_limit", NULL))
		complain(probe, "rate_limit", "is for measure = event; remove the line");
	for (size_t i = 0; i < probe->show.n_items; i++)
		read_by(probe, "show", &probe->show, i);
	for (size_t i = 0; i < probe->by.n_items; i++)
		read_by(probe, "by", &probe->by, i);
	if (probe->diag->n_errors == n_before)
		probe_write(probe);
}

int probe_describe(const struct config_section *section, struct diag *diag,
		   struct descriptor_entries *ret_entries)
{
	struct probe probe = { .section = section->name, .out = ret_entries->text, .diag = diag,
			       .n_arguments = MARK_ARGUMENTS, .all = section->given };
	const struct assignment place = assignments_place(&probe.all, "hook", NULL);
	const struct assignment name = assignments_place(&probe.all, "name", NULL);
	const struct assignment by = assignments_place(&probe.all, "by", NULL);
	int err = setting_table_init(&probe_settings, &probe);

	ret_entries->path = place.path;
	ret_entries->line = place.line;
	ret_entries->label_line = by.key && !strcmp(by.path, place.path) ? by.line : place.line;
	ret_entries->metric_line = name.key && !strcmp(name.path, place.path) ?
				   name.line : place.line;
	snprintf(probe.called, sizeof(probe.called), "%s", section->name);
	make_name(probe.called);
	if (grammar_check_name(probe.called))
		diag_add(diag, probe.all.path, probe.all.line, "[probe %s] gives its name to metrics and attributes, so its parts "
			 "begin with a letter; write one like [probe reads]", section->name);
	for (size_t i = 0; i < probe.all.n && !err; i++) {
		check_key(&probe, &probe.all.items[i]);
		err = setting_table_set(&probe_settings, &probe, &probe.all.items[i], diag);
	}
	if (!err)
		find_hook(&probe);
	if (!err && probe.kind)
		translate_probe(&probe);
	free(probe.fields.print);
	setting_table_done(&probe_settings, &probe);
	return err ?: buf_error(probe.out);
}

bool probe_is_common(const char *key)
{
	return !strcmp(key, "drop_attributes") || !strcmp(key, "strict") || !strcmp(key, "rate_limit");
}

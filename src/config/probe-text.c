/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a descriptor over probe.bpf.o, which bpf/probe/ explains. */
#include "config/probe-internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "util/array.h"

/* 2048 whose calls are known at one time; of the map, each CPU may keep 128 places to itself. */
#define THREADS 4096

/* Each line of what is appended comes from that of the key in the configuration; key NULL: of the section. */
static _printf_(3, 4) void append(const struct probe *probe, const char *key, const char *format, ...)
{
	const struct assignment *found = key ? assignments_find(&probe->all, key, NULL) : NULL;
	struct descriptor_text *written = probe->written;
	size_t at = written->text.size;
	va_list arguments;

	va_start(arguments, format);
	buf_vprintf(&written->text, format, arguments);
	va_end(arguments);
	for (; at < written->text.size; at++) {
		unsigned int *line = NULL;

		if (written->text.data[at] == '\n')
			line = array_add(&written->lines, &written->n_lines, sizeof(*line));
		/* A drop-in's lines are not those of the file that messages of the descriptor name. */
		if (line)
			*line = found && found->path == probe->all.path ? found->line : probe->all.line;
	}
}

struct name {
	char text[128];
};

/* As names of metrics and attributes are. */
static struct name name_of(const char *text)
{
	struct name name = { 0 };

	for (size_t i = 0; text[i] && i + 1 < sizeof(name.text); i++)
		name.text[i] = text[i] == '-' ? '_' : (char)tolower((unsigned char)text[i]);
	return name;
}

static void append_param(const struct probe *probe, const char *key, const char *name, const char *value)
{
	append(probe, key, "[param %s]\ndefault = %s\n", name, value);
}

/* A member of the key is an attribute of that name; NULL: it is none. */
static void append_label(const struct probe *probe, const char *member, const char *name)
{
	append(probe, "by", "[label %s.%s]\n%s = %s\n", probe->what->map, member, name ? "name" : "as", name ?: "none");
}

static void append_value(const struct probe *probe, enum probe_slot slot)
{
	/* Settings, and members of keys. */
	static const char *const members[PROBE_VALUES] = { "by0", "by1", "by2", "text", "value" };
	const struct probe_value *value = &probe->values[slot];
	const char *member = members[slot];
	char name[256];

	snprintf(name, sizeof(name), "%s.%s", name_of(probe->section).text, name_of(value->word).text);
	if (value->from)
		append(probe, slot == PROBE_MEASURED ? "measure" : "by",
		       "[param %s_from]\ndefault = %s\n[param %s_offset]\ndefault = %u\n"
		       "[param %s_bytes]\ndefault = %u\n[param %s_signed]\ndefault = %s\n",
		       member, value->from, member, value->offset, member, value->bytes, member,
		       value->is_signed ? "yes" : "no");
	if (value->from && slot == PROBE_TEXT)
		append_param(probe, "by", "text_is", value->text ?: "pointer");
	if (slot < PROBE_NUMBERS || (slot == PROBE_TEXT && value->from))
		append_label(probe, member, value->from ? name : NULL);
}

static const char *default_unit(const struct probe *probe)
{
	if (strstr(probe->target, "-clock"))
		return "ns";
	return probe->kind->can & HOOK_IS_FUNCTION ? "{call}" : "{event}";
}

/* Of the collector and of the metric: "Histogram of ret of kretprobe:vfs_read". */
static void append_description(const struct probe *probe)
{
	const struct probe_value *value = &probe->values[PROBE_MEASURED];

	if (probe->description)
		append(probe, "description", "description = %s\n", probe->description);
	else
		append(probe, "hook", "description = %c%s%s%s of %s\n", toupper((unsigned char)*probe->what->name),
		       probe->what->name + 1, value->from ? " of " : "", value->word, probe->hook);
}

static void append_metrics(const struct probe *probe)
{
	append(probe, NULL, "[metric %s]\n", probe->what->map);
	if (probe->name)
		append(probe, "name", "name = %s\n", probe->name);
	else
		append(probe, NULL, "name = bpfpush.probe.%s%s\n", name_of(probe->section).text, probe->what->suffix);
	append(probe, "unit", "unit = %s\n", probe->unit ?: probe->what->unit ?: default_unit(probe));
	append_description(probe);
	if (probe->is_paired)
		append(probe, NULL,
		       "[param is_paired]\ndefault = yes\n[param threads_entries]\ndefault = %d\n"
		       "[metric lost]\nname = bpfpush.probe.lost\nunit = {call}\nattribute = bpfpush.probe.name=%s\n"
		       "description = Calls that were not measured, because they did not return or their return was missed\n",
		       THREADS, probe->section);
}

static void append_program(const struct probe *probe, const char *name)
{
	const char *target = probe->target;
	const char *event = probe->kind->can & HOOK_HAS_FIELDS ? strchr(target, ':') + 1 : target;
	int category = strcmp(name, "event__tp") ? 0 : (int)(event - target - 1);

	append(probe, "hook", "[program %s]\n%s = %.*s%s%s\n", name, probe->kind->can & HOOK_IS_SAMPLED ? "event" : "target",
	       category, target, category ? "/" : "", event);
	if (probe->period)
		append(probe, "period", "period = %s\n", probe->period);
	if (probe->frequency)
		append(probe, "frequency", "frequency = %s\n", probe->frequency);
}

int probe_write(const struct probe *probe)
{
	bool is_at_return = probe->kind->can & HOOK_HAS_RESULT || probe->is_paired;
	bool is_at_entry = !is_at_return || probe->is_paired;

	append(probe, NULL, "[collector]\nobject = probe%s\n", probe->values[PROBE_TEXT].from ? "-text" : "");
	append_description(probe);
	append_param(probe, "measure", "measure", probe->what->name);
	append_metrics(probe);
	for (unsigned int i = 0; i < PROBE_VALUES; i++)
		append_value(probe, i);
	for (unsigned int i = 0; i < PROBE_WORDS; i++) {
		const struct probe_word *word = &probe_words[i];
		bool is_on = probe->words & 1u << i;

		if (is_on)
			append_param(probe, "by", word->param, "yes");
		if (word->member)
			append_label(probe, word->member, is_on ? word->attribute : NULL);
	}
	for (unsigned int i = probe->is_classic ? 2 : 0; i < ARRAY_SIZE(probe->kind->programs); i++)
		if (probe->kind->programs[i] && (i & 1 ? is_at_return : is_at_entry))
			append_program(probe, probe->kind->programs[i]);
	return buf_error(&probe->written->text);
}

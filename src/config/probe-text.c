/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a descriptor over probe.bpf.o, which bpf/probe/ explains. */
#include "config/probe-internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"

#define THREADS 2048 /* whose calls are known at one time */

/* Settings and members of keys. */
static const char *const numbers[PROBE_NUMBERS] = { "by0", "by1", "by2" };

/* The line that causes text: of a key, or of the section. */
static unsigned int line_of(const struct probe *probe, const char *key)
{
	const struct assignment *found = assignments_find(&probe->all, key, NULL);

	/* A drop-in's lines are not those of the file that messages of the descriptor name. */
	return found && found->path == probe->all.path ? found->line : probe->all.line;
}

/* Each line of what is appended comes from that line of the configuration. */
static _printf_(3, 4) void append(struct probe_text *text, unsigned int line, const char *format, ...)
{
	size_t before = text->text.size;
	va_list arguments;

	va_start(arguments, format);
	buf_vprintf(&text->text, format, arguments);
	va_end(arguments);
	for (; before < text->text.size; before++) {
		unsigned int *at = NULL;

		if (text->text.data[before] == '\n')
			at = array_add(&text->lines, &text->n_lines, sizeof(*at));
		if (at)
			*at = line;
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

static void append_param(struct probe_text *text, unsigned int line, const char *name, const char *value)
{
	append(text, line, "[param %s]\ndefault = %s\n", name, value);
}

static void append_value(struct probe_text *text, unsigned int line, const char *prefix,
			 const struct probe_value *value)
{
	if (!value->from)
		return;
	append(text, line, "[param %s_from]\ndefault = %s\n[param %s_offset]\ndefault = %u\n", prefix, value->from,
	       prefix, value->offset);
	append(text, line, "[param %s_bytes]\ndefault = %u\n[param %s_signed]\ndefault = %s\n", prefix, value->bytes,
	       prefix, value->is_signed ? "yes" : "no");
}

static void append_params(struct probe_text *text, const struct probe *probe)
{
	const struct {
		const char *name;
		bool is_on;
	} flags[] = { { "is_paired", probe->is_paired }, { "by_unit", probe->by_unit }, { "per_process", probe->by_process },
		      { "by_errno", probe->by_errno }, { "by_cpu", probe->by_cpu }, { "by_comm", probe->by_comm } };
	unsigned int line = line_of(probe, "by");
	append_param(text, line_of(probe, "measure"), "measure", probe->what);
	array_for_each (flag, flags, ARRAY_SIZE(flags))
		if (flag->is_on)
			append_param(text, line, flag->name, "yes");
	append_value(text, line_of(probe, "measure"), "value", &probe->measured);
	for (size_t i = 0; i < probe->n_numbers; i++)
		append_value(text, line, numbers[i], &probe->numbers[i]);
	append_value(text, line, "text", &probe->text);
	if (probe->text.from)
		append_param(text, line, "text_is", probe->text.text ?: "pointer");
	if (probe->is_paired)
		append(text, line, "[param threads_entries]\ndefault = %d\n", THREADS);
}

/* A member of the key: an attribute of that name below the probe's, or none. */
static void append_label(struct probe_text *text, const struct probe *probe, const char *map, const char *member,
			 const struct probe_value *value)
{
	unsigned int line = line_of(probe, "by");

	append(text, line, "[label %s.%s]\n", map, member);
	if (value->from)
		append(text, line, "name = %s.%s\n", name_of(probe->section).text, name_of(value->word).text);
	else
		append(text, line, "as = none\n");
}

static void append_labels(struct probe_text *text, const struct probe *probe, const char *map)
{
	unsigned int line = line_of(probe, "by");

	for (size_t i = 0; i < PROBE_NUMBERS; i++)
		append_label(text, probe, map, numbers[i], &probe->numbers[i]);
	if (probe->text.from)
		append_label(text, probe, map, "text", &probe->text);
	append(text, line, "[label %s.cpu]\n%s\n", map, probe->by_cpu ? "name = cpu.logical_number" : "as = none");
	append(text, line, "[label %s.comm]\n%s\n", map, probe->by_comm ? "name = thread.name" : "as = none");
}

static const char *default_unit(const struct probe *probe)
{
	if (!strcmp(probe->what, "latency"))
		return "s";
	if (strcmp(probe->what, "count"))
		return "1";
	if (strstr(probe->target, "-clock"))
		return "ns";
	return probe->kind->can & HOOK_IS_FUNCTION ? "{call}" : "{event}";
}

/* Of the collector and of the metric: "Histogram of ret of kretprobe:vfs_read". */
static void append_description(struct probe_text *text, const struct probe *probe)
{
	const struct probe_value *value = &probe->measured;

	if (probe->description)
		append(text, line_of(probe, "description"), "description = %s\n", probe->description);
	else
		append(text, line_of(probe, "hook"), "description = %c%s%s%s of %s\n", toupper((unsigned char)*probe->what), probe->what + 1,
		       value->from ? " of " : "", value->from ? value->word : "", probe->hook);
}

static void append_metrics(struct probe_text *text, const struct probe *probe)
{
	const char *map = !strcmp(probe->what, "latency") ? "times" : !strcmp(probe->what, "histogram") ? "values" : "numbers";

	append(text, probe->all.line, "[metric %s]\n", map);
	if (probe->name)
		append(text, line_of(probe, "name"), "name = %s\n", probe->name);
	else
		append(text, probe->all.line, "name = bpfpush.probe.%s%s\n", name_of(probe->section).text,
		       !strcmp(probe->what, "latency") ? ".duration" : "");
	append(text, line_of(probe, "unit"), "unit = %s\n", probe->unit ?: default_unit(probe));
	append_description(text, probe);
	append_labels(text, probe, map);
	if (probe->is_paired)
		append(text, probe->all.line,
		       "[metric lost]\nname = bpfpush.probe.lost\nunit = {call}\nattribute = bpfpush.probe.name=%s\n"
		       "description = Calls that were not measured, because they did not return or their return was missed\n",
		       probe->section);
}

static void append_program(struct probe_text *text, const struct probe *probe, const char *name)
{
	unsigned int line = line_of(probe, "hook");
	const char *event = strchr(probe->target, ':');

	append(text, line, "[program %s]\n", name);
	if (probe->kind->can & HOOK_IS_SAMPLED)
		append(text, line, "event = %s\n", probe->target);
	else if (!strcmp(name, "event__tp"))
		append(text, line, "target = %.*s/%s\n", (int)(event - probe->target), probe->target, event + 1);
	else
		append(text, line, "target = %s\n", event && !strcmp(name, "event__raw") ? event + 1 : probe->target);
	if (probe->period)
		append(text, line_of(probe, "period"), "period = %s\n", probe->period);
	if (probe->frequency)
		append(text, line_of(probe, "frequency"), "frequency = %s\n", probe->frequency);
}

/* Only a classic tracepoint has fields, and those of system calls are only classic. */
static bool is_needed(const struct probe *probe, const char *name)
{
	bool has_field = probe->measured.from || probe->text.from || probe->n_numbers;

	return name && (!(probe->kind->can & HOOK_HAS_FIELDS) || strcmp(name, "event__raw") ||
			(!has_field && strncmp(probe->target, "syscalls:", 9) != 0));
}

int probe_write(const struct probe *probe, struct probe_text *ret_text)
{
	bool is_at_return = probe->kind->can & HOOK_HAS_RESULT || probe->is_paired;
	bool is_at_entry = !is_at_return || probe->is_paired;
	struct probe_text text = { 0 };

	append(&text, probe->all.line, "[collector]\nobject = probe%s\n", probe->text.from ? "-text" : "");
	append_description(&text, probe);
	append_params(&text, probe);
	append_metrics(&text, probe);
	for (size_t i = 0; i < ARRAY_SIZE(probe->kind->enter); i++) {
		if (is_at_entry && is_needed(probe, probe->kind->enter[i]))
			append_program(&text, probe, probe->kind->enter[i]);
		if (is_at_return && is_needed(probe, probe->kind->leave[i]))
			append_program(&text, probe, probe->kind->leave[i]);
	}
	*ret_text = text;
	return buf_error(&text.text);
}

void probe_text_done(struct probe_text *text)
{
	buf_done(&text->text);
	free(text->lines);
}

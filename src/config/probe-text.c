/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of a descriptor over probe.bpf.o, which bpf/probe/ explains. */
#include "config/probe-internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "collector/descriptor.h"
#include "util/array.h"

#define THREADS "4096" /* half of them for those in a call */

void probe_write_param(struct probe *probe, const char *name, const char *value)
{
	descriptor_write_section(probe->out, "param", name);
	descriptor_write_key(probe->out, "default", "%s", value);
}

/* The param of a slot for a value. */
static void write_slot(struct probe *probe, const char *slot, const char *what, const char *value)
{
	char name[64];

	snprintf(name, sizeof(name), "%s_%s", slot, what);
	probe_write_param(probe, name, value);
}

void probe_write_label(struct probe *probe, const char *member, const char *first, const char *last)
{
	char place[64];

	snprintf(place, sizeof(place), "*.%s%s", probe->is_event ? "of." : "", member);
	descriptor_write_section(probe->out, "label", place);
	descriptor_write_key(probe->out, "name", "%s%s%s", first, *last ? "." : "", last);
}

void probe_write_value(struct probe *probe, const char *slot, const struct probe_value *value)
{
	char offset[16], bytes[16];

	snprintf(offset, sizeof(offset), "%u", value->offset);
	snprintf(bytes, sizeof(bytes), "%u", value->bytes);
	write_slot(probe, slot, "from", value->from);
	write_slot(probe, slot, "offset", offset);
	write_slot(probe, slot, "bytes", bytes);
	write_slot(probe, slot, "signed", value->is_signed ? "yes" : "no");
	if (probe_value_is(value, IS_ERROR | IS_SWAPPED))
		write_slot(probe, slot, probe_value_is(value, IS_ERROR) ? "error" : "swapped", "yes");
}

void probe_write_type(struct probe *probe, const struct probe_value *value)
{
	if (value->type && value->type->label)
		descriptor_write_key(probe->out, "as", "%s", value->type->label);
	else if (value->constants)
		descriptor_write_key(probe->out, "as", "kernel-enum %s", value->constants);
	else if (probe_value_is(value, IS_NAMED))
		(void)event_names_write(&probe->fields, value->name, probe->out);
}

/* Of the collector and of the metric: "Histogram of ret of kretprobe:vfs_read". */
static void write_description(struct probe *probe)
{
	const char *what = probe->what->name, *value = probe->word;

	if (probe->description)
		descriptor_write_key(probe->out, "description", "%s", probe->description);
	else
		descriptor_write_key(probe->out, "description", "%c%s%s%s of %s", toupper((unsigned char)*what), what + 1,
			      *value ? " of " : "", value, probe->hook);
}

/* For threads that are in a call: what ends them ends what is known of it. */
static const struct {
	const char *program, *target, *backup, *when;
} thread_programs[] = {
	{ "thread_end", "sched_process_exit", "thread_end_again" },
	{ "thread_end_again", "sched_process_exit", "thread_end", "hooks_preemptible" },
	{ "thread_exec", "sched_process_exec", "thread_end" },
};

static void write_threads(struct probe *probe)
{
	probe_write_param(probe, "is_paired", "yes");
	probe_write_param(probe, "threads_entries", THREADS);
	array_for_each (row, thread_programs, ARRAY_SIZE(thread_programs)) {
		descriptor_write_section(probe->out, "program", row->program);
		descriptor_write_key(probe->out, "target", "%s", row->target);
		descriptor_write_key(probe->out, "backup", "%s", row->backup);
		if (row->when)
			descriptor_write_key(probe->out, "when", "%s", row->when);
	}
}

static const char *choose_unit(const struct probe *probe)
{
	const char *unit = probe->unit ?: probe->what->unit;

	if (unit)
		return unit;
	if (strstr(probe->target, "-clock"))
		return "ns";
	return probe->kind->can & IS_FUNCTION ? "{call}" : "{event}";
}

static const char *choose_object(const struct probe *probe)
{
	if (probe->is_event)
		return "probe-event";
	return probe->has_text || probe->has_address ? "probe-text" : "probe";
}

static void write_event(struct probe *probe)
{
	descriptor_write_key(probe->out, "record", "probe_event");
	if (!probe->is_paired)
		return;
	descriptor_write_section(probe->out, "label", "events.unused_duration");
	descriptor_write_key(probe->out, "name", "%s.duration", probe->called);
}

static void write_measure(struct probe *probe)
{
	bool may_lose = probe->is_paired ||
			(probe->measured.bytes == 8 && !probe->measured.is_signed);
	struct buf *out = probe->out;

	descriptor_write_section(probe->out, "collector", "");
	descriptor_write_key(out, "object", "%s", choose_object(probe));
	write_description(probe);
	descriptor_write_section(probe->out, probe->is_event ? "event" : "metric", probe->what->map);
	write_description(probe);
	if (!probe->is_event)
		descriptor_write_key(out, "unit", "%s", choose_unit(probe));
	if (probe->name)
		descriptor_write_key(out, "name", "%s", probe->name);
	else
		descriptor_write_key(out, "name", "bpfpush.probe.%s%s", probe->called, probe->what->suffix);
	if (probe->is_event)
		write_event(probe);
	probe_write_param(probe, "measure", probe->what->name);
	if (may_lose) {
		descriptor_write_section(probe->out, "metric", "lost");
		descriptor_write_key(out, "name", "bpfpush.probe.lost");
		descriptor_write_key(out, "unit", "{call}");
		descriptor_write_key(out, "attribute", "bpfpush.probe.name=%s", probe->section);
		descriptor_write_key(out, "description", "Calls that were not measured: they did not return, their return "
			      "was missed, or their value is too large");
	}
	if (probe->is_paired)
		write_threads(probe);
}

static void write_program(struct probe *probe, const char *name)
{
	const char *target = probe->target,
		*event = probe->kind->can & HAS_FIELDS ? strchr(target, ':') + 1 : target;
	const char *key = probe->kind->can & IS_SAMPLED ? "event" : "target";

	descriptor_write_section(probe->out, "program", name);
	if (strcmp(name, "event__tp"))
		descriptor_write_key(probe->out, key, "%s", event);
	else
		descriptor_write_key(probe->out, key, "%.*s/%s", (int)(event - target - 1), target, event);
	if (probe->period)
		descriptor_write_key(probe->out, "period", "%s", probe->period);
	if (probe->frequency)
		descriptor_write_key(probe->out, "frequency", "%s", probe->frequency);
}

void probe_write(struct probe *probe)
{
	bool is_at_return = probe->kind->can & HAS_RESULT || probe->is_paired;
	bool is_at_entry = !is_at_return || probe->is_paired;

	write_measure(probe);
	for (size_t i = probe->is_classic ? 2 : 0; i < ARRAY_SIZE(probe->kind->programs); i++)
		if (probe->kind->programs[i] && (i & 1 ? is_at_return : is_at_entry))
			write_program(probe, probe->kind->programs[i]);
}

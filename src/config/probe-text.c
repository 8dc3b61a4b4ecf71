/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a descriptor over probe.bpf.o, which bpf/probe/ explains. */
#include "config/probe-internal.h"

#include <ctype.h>
#include <string.h>


#define THREADS 4096 /* half of them for those in a call */

void probe_write_param(struct probe *probe, const char *name, const char *value)
{
	buf_printf(probe->out, "[param %s]\ndefault = %s\n", name, value);
}

void probe_write_label(struct probe *probe, const char *member, const char *first, const char *last)
{
	buf_printf(probe->out, "[label *.%s]\nname = %s%s%s\n", member, first, *last ? "." : "", last);
}

void probe_write_value(struct probe *probe, const char *slot, const struct probe_value *value)
{
	buf_printf(probe->out,
		   "[param %s_from]\ndefault = %s\n[param %s_offset]\ndefault = %u\n[param %s_bytes]\ndefault = %u\n"
		   "[param %s_signed]\ndefault = %s\n",
		   slot, value->from, slot, value->offset, slot, value->bytes, slot, value->is_signed ? "yes" : "no");
	if (probe_value_is(value, IS_ERROR | IS_SWAPPED))
		buf_printf(probe->out, "[param %s_%s]\ndefault = yes\n", slot, probe_value_is(value, IS_ERROR) ? "error" : "swapped");
}

void probe_write_type(struct probe *probe, const struct probe_value *value)
{
	if (value->type && value->type->label)
		buf_printf(probe->out, "as = %s\n", value->type->label);
	else if (value->constants)
		buf_printf(probe->out, "as = kernel-enum %s\n", value->constants);
	else if (probe_value_is(value, IS_NAMED))
		(void)event_names_write(&probe->fields, value->name, probe->out);
}

/* Of the collector and of the metric: "Histogram of ret of kretprobe:vfs_read". */
static void write_description(struct probe *probe)
{
	const char *what = probe->what->name, *value = probe->word;

	if (probe->description)
		buf_printf(probe->out, "description = %s\n", probe->description);
	else
		buf_printf(probe->out, "description = %c%s%s%s of %s\n", toupper((unsigned char)*what), what + 1,
			   *value ? " of " : "", value, probe->hook);
}

static void write_metrics(struct probe *probe)
{
	const char *unit = probe->unit ?: probe->what->unit ?: strstr(probe->target, "-clock") ? "ns" :
			   probe->kind->can & IS_FUNCTION ? "{call}" : "{event}";

	buf_printf(probe->out, "[collector]\nobject = probe%s\n", probe->has_text || probe->has_address ? "-text" : "");
	write_description(probe);
	buf_printf(probe->out, "[metric %s]\nunit = %s\n", probe->what->map, unit);
	write_description(probe);
	if (probe->name)
		buf_printf(probe->out, "name = %s\n", probe->name);
	else
		buf_printf(probe->out, "name = bpfpush.probe.%s%s\n", probe->called, probe->what->suffix);
	probe_write_param(probe, "measure", probe->what->name);
	if (probe->is_paired || (probe->measured.bytes == 8 && !probe->measured.is_signed))
		buf_printf(probe->out, "[metric lost]\nname = bpfpush.probe.lost\nunit = {call}\nattribute = bpfpush.probe.name=%s\n"
			   "description = Calls that were not measured: they did not return, their return was missed, or their value is too large\n",
			   probe->section);
	if (probe->is_paired)
		buf_printf(probe->out,
			   "[param is_paired]\ndefault = yes\n[param threads_entries]\ndefault = %d\n"
			   "[program thread_end]\ntarget = sched_process_exit\nbackup = thread_end_again\n"
			   "[program thread_end_again]\ntarget = sched_process_exit\nwhen = hooks_preemptible\nbackup = thread_end\n"
			   "[program thread_exec]\ntarget = sched_process_exec\nbackup = thread_end\n",
			   THREADS);
}

static void write_program(struct probe *probe, const char *name)
{
	const char *target = probe->target, *event = probe->kind->can & HAS_FIELDS ? strchr(target, ':') + 1 : target;
	int category = strcmp(name, "event__tp") ? 0 : (int)(event - target - 1);

	buf_printf(probe->out, "[program %s]\n%s = %.*s%s%s\n", name, probe->kind->can & IS_SAMPLED ? "event" : "target",
		   category, target, category ? "/" : "", event);
	if (probe->period)
		buf_printf(probe->out, "period = %s\n", probe->period);
	if (probe->frequency)
		buf_printf(probe->out, "frequency = %s\n", probe->frequency);
}

void probe_write(struct probe *probe)
{
	bool is_at_return = probe->kind->can & HAS_RESULT || probe->is_paired;
	bool is_at_entry = !is_at_return || probe->is_paired;

	write_metrics(probe);
	for (size_t i = probe->is_classic ? 2 : 0; i < ARRAY_SIZE(probe->kind->programs); i++)
		if (probe->kind->programs[i] && (i & 1 ? is_at_return : is_at_entry))
			write_program(probe, probe->kind->programs[i]);
}

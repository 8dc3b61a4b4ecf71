/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be said of hooks before anything is attached. A descriptor may be checked on another
 * machine than that which it is for, so what only this machine lacks is told apart from what is
 * wrong on all.
 */
#include "collector/hook/check.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collector/binding/binding.h"
#include "collector/hook/file.h"
#include "collector/hook/perf.h"
#include "collector/hook/target.h"
#include "collector/kernel/kernel.h"
#include "util/array.h"
#include "util/cleanup.h"

#define TRACEPOINTS " tp_btf raw_tp raw_tracepoint tp tracepoint "

/* What a target has to look like; the first row that fits. */
static const struct form {
	const char *types;
	const char *separators; /* in their order, each with something after it */
	const char *example;
} forms[] = {
	{ " tp tracepoint ", "/", "target = sched/sched_switch" },
	{ TRACEPOINTS, "", "target = sched_switch" },
	{ KERNEL_FUNCTIONS, "", "target = vfs_read" },
	{ " uprobe uretprobe ", ":", "target = libc:malloc" },
	{ " usdt ", "::", "target = /usr/bin/program:provider:name" },
	{ " perf_event ", "", "event = page-faults" },
	{ " xdp ", "", "interface = eth0" },
};

static bool has_form(const char *target, const char *separators)
{
	for (; *target && *separators; separators++)
		target = (strchr(target, *separators) ?: " ") + 1;
	return *target;
}

static void check_target(const struct collector *collector, const struct program *program,
			 const struct descriptor_program *described)
{
	const char *frequency = described ? described->frequency : NULL;
	const char *period = described ? described->period : NULL;
	const char *target = target_of(program->section), *complaint;
	unsigned int line = described ? described->line : 0;

	array_for_each (form, forms, ARRAY_SIZE(forms)) {
		if (!section_is(program->section, form->types))
			continue;
		complaint = strcmp(form->types, " perf_event ") ? NULL :
			    perf_complaint(target, frequency, period);
		if (!has_form(target, form->separators))
			complain(collector, line, "program \"%s\" (%s) has no target that could be attached to; add a line to "
				 "[program %s], such as %s", program->name, program->section, program->name, form->example);
		else if (complaint)
			complain(collector, line, "program \"%s\" (%s): %s", program->name, program->section, complaint);
		return;
	}
}

/* Keys that mean nothing to a program of another kind, or next to another key. */
static void check_keys(const struct collector *collector, const struct program *program,
		       const struct descriptor_program *described)
{
	const char *target = described->target;
	const struct descriptor_list *interfaces = &described->interfaces;
	char unused[TARGET_BYTES];
	const struct {
		const char *key, *value, *types;
		const char *other, *excluded; /* what cannot be there too */
	} rows[] = {
		{ "binary", described->binary, " uprobe uretprobe usdt ", "a file in \"target\"",
		  target ? target_split(target, section_is(program->section, " usdt "), unused) : NULL },
		{ "event", described->event, " perf_event ", "\"target\"", target },
		{ "frequency", described->frequency, " perf_event " },
		{ "period", described->period, " perf_event ", "\"frequency\"", described->frequency },
		{ "interface", interfaces->n ? "" : NULL, " xdp ", "\"target\"", target },
		{ "mode", described->mode, " xdp " },
		{ "runs", described->runs, " iter " },
		{ "map", program_is_over_map(program) ? NULL : described->map, " iter/bpf_map_elem iter/bpf_sk_storage_map " },
	};

	array_for_each (row, rows, ARRAY_SIZE(rows))
		if (row->value && !section_is(program->section, row->types))
			complain(collector, described->line, "\"%s\" is for programs in%ssections, and program \"%s\" (%s) is not in one; "
				 "remove the line", row->key, row->types, program->name, program->section);
		else if (row->value && row->excluded)
			complain(collector, described->line, "\"%s\" and %s exclude each other; keep one", row->key, row->other);
	array_for_each (interface, interfaces->items, interfaces->n)
		if (interfaces->n > 1 && (!strcmp(interface->text, "*") ||
					  array_find(interfaces->items, interfaces->n,
						     interface->text) != interface))
			complain(collector, interface->line, "interface = %s: an interface takes the program only once; remove this line "
				 "or the other", interface->text);
}

void hook_check_sharing(const struct collector *collector, const struct collector *other)
{
	array_for_each (program, collector->object->programs.items, collector->object->programs.n) {
		const struct descriptor_program *mine = collector_describes(collector, program);
		const struct descriptor_program *theirs = collector_describes(other, program);

		if (mine && theirs && target_is_given(mine) && target_is_given(theirs))
			complain(collector, mine->line, "program \"%s\" has its target from collector %s, on line %u of its descriptor; "
				 "remove it from one of the two", program->name, other->name, theirs->line);
	}
}

void hook_check(const struct collector *collector, const struct program *program)
{
	const struct descriptor_program *described = collector_describes(collector, program);

	if (described && !strcmp(described->name, program->name))
		check_keys(collector, program, described);
	check_target(collector, program, described);
}

/*
 * 1: there is such a classic tracepoint; 0: nobody here may know; -1: there is none, and lack tells
 * of one in another category.
 */
static int find_event(const char *target, struct buf *lack)
{
	const char *name = strchrnul(target, '/');
	_cleanup_(fclosep) FILE *f = *name ? target_open_trace("available_events") : NULL;
	int length = (int)(name - target);
	char event[256];

	while (f && fscanf(f, "%255s", event) == 1) {
		int n = (int)strcspn(event, ":");

		if (!event[n] || strcmp(event + n + 1, name + 1))
			continue;
		buf_reset(lack);
		if (n == length && !strncmp(event, target, (size_t)n))
			return 1;
		buf_printf(lack, "this kernel has no tracepoint %.*s:%s: did you mean %s?", length, target, name + 1, event);
	}
	return f ? -1 : 0;
}

static struct btf *kernel;

void hooks_forget(void)
{
	btf__free(kernel);
	kernel = NULL;
	kernel_forget_symbols();
}

/* The kernel's types have functions by the names that they have in its source. */
static bool is_one_function(const char *section, const char *name, struct buf *lack)
{
	unsigned long addresses[KERNEL_PLACES];
	size_t n = kernel_find_functions(name, addresses);
	char text[TARGET_BYTES + 32];

	if (!*name)
		buf_printf(lack, "\"%s\" is not the name of a function; write one like vfs_read", target_of(section));
	else if (n > 1 && section_is(section, " kprobe kretprobe "))
		buf_printf(lack, "this kernel has %zu functions %s, and " SEVERAL_FUNCTIONS, n, name);
	else if (!n && kernel_find_part(name, text, sizeof(text)))
		buf_printf(lack, "this kernel has no function %s: did you mean %s?", name, text);
	else
		return true;
	return false;
}

/* Its beginning and its end have tracepoints, which are only classic ones. */
static bool is_of_call(const char *event)
{
	return !strncmp(event, "sys_enter_", 10) || !strncmp(event, "sys_exit_", 9);
}

/* A module that is not loaded may have it. */
static bool is_in_kernel(const char *section, struct buf *lack)
{
	const char *name = target_of(section),
		*event = strrchr(name, '/') ? strrchr(name, '/') + 1 : name, *nearest;
	bool is_function = section_is(section, KERNEL_FUNCTIONS),
		is_syscall = !strncmp(name, "syscalls/", 9);
	const char *prefix = is_function ? "" : "btf_trace_";
	uint32_t kind = is_function ? BTF_KIND_FUNC : BTF_KIND_TYPEDEF;
	int found;
	char plain[TARGET_BYTES], full[TARGET_BYTES + 32];
	uint64_t unused;

	/*
	 * Those of system calls have no type of their own, nor have those that somebody has added.
	 */
	found = section_is(section, " tp tracepoint ") ? find_event(name, lack) : 0;
	if (found > 0 || (is_syscall && !found))
		return true;
	if (is_syscall) {
		buf_printf(lack, "this kernel has no tracepoint syscalls:%s", event);
		return false;
	}
	if (!is_function && is_of_call(event)) {
		if (!lack->size) /* the categories of this kernel have not said it */
			buf_printf(lack, "this kernel has no tracepoint %s: did you mean syscalls:%s?", event, event);
		return false;
	}
	kernel = kernel ?: btf__load_vmlinux_btf();
	if (!kernel || strpbrk(name, "*?:"))
		return true;
	target_offset(event, plain);
	if (section_is(section, KERNEL_PROBES) && !is_one_function(section, plain, lack))
		return false;
	snprintf(full, sizeof(full), "%s%s", prefix, plain);
	if (btf__find_by_name_kind(kernel, full, kind) > 0)
		return true;
	snprintf(full, sizeof(full), "%s%s", is_function ? "" : "__tracepoint_", plain);
	if (kernel_find_symbol(full, &unused) != -ENOENT)
		return true;
	/* Those of another length are not near, and there are many. */
	nearest = shape_nearest_type(kernel, 1u << kind, prefix, plain, 2);
	buf_printf(lack, "this kernel has no %s %s", is_function ? "function" : "tracepoint", plain);
	if (nearest)
		buf_printf(lack, ": did you mean %s?", nearest);
	return false;
}

/* Classic tracepoints are found by it. */
static bool has_tracefs(const char *section, struct buf *lack)
{
	_cleanup_(fclosep) FILE *f = target_open_trace("events");

	if (f || errno != ENOENT || !section_is(section, " tp tracepoint "))
		return true;
	buf_append_text(lack, "tracefs is not mounted; run mount -t tracefs tracefs /sys/kernel/tracing");
	return false;
}

/*
 * The category of a classic tracepoint is wrong even if an alternative, which has none, is right.
 */
static bool has_category(const char *section, struct buf *lack)
{
	return !section_is(section, " tp tracepoint ") || find_event(target_of(section), lack) >= 0 || !lack->size;
}

/* A program of the kind that does nothing is loaded and let go. */
static int try_tracing(enum bpf_attach_type type, const char *target, uint32_t kind)
{
	static const struct bpf_insn nothing[] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K },
						   { .code = BPF_JMP | BPF_EXIT } };
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = type,
		    .attach_btf_id = (uint32_t)btf__find_by_name_kind(kernel, target, kind));
	_cleanup_(closep) int fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, NULL, "GPL", nothing,
						 ARRAY_SIZE(nothing), &options);

	return fd < 0 ? fd : 0;
}

/*
 * Some kernels refuse all programs at functions, and none at tracepoints. True where that cannot be
 * tried: without rights, or without the kernel's types.
 */
static bool takes_functions(void)
{
	static int are_taken = -1; /* not tried yet */

	kernel = kernel ?: btf__load_vmlinux_btf();
	if (are_taken < 0 && kernel)
		are_taken = try_tracing(BPF_TRACE_FENTRY, "vfs_read", BTF_KIND_FUNC) != -EPERM ||
			    try_tracing(BPF_TRACE_RAW_TP, "btf_trace_sched_switch", BTF_KIND_TYPEDEF);
	return are_taken;
}

static bool is_here(const char *section, uint64_t rights, struct buf *lack)
{
	const char *fault = refusal_lack(section, rights);

	if (!fault && section_is(section, KERNEL_PROBES) && access(HAS_KERNEL_PROBES, F_OK))
		fault = NO_KERNEL_PROBES;
	else if (!fault && section_is(section, KERNEL_FUNCTIONS) && !kernel_traces_functions())
		fault = NO_TRACED_FUNCTIONS;
	else if (!fault && section_is(section, " fentry fexit ") && !takes_functions())
		fault = NO_PROGRAMS_THERE;
	else if (!fault && section_is(section, " perf_event ") && !perf_is_counted(target_of(section)))
		fault = NO_EVENT_COUNTER;
	if (fault) {
		buf_append_text(lack, fault);
		return false;
	}
	if (section_is(section, KERNEL_FUNCTIONS TRACEPOINTS))
		return is_in_kernel(section, lack) && has_tracefs(section, lack);
	return !section_is(section, " uprobe uretprobe usdt ") || file_has(section, lack);
}

/*
 * Is it the first of its hook's alternatives, and none of them is here? lack: what it lacks then.
 */
static bool is_hook_missing(const struct programs *programs, const struct program *program,
			    uint64_t rights, struct buf *lack)
{
	for (const struct program *other = programs->items + programs->n;
	     other-- > programs->items;) {
		if (strcmp(other->hook, program->hook) || other->state != PROGRAM_WAITING)
			continue;
		buf_reset(lack);
		if (other < program || is_here(other->section, rights, lack))
			return false;
	}
	return true;
}

void hooks_look(const struct collector *collector, uint64_t rights, struct diag *diag)
{
	const struct programs *programs = &collector->object->programs;
	_cleanup_(buf_done) struct buf said = BUF_INIT;

	array_for_each (program, programs->items, programs->n) {
		const struct descriptor_program *described =
			collector_describes(collector, program);
		_cleanup_(buf_done) struct buf lack = BUF_INIT;

		if (!collector_uses(collector, program) || program->state != PROGRAM_WAITING ||
		    (has_category(program->section, &lack) &&
		     !is_hook_missing(programs, program, rights, &lack)))
			continue;
		if (!strcmp(buf_text(&lack), buf_text(&said)))
			continue;
		buf_reset(&said);
		buf_append_text(&said, buf_text(&lack));
		if (collector->is_probe)
			diag_add(diag, collector->conf_path, described ? described->line : 0, "hook: %s",
				 buf_text(&lack));
		else
			diag_add(diag, collector->conf_path, described ? described->line : 0, "program \"%s\" (%s): %s",
				 program->name, program->section, buf_text(&lack));
		if (collector->is_probe || rights != UINT64_MAX) /* a probe has one hook */
			return;
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function and a tracepoint have no names in common, so a tracepoint may well be an alternative
 * for a function. That is believed if the variant is called after its type of section (send__btf,
 * send__fexit), and doubtful otherwise: then the collector's check asks for clearer names.
 */
#include "collector/hook/alternative.h"

#include <stdio.h>
#include <string.h>

#include "collector/hook/target.h"
#include "collector/program.h"
#include "util/array.h"
#include "util/cleanup.h"

/* Events can be compared that have a bit in common. */
enum event { EVENT_TRACEPOINT = 1,
	     EVENT_ENTRY = 2,
	     EVENT_RETURN = 2 | 4,
	     EVENT_WALK = 8,
	     EVENT_OTHER = 16 };

/*
 * In the order in which alternatives are tried: the cheapest and the least demanding first. Where
 * the kernel preempts tp_btf and raw_tp, those come first that it does not preempt, the cheapest of
 * them first.
 */
static const struct section {
	const char *type;
	enum event event;
	char mechanism; /* the same for the entry and the return of one function */
	int unpreempted; /* the place among those; 0: none of them */
} sections[] = {
	{ "tp_btf", EVENT_TRACEPOINT, 't', 0 },
	{ "raw_tp", EVENT_TRACEPOINT, 't', 0 },
	{ "raw_tracepoint", EVENT_TRACEPOINT, 't', 0 },
	{ "fexit", EVENT_RETURN, 'f', 0 },
	{ "fentry", EVENT_ENTRY, 'f', 0 },
	{ "kprobe.multi", EVENT_ENTRY, 'm', 3 },
	{ "kretprobe.multi", EVENT_RETURN, 'm', 4 },
	{ "tp", EVENT_TRACEPOINT, 't', 1 },
	{ "tracepoint", EVENT_TRACEPOINT, 't', 2 },
	{ "kprobe", EVENT_ENTRY, 'k', 5 },
	{ "kretprobe", EVENT_RETURN, 'k', 6 },
	{ "uprobe", EVENT_ENTRY, 'u', 0 },
	{ "uretprobe", EVENT_RETURN, 'u', 0 },
	{ "iter", EVENT_WALK, 0, 0 },
	{ "", EVENT_OTHER, 0, 0 },
};

#define SECTION_OTHER (ARRAY_SIZE(sections) - 1)

static size_t section_of(const char *text, size_t length)
{
	for (size_t i = 0; i < SECTION_OTHER; i++)
		if (strlen(sections[i].type) == length && !strncmp(sections[i].type, text, length))
			return i;
	return SECTION_OTHER;
}

static const struct section *section_of_program(const struct program *program)
{
	return &sections[program->type];
}

/* "tp/sched/sched_switch" and "tp_btf/sched_switch" have one target. */
static const char *event_name(const struct program *program)
{
	const char *target = target_of(program->section), *slash = strrchr(target, '/');

	return section_of_program(program)->event == EVENT_TRACEPOINT && slash ? slash + 1 : target;
}

static bool is_comparable(const struct program *one, const struct program *other)
{
	return section_of_program(one)->event & section_of_program(other)->event;
}

static bool sees_same_event(const struct program *one, const struct program *other)
{
	const struct section *left = section_of_program(one), *right = section_of_program(other);

	if (left->event == EVENT_OTHER)
		return !strcmp(one->section, other->section);
	return left->event == EVENT_WALK || (!strcmp(event_name(one), event_name(other)) &&
					     (left->mechanism != right->mechanism ||
					      left->event == right->event));
}

/* send__fexit: what comes after "__" is called after a type of section. */
static bool is_called_after_section(const struct program *program)
{
	static const char *const words[] = { "btf", "raw", "tp", "tracepoint", "fentry", "fexit", "multi", "kprobe", "kretprobe",
					     "uprobe", "uretprobe" };
	const char *variant = program->variant + strlen(program->hook);

	variant += strspn(variant, "_");
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strncmp(variant, words[i], strlen(words[i])))
			return true;
	return false;
}

/* Can two variants stand for each other, as far as the sections of their programs tell? */
static bool are_variants_alike(const struct programs *programs, const struct program *one,
			       const struct program *other)
{
	array_for_each (left, programs->items, programs->n) {
		if (strcmp(left->variant, one->variant))
			continue;
		array_for_each (right, programs->items, programs->n)
			if (!strcmp(right->variant, other->variant) &&
			    (!is_comparable(left, right) || sees_same_event(left, right)))
				return true;
	}
	return false;
}

/* As many bytes of its name. */
static void name_after(struct program *program, size_t hook_bytes, size_t variant_bytes)
{
	snprintf(program->hook, sizeof(program->hook), "%.*s", (int)hook_bytes, program->name);
	snprintf(program->variant, sizeof(program->variant), "%.*s", (int)variant_bytes, program->name);
	program->is_doubtful = false;
}

static void set_names(struct program *program)
{
	const char *name = program->name, *end = strstr(name + strspn(name, "_"), "__");
	const char *part = end ? strstr(end + 2, "__") : NULL, *all = name + strlen(name);

	if (!end || section_of(name, (size_t)(end - name)) != SECTION_OTHER)
		end = part = all;
	program->type = section_of(program->section, strcspn(program->section, "/"));
	name_after(program, (size_t)(end - name), (size_t)((part ?: all) - name));
}

/* Each program of this hook becomes a hook of its own. */
static void split_hook(struct programs *programs, const struct program *of)
{
	char hook[PROGRAM_NAME_BYTES];

	snprintf(hook, sizeof(hook), "%s", of->hook);
	array_for_each (program, programs->items, programs->n)
		if (!strcmp(program->hook, hook))
			name_after(program, strlen(program->name), strlen(program->name));
}

static void compare_programs(struct programs *programs, struct program *one, struct program *other)
{
	if (strcmp(one->hook, other->hook) || !strcmp(one->variant, other->variant))
		return;
	if (!is_comparable(one, other) &&
	    !(is_called_after_section(one) && is_called_after_section(other)))
		other->is_doubtful = true;
	if (!are_variants_alike(programs, one, other))
		split_hook(programs, one);
}

void alternatives_find(struct programs *programs)
{
	array_for_each (program, programs->items, programs->n)
		set_names(program);
	array_for_each (program, programs->items, programs->n)
		for (struct program *other = programs->items; other < program; other++)
			compare_programs(programs, other, program);
	alternatives_rank(programs, NULL);
}

/*
 * Is it worth to take another alternative, because programs at the hook's tracepoint can be
 * preempted?
 */
static bool is_preempted(const struct programs *programs, const char *hook,
			 bool (*is_preemptible)(const char *section))
{
	const char *preempted = NULL;
	bool has_other = false;

	array_for_each (program, programs->items, programs->n) {
		if (program->state != PROGRAM_WAITING || strcmp(program->hook, hook))
			continue;
		if (section_of_program(program)->unpreempted)
			has_other = true;
		else if (section_of_program(program)->event == EVENT_TRACEPOINT)
			preempted = program->section;
	}
	return has_other && preempted && is_preemptible && is_preemptible(preempted);
}

void alternatives_rank(struct programs *programs, bool (*is_preemptible)(const char *section))
{
	array_for_each (program, programs->items, programs->n) {
		size_t last = 0;

		array_for_each (other, programs->items, programs->n)
			if (!strcmp(other->variant, program->variant) && other->type > last)
				last = other->type;
		program->is_hook_preempted = is_preempted(programs, program->hook, is_preemptible);
		program->is_exact = program->is_hook_preempted && sections[last].unpreempted;
		program->rank = program->is_exact ?
				sections[last].unpreempted - (int)ARRAY_SIZE(sections) : (int)last;
	}
}

const char *program_choice(const struct program *program)
{
	if (program->state != PROGRAM_ATTACHED || !program->is_hook_preempted)
		return NULL;
	if (program->is_exact)
		return "chosen because this kernel preempts tp_btf programs at this hook, and then skips events";
	return "this kernel preempts it, and then skips events; it refused the alternatives that it does not preempt";
}

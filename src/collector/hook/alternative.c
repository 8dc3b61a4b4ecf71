/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function and a tracepoint have no names in common, so a tracepoint may well be an alternative for a
 * function. That is believed if the variant is called after its type of section (send__btf, send__fexit),
 * and doubtful otherwise: then the collector's check asks for clearer names.
 */
#include "collector/hook/alternative.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "collector/program.h"

enum event { EVENT_TRACEPOINT,
	     EVENT_ENTRY,
	     EVENT_RETURN,
	     EVENT_WALK,
	     EVENT_OTHER };

/*
 * In the order in which alternatives are tried: the cheapest and the least demanding first. Where the kernel
 * preempts tp_btf and raw_tp, those come first that it does not preempt, the cheapest of them first.
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

static const struct section *section(const struct program *program)
{
	return &sections[program->type];
}

/* "tp/sched/sched_switch" and "tp_btf/sched_switch" have one target. */
static const char *target(const struct program *program)
{
	const char *slash = section(program)->event == EVENT_TRACEPOINT ? strrchr(program->section, '/') :
									   strchr(program->section, '/');

	return slash ? slash + 1 : "";
}

static bool is_function(const struct section *section)
{
	return section->event == EVENT_ENTRY || section->event == EVENT_RETURN;
}

/* Events of one kind can be compared. */
static bool is_comparable(const struct program *one, const struct program *other)
{
	const struct section *left = section(one), *right = section(other);

	return left->event == right->event || (is_function(left) && is_function(right));
}

static bool sees_same_event(const struct program *one, const struct program *other)
{
	const struct section *left = section(one), *right = section(other);

	if (left->event == EVENT_OTHER)
		return !strcmp(one->section, other->section);
	if (left->event == EVENT_WALK)
		return true;
	return !strcmp(target(one), target(other)) &&
	       (left->mechanism != right->mechanism || left->event == right->event);
}

/* send__fexit: what comes after "__" is called after a type of section. */
static bool is_called_after_section(const struct program *program)
{
	static const char *const words[] = { "btf", "raw", "tp", "tracepoint", "fentry", "fexit", "multi", "kprobe", "kretprobe",
					     "uprobe", "uretprobe" };
	const char *variant = program->variant + strlen(program->hook) + 2;

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strncmp(variant, words[i], strlen(words[i])))
			return true;
	return false;
}

/* Can two variants stand for each other, as far as the sections of their programs tell? */
static bool are_variants_alike(const struct programs *programs, const struct program *one, const struct program *other)
{
	for (uint32_t i = 0; i < programs->n; i++) {
		const struct program *left = &programs->items[i];

		for (uint32_t j = 0; !strcmp(left->variant, one->variant) && j < programs->n; j++) {
			const struct program *right = &programs->items[j];

			if (!strcmp(right->variant, other->variant) &&
			    (!is_comparable(left, right) || sees_same_event(left, right)))
				return true;
		}
	}
	return false;
}

/* hook and variant have room for the whole name. */
static int set_names(struct program *program)
{
	const char *name = program->name, *end = strstr(name + strspn(name, "_"), "__");
	const char *part = end ? strstr(end + 2, "__") : NULL;

	program->type = section_of(program->section, strcspn(program->section, "/"));
	program->is_doubtful = false;
	program->hook = program->hook ?: strdup(name);
	program->variant = program->variant ?: strdup(name);
	if (!program->hook || !program->variant)
		return -ENOMEM;
	memcpy(program->hook, name, strlen(name) + 1);
	memcpy(program->variant, name, strlen(name) + 1);
	if (!end || section_of(name, (size_t)(end - name)) != SECTION_OTHER)
		return 0;
	program->hook[end - name] = '\0';
	if (part)
		program->variant[part - name] = '\0';
	return 0;
}

/* Each program of this hook becomes a hook of its own. */
static void split(struct programs *programs, const struct program *of)
{
	char hook[256];

	snprintf(hook, sizeof(hook), "%s", of->hook);
	for (uint32_t i = 0; i < programs->n; i++) {
		struct program *program = &programs->items[i];

		if (strcmp(program->hook, hook))
			continue;
		memcpy(program->hook, program->name, strlen(program->name) + 1);
		memcpy(program->variant, program->name, strlen(program->name) + 1);
		program->is_doubtful = false;
	}
}

static void compare(struct programs *programs, struct program *one, struct program *other)
{
	if (strcmp(one->hook, other->hook) || !strcmp(one->variant, other->variant))
		return;
	if (!is_comparable(one, other) && !(is_called_after_section(one) && is_called_after_section(other)))
		other->is_doubtful = true;
	if (!are_variants_alike(programs, one, other))
		split(programs, one);
}

int alternatives_find(struct programs *programs)
{
	int err = 0;

	for (uint32_t i = 0; i < programs->n && !err; i++)
		err = set_names(&programs->items[i]);
	for (uint32_t i = 0; i < programs->n && !err; i++)
		for (uint32_t j = 0; j < i; j++)
			compare(programs, &programs->items[j], &programs->items[i]);
	if (!err)
		alternatives_rank(programs, NULL);
	return err;
}

/* Is it worth to take another alternative, because programs at the hook's tracepoint can be preempted? */
static bool is_preempted(const struct programs *programs, const char *hook, bool (*is_preemptible)(const char *section))
{
	const char *preempted = NULL;
	bool has_other = false;

	for (uint32_t i = 0; i < programs->n; i++) {
		const struct program *program = &programs->items[i];

		if (program->state != PROGRAM_WAITING || strcmp(program->hook, hook))
			continue;
		if (section(program)->unpreempted)
			has_other = true;
		else if (section(program)->event == EVENT_TRACEPOINT)
			preempted = program->section;
	}
	return has_other && preempted && is_preemptible && is_preemptible(preempted);
}

void alternatives_rank(struct programs *programs, bool (*is_preemptible)(const char *section))
{
	for (uint32_t i = 0; i < programs->n; i++) {
		struct program *program = &programs->items[i];
		size_t last = 0;

		for (uint32_t j = 0; j < programs->n; j++)
			if (!strcmp(programs->items[j].variant, program->variant) && programs->items[j].type > last)
				last = programs->items[j].type;
		program->is_hook_preempted = is_preempted(programs, program->hook, is_preemptible);
		program->is_exact = program->is_hook_preempted && sections[last].unpreempted;
		program->rank = program->is_exact ? sections[last].unpreempted - (int)ARRAY_SIZE(sections) : (int)last;
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an object becomes once it is started: its programs as its collectors want them, and its maps
 * for their rows.
 */
#include "collector/start.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "collector/binding/bindings.h"
#include "collector/binding/cgroups.h"
#include "collector/binding/size.h"
#include "collector/table/layout.h"
#include "collector/hook/preempt.h"
#include "collector/kernel/kernel.h"
#include "util/array.h"
#include "util/rights.h"

#define RIGHTS (UINT64_C(1) << CAP_SYS_ADMIN | UINT64_C(1) << CAP_NET_ADMIN)

/*
 * What a collector says of a program of its object. is_start: it is loaded if one of the collectors
 * wants it now.
 */
static void choose_program(struct program *program, const struct collector *collector,
			   bool is_start)
{
	bool is_wanted = collector_uses(collector, program), is_once = false;

	if (is_wanted)
		program->collector = collector;
	array_for_each (described, collector->descriptor->programs,
			collector->descriptor->n_programs) {
		if (!program_is_called(program, described->name))
			continue;
		if (described->events)
			program->events = binding_find_sum(collector, described->events);
		if (described->frequency || described->period || described->interfaces.n ||
		    described->mode)
			program->how = described;
		is_wanted &= variable_is_on(collector_variables_for(collector, described->when),
					    described->when);
		is_once |= described->runs != NULL;
		program->is_seed |= described->runs && !strcmp(described->runs, "seed");
		if (described->map && program_is_over_map(program))
			program->map = described->map;
		if (described->backup && !program->backup && is_start)
			program->backup = strdup(described->backup);
	}
	if (!is_wanted || !is_start)
		return;
	program->is_once = is_once && (program->state == PROGRAM_OFF || program->is_once);
	program->state = PROGRAM_WAITING;
}

void programs_choose(struct object *object, bool is_start)
{
	array_for_each (program, object->programs.items, object->programs.n) {
		program->collector = NULL;
		program->how = NULL;
		program->events = NULL;
		program->state = is_start ? PROGRAM_OFF : program->state;
		/*
		 * The first collector that uses a program reports its numbers; any may say what
		 * counts its runs.
		 */
		for (size_t i = object->n_collectors; i-- > 0;)
			choose_program(program, object->collectors[i], is_start);
	}
}

int object_open_again(void *user, struct bpf_object **ret_bpf)
{
	const struct object *object = user;
	const struct variables *variables = &object->variables;
	struct bpf_object *bpf = object_open_bytes(object);
	uint64_t *seed;
	int err = 0;

	if (!bpf)
		return -errno;
	if (variables->size_bytes)
		err = bpf_map__set_initial_value(bpf_object__find_map_by_name(bpf,
									      VARIABLES_SECTION),
						 variables->data, variables->size_bytes);
	if (err) {
		bpf_object__close(bpf);
		return err;
	}
	(void)sizes_set(object, bpf);
	seed = table_seed(bpf);
	if (seed)
		(void)!getrandom(seed, sizeof(*seed), 0);
	*ret_bpf = bpf;
	return 0;
}

int object_bind(void *user, const struct bpf_object *bpf)
{
	const struct object *object = user;
	int err = 0;

	for (size_t i = 0; i < object->n_collectors && !err; i++)
		err = bindings_open(object->collectors[i], bpf) ?:
		      cgroup_maps_fill(object->collectors[i], bpf);
	return err;
}

/* For a uprobe of this program's own: it runs once after all is attached, as ebpf_exporter's do. */
__attribute__((noinline, used, visibility("default"))) void post_attach_mark(void);
void post_attach_mark(void)
{
	asm volatile("");
}

/* Variables get the addresses of the kernel's symbols, unless the configuration sets them. */
static int set_symbols(const struct collector *collector, struct buf *why)
{
	array_for_each (param, collector->descriptor->params, collector->descriptor->n_params) {
		const struct variable *variable = variable_find(&collector->variables, param->name);
		uint64_t address;
		int err;

		if (!param->symbol || variable->text)
			continue;
		err = kernel_find_symbol(param->symbol, &address);
		if (err)
			buf_printf(why, err == -ENOENT ? "this kernel has no symbol %s" :
				   "the address of the kernel's symbol %s is not told: CAP_SYSLOG is missing, or the sysctl "
				   "kernel.kptr_restrict is 2", param->symbol);
		if (err)
			return err;
		memcpy(collector->variables.data + variable->offset_bytes, &address,
		       sizeof(address));
	}
	return 0;
}

int object_start(struct object *object)
{
	const struct variable *preemptible = variable_find(&object->variables,
							   VARIABLE_PREEMPTIBLE);
	const struct programs_loader loader = { object_open_again, object_bind, object };
	struct bpf_object *bpf;
	int err = 0;

	for (size_t i = 0; i < object->n_collectors && !err; i++)
		err = set_symbols(object->collectors[i], &object->why);
	if (err)
		return err;
	if (preemptible)
		object->variables.data[preemptible->offset_bytes] = hook_is_preemptible("tp_btf/task_newtask");
	programs_choose(object, true);
	err = programs_load(&object->programs, &loader, &object->why, &bpf);
	if (err)
		return err;
	bpf_object__close(object->bpf);
	object->bpf = bpf;
	post_attach_mark();
	/* The iterators' first run finds what was there before: the hooks count on from it. */
	return programs_iterate(&object->programs, true);
}

static bool uses_exported_map(const struct collector *collector, const struct program *program)
{
	array_for_each (binding, collector->bindings, collector->n_bindings)
		if (program_uses_map(program, binding->reader.fd))
			return true;
	return false;
}

/*
 * 0: an attached program uses a map that is exported, or none was refused. Else -errno of the first
 * refusal: what is attached may well begin something, but no number would come of it.
 */
int collector_check_counting(const struct collector *collector, struct buf *why)
{
	const struct programs *programs = &collector->object->programs;
	const struct program *first = NULL;

	array_for_each (program, programs->items, programs->n) {
		if (!collector_uses(collector, program))
			continue;
		if (program->state == PROGRAM_ATTACHED && uses_exported_map(collector, program))
			return 0;
		/* Of alternatives, the last is what was hoped for. */
		if (program->state == PROGRAM_REFUSED &&
		    !programs_find(programs, program->hook, PROGRAM_ATTACHED) &&
		    (!first || (!strcmp(first->hook, program->hook) &&
				strcmp(first->variant, program->variant))))
			first = program;
	}
	if (!first)
		return 0;
	if (collector->is_probe)
		buf_printf(why, "the kernel refused %s: %.255s", first->section, first->error ?: refusal_error(first->err));
	else
		buf_printf(why, "the kernel refused all programs that count, such as %s (%s): %.255s", first->name,
			   first->section, first->error ?: refusal_error(first->err));
	/* With all rights, it is the kernel that cannot. */
	return first->err == -EPERM && !(~rights_permitted() & RIGHTS) ? -ENODEV : first->err;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/adopt/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/adopt/adopt.h"
#include "collector/binding/bindings.h"
#include "collector/label/cgroup.h"
#include "util/array.h"

void collectors_save(struct collector *const *items, size_t n, struct store *out)
{
	store_number(out, n);
	for (size_t i = 0; i < n; i++) {
		const struct collector *collector = items[i];

		store_text(out, collector->name);
		store_number(out, collector->object->hash);
		programs_save(&collector->object->programs, out);
		store_number(out, collector->n_bindings);
		for (size_t j = 0; j < collector->n_bindings; j++)
			binding_save(&collector->bindings[j], out);
	}
}

/* What the old programs tell a last time, besides the maps that are exported. */
static void hear_past(const struct past *past, struct cgroups *cgroups)
{
	cgroups_hear_out(cgroups, past_find(past, "m.", "cgroup_names"));
	array_for_each (program, past->object->programs.items, past->object->programs.n)
		if (program->is_iterator && !program->is_once && !program->is_seed)
			program->past_link_fd = past_find(past, "l.", program->name);
}

static int restore_collector(struct collector *const *items, size_t n, struct stored *in,
			     const struct restored *restored, struct kept *kept)
{
	const char *name = stored_text(in);
	const struct collector *collector = collector_named(items, n, name);
	const struct past past = { kept, collector ? collector->object : NULL, stored_number(in) };
	bool is_adopted = collector && past.object->is_adopted && past.object->hash == past.hash;
	bool has_past = collector && past.object->hash != past.hash;
	struct programs none = { 0 };
	uint64_t n_bindings;

	if (has_past)
		hear_past(&past, collector->labels->cgroups);
	programs_restore(is_adopted ? &past.object->programs : &none, in);
	n_bindings = stored_number(in);
	for (uint64_t i = 0; i < n_bindings && !in->is_bad; i++) {
		const char *map = stored_text(in);
		uint64_t shape = stored_number(in);
		uint32_t base = (uint32_t)stored_number(in);
		struct stored rows = stored_block(in);
		struct binding *binding = is_adopted || has_past ?
					  binding_find(collector, map) : NULL;
		struct reader *old = binding && has_past ?
				     past_open(&past, map, &binding->reader, base) : NULL;

		if (binding && (!has_past || old) &&
		    !binding_restore(binding, shape, &rows, restored, old))
			past.object->has_past |= has_past;
	}
	return in->is_bad ? -EINVAL : 0;
}

int collectors_restore(struct collector *const *items, size_t n, struct kept *kept,
		       struct stored *in, const struct restored *restored)
{
	uint64_t n_saved = stored_number(in);
	int err = 0;

	for (uint64_t i = 0; i < n_saved && !err; i++)
		err = restore_collector(items, n, in, restored, kept);
	return err;
}

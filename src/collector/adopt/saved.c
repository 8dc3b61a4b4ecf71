/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/adopt/saved.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/adopt/adopt.h"
#include "collector/binding.h"
#include "collector/label/cgroup.h"
#include "util/array.h"

void collectors_save(struct collector *const *items, size_t n, struct removals *removals, struct store *out)
{
	uint32_t number = 0;

	store_number(out, n);
	for (size_t i = 0; i < n; i++) {
		const struct collector *collector = items[i];

		store_text(out, collector->name);
		store_number(out, collector->object->hash);
		programs_save(&collector->object->programs, out);
		store_number(out, collector->n_bindings);
		for (size_t j = 0; j < collector->n_bindings; j++)
			binding_save(&collector->bindings[j], removals, number++, out);
	}
}

/* By their numbers; NULL: it has begun again. */
struct bindings {
	struct kept *kept;
	struct cgroups *cgroups;
	struct binding **items;
	size_t n;
};

/* What the old programs tell a last time, besides the maps that are exported. */
static void hear_past(const struct past *past, struct cgroups *cgroups)
{
	cgroups_hear_out(cgroups, past_find(past, "m.", "cgroup_names"));
	array_for_each (program, past->object->programs.items, past->object->programs.n)
		if (program->is_iterator && !program->is_once && !program->is_seed)
			program->past_link_fd = past_find(past, "l.", program->name);
}

static int restore_collector(struct collector *const *items, size_t n, struct stored *in,
			     const struct restored *restored, struct bindings *bindings)
{
	const char *name = stored_text(in);
	const struct collector *collector = collector_named(items, n, name);
	const struct past past = { bindings->kept, collector ? collector->object : NULL, stored_number(in) };
	bool is_adopted = collector && past.object->is_adopted && past.object->hash == past.hash;
	bool has_past = collector && past.object->hash != past.hash;
	struct programs none = { 0 };
	uint64_t n_bindings;

	if (has_past)
		hear_past(&past, bindings->cgroups);
	programs_restore(is_adopted ? &past.object->programs : &none, in);
	n_bindings = stored_number(in);
	for (uint64_t i = 0; i < n_bindings && !in->is_bad; i++) {
		const char *map = stored_text(in);
		uint64_t shape = stored_number(in);
		uint32_t base = (uint32_t)stored_number(in);
		struct stored rows = stored_block(in);
		struct binding *binding = is_adopted || has_past ? binding_find(collector, map) : NULL;
		struct binding **place = array_add(&bindings->items, &bindings->n, sizeof(*place));
		struct source *old;

		if (!place)
			return -ENOMEM;
		old = binding && has_past ? past_open(&past, map, &binding->source, base) : NULL;
		if (!binding || (has_past && !old) || binding_restore(binding, shape, &rows, restored, old))
			continue;
		*place = binding;
		past.object->has_past |= has_past;
	}
	return in->is_bad ? -EINVAL : 0;
}

static int restore_removal(const struct bindings *bindings, struct stored *in, bool is_unfinished)
{
	uint64_t number = stored_number(in), place = stored_number(in), id;
	struct binding *binding = number < bindings->n ? bindings->items[number] : NULL;
	_cleanup_(freep) uint64_t *cells = NULL;
	struct removal removal = { .place = (uint32_t)place };

	if (number == REMOVALS_NAME) {
		const char *path = stored_text(in);

		stored_numbers(in, &id, 1);
		cgroups_tell(bindings->cgroups, id, 0, path);
	}
	if (!binding)
		return 0;
	removal.key_bytes = binding->rows->key_bytes;
	removal.n_cells = binding->rows->n_cells;
	removal.key = stored_bytes(in, removal.key_bytes);
	removal.cells = cells = calloc(removal.n_cells + 1, sizeof(*cells));
	if (!cells)
		return -ENOMEM;
	stored_numbers(in, cells, removal.n_cells);
	if (in->is_bad)
		return -EINVAL;
	return source_removed(binding->past ?: &binding->source, binding->rows, &removal, is_unfinished);
}

int collectors_restore(struct collector *const *items, size_t n, struct kept *kept, struct stored *in,
		       const struct restored *restored, struct stored *removals, uint64_t bytes_done)
{
	const uint8_t *done = removals->at + bytes_done;
	struct bindings bindings = { .kept = kept, .cgroups = n ? items[0]->labels->cgroups : NULL };
	uint64_t n_saved = stored_number(in);
	int err = 0;

	for (uint64_t i = 0; i < n_saved && !err; i++)
		err = restore_collector(items, n, in, restored, &bindings);
	while (!err && n && removals->at < removals->end) {
		bool is_unfinished = removals->at >= done;
		struct stored removal = stored_block(removals);

		err = removals->is_bad ? -EINVAL : restore_removal(&bindings, &removal, is_unfinished);
	}
	free(bindings.items);
	return err;
}

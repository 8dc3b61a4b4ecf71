/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/binding/cgroups.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>

#include "collector/binding/binding.h"
#include "collector/label/cgroup.h"
#include "collector/label/rule.h"
#include "collector/label/watch.h"
#include "util/array.h"

#define CGRP_STORAGE 32 /* BPF_MAP_TYPE_CGRP_STORAGE, which older headers lack */

static void check_map(const struct collector *collector, const struct descriptor_cgroups *described,
		  const struct bpf_map *map)
{
	bool is_hash = map &&
		       (bpf_map__type(map) == BPF_MAP_TYPE_HASH ||
			bpf_map__type(map) == BPF_MAP_TYPE_LRU_HASH);

	if (!map)
		collector_complain_of_map(collector, described->line, described->map);
	else if (!(is_hash && bpf_map__key_size(map) == sizeof(uint64_t)) &&
		 bpf_map__type(map) != CGRP_STORAGE)
		complain(collector, described->line, "map \"%s\" cannot hold cgroups; use a hash map whose key is the id of a "
			 "cgroup (u64), or BPF_MAP_TYPE_CGRP_STORAGE", described->map);
	else if (bpf_map__value_size(map) > sizeof(uint64_t))
		complain(collector, described->line, "the value of map \"%s\" is larger than a u64; it is set to 1 for each "
			 "cgroup that is chosen, so make it a u64 or u8", described->map);
	if (!described->matches.n)
		complain(collector, described->line, "[cgroups %s] chooses no cgroup; add a line match = REGEX", described->map);
}

int cgroup_maps_new(struct collector *collector)
{
	const struct descriptor *descriptor = collector->descriptor;
	int err = 0;

	collector->watches = calloc(descriptor->n_cgroups + 1, sizeof(*collector->watches));
	if (!collector->watches)
		return -ENOMEM;
	collector->n_watches = descriptor->n_cgroups;
	for (size_t i = 0; i < descriptor->n_cgroups && !err; i++) {
		const struct descriptor_cgroups *described = &descriptor->cgroups[i];
		struct watch *watch = &collector->watches[i];

		watch->map = described->map;
		watch->fd = -1;
		LIST_INSERT_HEAD(cgroups_watches(collector->labels->cgroups), watch, others);
		check_map(collector, described,
			  bpf_object__find_map_by_name(collector->object->bpf, described->map));
		err = patterns_compile(&described->matches, collector->diag, collector->conf_path,
				       &watch->patterns);
	}
	return err;
}

int cgroup_maps_fill(struct collector *collector, const struct bpf_object *bpf)
{
	array_for_each (watch, collector->watches, collector->n_watches) {
		const struct bpf_map *map = bpf_object__find_map_by_name(bpf, watch->map);

		watch->fd = bpf_map__fd(map);
		watch->is_storage = bpf_map__type(map) == CGRP_STORAGE;
		cgroups_walk_again(collector->labels->cgroups);
	}
	return 0;
}

void cgroup_maps_free(struct collector *collector)
{
	array_for_each (watch, collector->watches, collector->n_watches) {
		if (watch->map)
			LIST_REMOVE(watch, others);
		patterns_done(&watch->patterns);
	}
	free(collector->watches);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel tells of loaded programs, and what a later process needs to know of them. */
#include <bpf/bpf.h>

#include "collector/programs.h"
#include "util/array.h"
#include "util/cleanup.h"
#include "util/store.h"

bool program_uses_map(const struct program *program, int map_fd)
{
	uint32_t ids[64], map_size = sizeof(struct bpf_map_info),
		size = sizeof(struct bpf_prog_info);
	/* A program has at most 64 maps. */
	struct bpf_prog_info info = { .nr_map_ids = ARRAY_SIZE(ids), .map_ids = (uintptr_t)ids };
	struct bpf_map_info map = { 0 };

	if (program->fd < 0 || bpf_obj_get_info_by_fd(map_fd, &map, &map_size) ||
	    bpf_obj_get_info_by_fd(program->fd, &info, &size))
		return false;
	for (uint32_t i = 0; i < info.nr_map_ids && i < ARRAY_SIZE(ids); i++)
		if (ids[i] == map.id)
			return true;
	return false;
}

int programs_enable_stats(void)
{
	return bpf_enable_stats(BPF_STATS_RUN_TIME);
}

static bool has_backup(const struct programs *programs, const struct program *program)
{
	if (!program->backup)
		return false;
	array_for_each (other, programs->items, programs->n)
		if (other->fd >= 0 && program_is_called(other, program->backup))
			return true;
	return false;
}

void programs_stats(struct programs *programs, bool is_baseline)
{
	programs->n_skipped = 0;
	array_for_each (program, programs->items, programs->n) {
		struct bpf_prog_info info = { 0 };
		uint32_t size = sizeof(info);

		if (program->fd < 0 || bpf_obj_get_info_by_fd(program->fd, &info, &size))
			continue;
		if (is_baseline)
			program->past = (struct program_past){ info.run_cnt, info.run_time_ns,
							       info.recursion_misses };
		program->last_runs = program->runs;
		program->last_missed = program->missed;
		program->runs = info.run_cnt - program->past.runs;
		program->run_time_ns = info.run_time_ns - program->past.run_time_ns;
		program->skipped = info.recursion_misses - program->past.skipped;
		programs->n_skipped += info.recursion_misses;
		program->missed = program->is_empty || has_backup(programs, program) ? 0 :
				  program->skipped;
	}
}

void programs_save(const struct programs *programs, struct store *out)
{
	store_number(out, programs->n);
	array_for_each (program, programs->items, programs->n) {
		store_text(out, program->name);
		store_number(out, program->past.runs + program->runs);
		store_number(out, program->past.run_time_ns + program->run_time_ns);
		store_number(out, program->past.skipped + program->skipped);
	}
}

void programs_restore(struct programs *programs, struct stored *in)
{
	uint64_t n = stored_number(in);

	for (uint64_t i = 0; i < n && !in->is_bad; i++) {
		struct program *program = array_find(programs->items, programs->n, stored_text(in));
		struct program_past past = { 0 };

		past.runs = stored_number(in);
		past.run_time_ns = stored_number(in);
		past.skipped = stored_number(in);
		if (program && !in->is_bad)
			program->past = past;
	}
}

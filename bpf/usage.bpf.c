/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory, tasks and pressure of cgroups. The kernel has these numbers (memory.current, pids.current
 * and cpu.pressure show them), so nothing runs when they change: a walk over the cgroups copies
 * them at each collection. Only the v2 hierarchy has them here, and memory and tasks only cgroups
 * whose controller is on.
 *
 * The kernel's number of a cgroup contains those of the cgroups below it. A unit may have several
 * cgroups, which the agent adds up, and other units may be below it. So each cgroup counts what is
 * its own: the kernel's number less those of its children. Then the cgroups of a unit add up to the
 * number of its topmost one, less other units in it, and all cgroups add up to the machine's. If
 * only the topmost cgroup of a unit counted, slices and user@.service would count their units
 * again.
 *
 * The walk meets a cgroup before its children. What they get in between makes the cgroup's own
 * number too small for that moment, even less than 0.
 *
 * Pressure does not add up: two cgroups may be stalled at once. The kernel's time for a cgroup is
 * that in which some task in it or below it was stalled, so that of a unit is the time of its
 * topmost cgroup.
 */
#include "label.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct number {
	s64 counter;
};

struct page_counter {
	struct number usage;
};

struct mem_cgroup {
	struct page_counter memory;
};

struct pids_cgroup {
	struct number counter;
};

struct cgroup___of_controllers {
	struct cgroup_subsys_state *subsys[1];
};

struct psi_group {
	u64 total[1][1]; /* ns in each state; up to date every 2 s, and when a file is read */
};

struct psi_group___flat { /* as most kernels' BTF has it */
	u64 total[1];
};

struct cgroup___with_pressure {
	struct psi_group *psi; /* 6.1. NULL: the root, and where it is switched off */
};

struct bpf_iter_meta;

struct bpf_iter__cgroup {
	struct bpf_iter_meta *meta;
	struct cgroup *cgroup; /* NULL in the last call of a walk */
};

struct bpf_ringbuf {
	unsigned long consumer_pos; /* each is in a page of its own */
	unsigned long producer_pos;
};

#pragma clang attribute pop

#define PRESSURE_OFFSET                                                                            \
	(bpf_core_field_exists(struct psi_group___flat, total) ?                                   \
		 bpf_core_field_offset(struct psi_group___flat, total) :                           \
		 bpf_core_field_offset(struct psi_group, total))

#define PAGE_BYTES                                                                                 \
	(bpf_core_field_offset(struct bpf_ringbuf, producer_pos) -                                 \
	 bpf_core_field_offset(struct bpf_ringbuf, consumer_pos))

enum cgroup_subsys_id {
	memory_cgrp_id,
	pids_cgrp_id,
};

enum psi_states {
	PSI_IO_SOME,
	PSI_MEM_SOME,
	PSI_CPU_SOME,
};

enum pressure_resource { RESOURCE_CPU, RESOURCE_MEMORY, RESOURCE_IO };

struct usage_key {
	lbl_cgroup cgroup;
};

struct usage_value {
	val_tally memory;
	val_tally tasks;
};

struct pressure_key {
	lbl_cgroup_top cgroup;
	enum pressure_resource resource;
	u32 unused;
};

struct pressure_value {
	val_ns time;
};

TABLE(usages, struct usage_key, struct usage_value, 2);
TABLE(pressures, struct pressure_key, struct pressure_value, 4);

static __noinline int usage_add(const struct cgroup_subsys_state *css, s64 bytes, s64 tasks)
{
	struct usage_key key = { BPF_CORE_READ(css, cgroup, kn, id) };
	struct usage_value *value = usages_at(&key);

	if (!value)
		return 0;
	table_add(&value->memory, bytes);
	table_add(&value->tasks, tasks);
	return 0;
}

/* The root has no numbers: what is not in another cgroup is not counted by the kernel. */
static __always_inline bool is_root(const struct cgroup_subsys_state *css)
{
	return !BPF_CORE_READ(css, parent);
}

/* What the cgroup has, and its parent no longer. */
static __noinline int usage_move(const struct cgroup_subsys_state *css, s64 bytes, s64 tasks)
{
	const struct cgroup_subsys_state *parent = BPF_CORE_READ(css, parent);

	if (!parent || (!bytes && !tasks))
		return 0;
	usage_add(css, bytes, tasks);
	return is_root(parent) ? 0 : usage_add(parent, -bytes, -tasks);
}

static __always_inline const void *css_at(struct cgroup *cgroup, u64 number)
{
	const void *css = NULL;

	bpf_probe_read_kernel(&css, sizeof(css), (void *)cgroup + number * sizeof(css) +
			      bpf_core_field_offset(struct cgroup___of_controllers, subsys));
	return css;
}

/*
 * It is the first member of what the controller keeps for the cgroup. NULL: the controller is off
 * there.
 */
#define CSS_OF(cgroup, id)                                                                         \
	(bpf_core_enum_value_exists(enum cgroup_subsys_id, id) ?                                   \
		 css_at(cgroup, bpf_core_enum_value(enum cgroup_subsys_id, id)) : NULL)

static __noinline int pressure_copy(struct cgroup *cgroup,
				    enum pressure_resource resource, u32 state)
{
	struct pressure_key key = { .resource = resource };
	struct pressure_value *value;
	const void *group;
	u64 time = 0;

	group = BPF_CORE_READ((struct cgroup___with_pressure *)cgroup, psi);
	group += PRESSURE_OFFSET + state * sizeof(time);
	bpf_probe_read_kernel(&time, sizeof(time), group);
	if (!time)
		return 0;
	key.cgroup = BPF_CORE_READ(cgroup, kn, id);
	value = pressures_at(&key);
	if (value)
		value->time = time;
	return 0;
}

#define COPY_PRESSURE(cgroup, resource, state)                                                     \
	do {                                                                                       \
		if (bpf_core_enum_value_exists(enum psi_states, state))                            \
			pressure_copy(cgroup, resource,                                            \
				      bpf_core_enum_value(enum psi_states, state));                \
	} while (0)

SEC("iter/cgroup")
int groups_walk(struct bpf_iter__cgroup *ctx)
{
	struct cgroup *cgroup = ctx->cgroup;
	const struct mem_cgroup *memory;
	const struct pids_cgroup *pids;

	if (!cgroup)
		return 0;
	table_barrier(cgroup);
	memory = CSS_OF(cgroup, memory_cgrp_id);
	if (memory)
		usage_move((const void *)memory,
			   BPF_CORE_READ(memory, memory.usage.counter) * PAGE_BYTES, 0);
	pids = CSS_OF(cgroup, pids_cgrp_id);
	if (pids)
		usage_move((const void *)pids, 0, BPF_CORE_READ(pids, counter.counter));
	COPY_PRESSURE(cgroup, RESOURCE_CPU, PSI_CPU_SOME);
	COPY_PRESSURE(cgroup, RESOURCE_MEMORY, PSI_MEM_SOME);
	COPY_PRESSURE(cgroup, RESOURCE_IO, PSI_IO_SOME);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long cgroups wait because they have used up their cpu.max. The kernel keeps these numbers for
 * each cgroup (cpu.stat shows them), so nothing runs when a cgroup is throttled: they are copied at
 * each collection, and a last time when the cgroup is removed. Only the v2 hierarchy has them here.
 *
 * Since 6.1 a walk over all cgroups meets those without tasks too. On older kernels the walk is
 * over tasks, and a cgroup that had none at the start counts with all that it had before.
 */
#include "label.h"
#include "table.h"
#include "task.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct cfs_bandwidth {
	int nr_periods;
	int nr_throttled;
	u64 throttled_time;
};

struct task_group {
	struct cgroup_subsys_state css;
	struct cfs_bandwidth cfs_bandwidth;
};

struct cgroup___of_controllers {
	struct cgroup_subsys_state *subsys[1];
};

struct task_struct___in_group {
	struct task_group *sched_task_group;
};

struct bpf_iter__cgroup {
	struct bpf_iter_meta *meta;
	struct cgroup *cgroup; /* NULL in the last call of a walk */
};

#pragma clang attribute pop

enum cgroup_subsys_id {
	cpu_cgrp_id,
};

#define LONGEST_PATH 16 /* of the ancestors that a walk over tasks looks at */

struct throttle_key {
	lbl_cgroup cgroup;
};

struct throttle_value {
	u64 periods;
	u64 throttled;
	val_ns time;
};

TABLE(throttles, struct throttle_key, struct throttle_value, 1);

/* A walk and the end of a cgroup may copy at once: the larger number is the later one. */
static __always_inline void raise(u64 *to, u64 now)
{
	u64 before;

#pragma unroll
	for (int i = 0; i < 3; i++) {
		before = *(volatile u64 *)to;
		if (now <= before || __sync_val_compare_and_swap(to, before, now) == before)
			return;
	}
}

/* css: the first member of its task group */
static __noinline int group_copy(const struct cgroup_subsys_state *css)
{
	const struct task_group *group = (const void *)css;
	u32 periods = css ? BPF_CORE_READ(group, cfs_bandwidth.nr_periods) : 0;
	struct throttle_key key = {};
	struct throttle_value *value;

	if (!periods || BPF_CORE_READ(css, cgroup, root, hierarchy_id))
		return 0;
	key.cgroup = BPF_CORE_READ(css, cgroup, kn, id);
	value = throttles_at(&key);
	if (!value)
		return 0;
	raise(&value->periods, periods);
	raise(&value->throttled, (u32)BPF_CORE_READ(group, cfs_bandwidth.nr_throttled));
	raise(&value->time, BPF_CORE_READ(group, cfs_bandwidth.throttled_time));
	return 0;
}

/* NULL: the cgroup has no CPU controller of its own. */
static __always_inline struct cgroup_subsys_state *css_of(struct cgroup *cgroup)
{
	struct cgroup_subsys_state *css = NULL;
	u64 at = bpf_core_field_offset(struct cgroup___of_controllers, subsys) +
		 bpf_core_enum_value(enum cgroup_subsys_id, cpu_cgrp_id) * sizeof(css);

	bpf_probe_read_kernel(&css, sizeof(css), (void *)cgroup + at);
	return css;
}

SEC("iter/cgroup")
int groups_walk__cgroup(struct bpf_iter__cgroup *ctx)
{
	struct cgroup *cgroup = ctx->cgroup;

	if (!cgroup)
		return 0;
	table_barrier(cgroup);
	return group_copy(css_of(cgroup));
}

SEC("iter/task")
int groups_walk__task(struct bpf_iter__task *ctx)
{
	struct task_struct___in_group *task = (void *)ctx->task;
	const struct cgroup_subsys_state *css = task ?
						(void *)BPF_CORE_READ(task, sched_task_group) :
						NULL;

	for (int i = 0; i < LONGEST_PATH && css; i++) {
		group_copy(css);
		css = BPF_CORE_READ(css, parent);
	}
	return 0;
}

/* It has no tasks any more, but still its controllers. */
SEC("tp_btf/cgroup_rmdir")
int BPF_PROG(group_end, struct cgroup *cgroup)
{
	return group_copy(css_of(cgroup));
}

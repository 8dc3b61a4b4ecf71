/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an iterator copies or tallies, a level that is set, and programs whose names look like alternatives. */
#include "owner.h"
#include "table.h"
#include "task.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define COPIED_AT_FIRST 1000000
#define COPIED_EACH_RUN 5

struct counter_value {
	u64 copied;
	val_tally tally;
};

TABLE(counters, struct owner, struct counter_value, 4);

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, val_level);
} levels SEC(".maps");

struct event_value {
	u64 forks, exits;
};

TABLE(events, struct owner, struct event_value, 4);

u64 n_runs;

SEC("iter/task")
int copy(struct bpf_iter__task *ctx)
{
	struct owner owner = { .cgroup = 1 };
	struct counter_value *value;

	if (ctx->meta->seq_num)
		return 0;
	n_runs++;
	value = counters_at(&owner);
	if (!value)
		return 0;
	table_add(&value->copied, n_runs == 1 ? COPIED_AT_FIRST : COPIED_EACH_RUN);
	table_add(&value->tally, 1);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(task__fork, struct task_struct *task)
{
	struct event_value *value;
	u64 level = 100;
	u32 key = 0;
	struct owner owner;

	owner_of_task(&owner, task);
	value = events_at(&owner);
	if (value)
		table_add(&value->forks, 1);
	bpf_map_update_elem(&levels, &key, &level, BPF_ANY);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(task__exit, struct task_struct *task)
{
	struct event_value *value;
	struct owner owner;

	owner_of_task(&owner, task);
	value = events_at(&owner);
	if (value)
		table_add(&value->exits, 1);
	return 0;
}

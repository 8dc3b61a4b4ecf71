/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One object of two collectors, "first" and "second". */
#include "owner.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile bool first_on, second_on, second_exits = true;
const volatile u32 first_step = 1, second_step = 1;

struct count_key {
	struct owner owner;
};

struct count {
	u64 n;
};

TABLE(first_forks, struct count_key, struct count, 1);
TABLE(second_forks, struct count_key, struct count, 1);
TABLE(exits, struct count_key, struct count, 1);

/* Which collectors the kernel's code was made for, which programs have run, and how often iterators have. */
enum fact { FACT_ON, FACT_EXIT, FACT_EACH, FACT_ONCE };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FACT_ONCE + 1);
	__type(key, enum fact);
	__type(value, u64);
} facts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} visited SEC(".maps");

static __always_inline void set_fact(enum fact fact, u64 value)
{
	bpf_map_update_elem(&facts, &fact, &value, BPF_ANY);
}

static __always_inline void add_fact(enum fact fact)
{
	u64 *value = bpf_map_lookup_elem(&facts, &fact);

	if (value)
		table_add(value, 1);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(task_fork, struct task_struct *parent, struct task_struct *child)
{
	struct count_key key = {};
	struct count *count;

	owner_of_task(&key.owner, parent);
	set_fact(FACT_ON, first_on | second_on << 1);
	if (first_on) {
		count = first_forks_at(&key);
		if (count)
			table_add(&count->n, first_step);
	}
	if (second_on) {
		count = second_forks_at(&key);
		if (count)
			table_add(&count->n, second_step);
	}
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(task_exit, struct task_struct *task)
{
	struct count_key key = {};
	struct count *count;

	owner_of_task(&key.owner, task);
	set_fact(FACT_EXIT, 1);
	count = exits_at(&key);
	if (count)
		table_add(&count->n, 1);
	return 0;
}

SEC("tp_btf/no_such_tracepoint")
int BPF_PROG(task_none)
{
	return 0;
}

struct bpf_iter_meta;

struct bpf_iter__bpf_map_elem {
	struct bpf_iter_meta *meta;
	void *map;
	void *key;
	void *value;
};

SEC("iter/bpf_map_elem")
int run_each(struct bpf_iter__bpf_map_elem *ctx)
{
	if (ctx->value)
		add_fact(FACT_EACH);
	return 0;
}

SEC("iter/bpf_map_elem")
int run_once(struct bpf_iter__bpf_map_elem *ctx)
{
	if (ctx->value)
		add_fact(FACT_ONCE);
	return 0;
}

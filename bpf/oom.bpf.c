/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processes that the OOM killer chooses, one event for each. Which limit was hit is in what its
 * function gets. Only one thread of the machine is in there at a time.
 */
#include "event.h"
#include "function.h"
#include "task/victim.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define NAME_BYTES 16

enum oom_constraint { CONSTRAINT_NONE };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
typedef struct {
	s64 counter;
} atomic_long_t;

struct percpu_counter {
	s64 count;
};

struct mm_rss_stat {
	atomic_long_t count[4];
};

struct mm_struct___oom {
	struct percpu_counter rss_stat[4];
};

struct mm_struct___6_1 {
	struct mm_rss_stat rss_stat;
};

struct page_counter {
	unsigned long max;
};

struct mem_cgroup {
	struct cgroup_subsys_state css;
	struct page_counter memory;
};

struct oom_control {
	struct mem_cgroup *memcg; /* NULL: not the limit of a cgroup */
	unsigned long totalpages;
	struct task_struct *chosen;
	enum oom_constraint constraint;
};

struct bpf_ringbuf {
	unsigned long consumer_pos; /* each is in a page of its own */
	unsigned long producer_pos;
};
#pragma clang attribute pop

#define PAGE_BYTES                                                                                 \
	(bpf_core_field_offset(struct bpf_ringbuf, producer_pos) -                                 \
	 bpf_core_field_offset(struct bpf_ringbuf, consumer_pos))

enum { PAGES_FILE, PAGES_ANONYMOUS, PAGES_SWAPPED, PAGES_SHARED }; /* MM_FILEPAGES and so on */

/* From the second on, in the order of the kernel's enum oom_constraint. */
enum oom_limit {
	OOM_LIMIT_NONE, /* it is not known */
	OOM_LIMIT_MACHINE,
	OOM_LIMIT_CPUSET,
	OOM_LIMIT_MEMORY_POLICY,
	OOM_LIMIT_CGROUP,
};

struct oom_event {
	val_boot_ns time;
	lbl_cgroup cgroup;
	u32 pid;
	char name[NAME_BYTES];
	enum oom_limit limit;
	u64 limit_bytes;
	lbl_cgroup_path limit_cgroup;
	u64 resident_bytes;
	u32 trigger;
	char trigger_name[NAME_BYTES];
	u32 unused;
};

EVENTS(ooms);
const struct oom_event *oom_event__unused; /* so that the compiler keeps the type */

/* Of the thread that was the last to call the OOM killer. */
u32 oom_thread;
u64 oom_control;

static __always_inline int oom_begin(u64 control)
{
	oom_thread = (u32)bpf_get_current_pid_tgid();
	oom_control = control;
	return 0;
}

SEC("fentry/out_of_memory")
int oom_begin__fentry(u64 *ctx)
{
	return oom_begin(ctx[0]);
}

SEC("kprobe.multi/out_of_memory")
int oom_begin__multi(struct pt_regs *ctx)
{
	return oom_begin(function_argument_1(ctx));
}

SEC("kprobe/out_of_memory")
int oom_begin__kprobe(struct pt_regs *ctx)
{
	return oom_begin(function_argument_1(ctx));
}

/* The path is known only if the limit is in the hierarchy of version 2. */
static __always_inline void limit_read(struct oom_event *event, struct oom_control *control)
{
	struct mem_cgroup *group = BPF_CORE_READ(control, memcg);
	struct cgroup *cgroup;

	event->limit = OOM_LIMIT_MACHINE + BPF_CORE_READ(control, constraint);
	event->limit_bytes = BPF_CORE_READ(control, totalpages) * PAGE_BYTES;
	if (!group || !bpf_core_field_exists(group->memory)) /* CONFIG_MEMCG */
		return;
	event->limit = OOM_LIMIT_CGROUP;
	event->limit_bytes = BPF_CORE_READ(group, memory.max) * PAGE_BYTES;
	cgroup = BPF_CORE_READ(group, css.cgroup);
	if (!BPF_CORE_READ(cgroup, root, hierarchy_id))
		event->limit_cgroup = BPF_CORE_READ(cgroup, kn, id);
}

/* CO-RE finds the element of an array only for an index that the compiler knows. */
#define PAGES(mm, kind)                                                                            \
	(bpf_core_type_exists(struct mm_rss_stat) ?                                                \
		 BPF_CORE_READ((struct mm_struct___6_1 *)mm, rss_stat.count[kind].counter) :       \
		 BPF_CORE_READ((struct mm_struct___oom *)mm, rss_stat[kind].count))

static __always_inline void victim_read(struct oom_event *event, struct task_struct *victim)
{
	struct mm_struct *mm = BPF_CORE_READ(victim, mm);
	s64 pages = PAGES(mm, PAGES_FILE) + PAGES(mm, PAGES_ANONYMOUS) + PAGES(mm, PAGES_SHARED);

	event->pid = (u32)BPF_CORE_READ(victim, tgid);
	event->cgroup = BPF_CORE_READ(victim, cgroups, dfl_cgrp, kn, id);
	event->resident_bytes = pages < 0 ? 0 : (u64)pages * PAGE_BYTES;
	BPF_CORE_READ_STR_INTO(&event->name, victim, comm);
}

/* If the kernel gives its id alone: the thread that asked for memory, or the one that is chosen. */
static __always_inline struct task_struct *victim_of(u32 thread, struct oom_control *control)
{
	struct task_struct *task = bpf_get_current_task_btf(), *chosen;

	if ((u32)task->pid == thread)
		return task;
	chosen = control ? BPF_CORE_READ(control, chosen) : NULL;
	return chosen && BPF_CORE_READ(chosen, pid) == thread ? chosen : NULL;
}

SEC("tp_btf/mark_victim")
int mark_victim(u64 *ctx)
{
	struct oom_event event = { .time = bpf_ktime_get_boot_ns() };
	u64 id = bpf_get_current_pid_tgid(), argument = 0;
	struct oom_control *control = (u32)id == oom_thread ? (void *)oom_control : NULL;
	struct task_struct *victim;

	if (!event_is_admitted(ooms))
		return 0;
	/* A plain load would make it an address of which no half may be taken. */
	bpf_probe_read_kernel(&argument, sizeof(argument), ctx);
	victim = victim_is_task() ? (void *)argument : victim_of((u32)argument, control);
	if (control)
		limit_read(&event, control);
	event.trigger = id >> 32;
	bpf_get_current_comm(event.trigger_name, sizeof(event.trigger_name));
	if (victim) {
		victim_read(&event, victim);
	} else {
		event.pid = (u32)argument;
		event.cgroup = event.limit_cgroup;
	}
	event_send(ooms, &event, sizeof(event));
	return 0;
}

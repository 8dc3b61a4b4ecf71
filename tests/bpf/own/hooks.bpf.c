/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs whose hooks the descriptor names; what each of them sees is counted by the name of the task. */
#include <linux/ptrace.h>

#include "table.h"

#include <bpf/usdt.bpf.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile bool off;
const volatile u64 kaddr_schedule;

enum hook { HOOK_CALL, HOOK_RETURN, HOOK_MARK, HOOK_CLASSIC, HOOK_RAW, HOOK_BTF, HOOK_FAULT,
	    HOOK_SWITCH, HOOK_TICK, HOOK_SEED, HOOK_PACKET, HOOK_ENTRY, HOOK_EXIT };

struct hook_key {
	enum hook hook;
	char name[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct hook_key);
	__type(value, u64);
} runs SEC(".maps");

static int count(enum hook hook)
{
	struct hook_key key = { .hook = hook };
	u64 *value, zero = 0;

	bpf_get_current_comm(key.name, sizeof(key.name));
	if (!__builtin_memcmp(key.name, "note", 4)) {
		bpf_map_update_elem(&runs, &key, &zero, BPF_NOEXIST);
		value = bpf_map_lookup_elem(&runs, &key);
		if (value)
			++*value;
	}
	return 0;
}

#define PROGRAM(section, name, hook)      \
	SEC(section) int name(void *unused) \
	{                                 \
		return count(hook);       \
	}

PROGRAM("uprobe", call, HOOK_CALL)
PROGRAM("uretprobe", function_return, HOOK_RETURN)
PROGRAM("usdt", mark, HOOK_MARK)
PROGRAM("kprobe", entry, HOOK_ENTRY)
PROGRAM("kretprobe", exit_, HOOK_EXIT)
PROGRAM("tp", classic, HOOK_CLASSIC)
PROGRAM("raw_tp", raw, HOOK_RAW)
PROGRAM("tp_btf", btf, HOOK_BTF)
PROGRAM("perf_event", fault, HOOK_FAULT)
PROGRAM("perf_event/type=1,config=3,period=1", switched, HOOK_SWITCH)
PROGRAM("perf_event", tick, HOOK_TICK)

/* Only the agent itself runs it. */
SEC("uprobe//proc/self/exe:post_attach_mark")
int seed(void *unused)
{
	struct hook_key key = { .hook = HOOK_SEED };
	u64 value = kaddr_schedule & 0xffffff;

	bpf_map_update_elem(&runs, &key, &value, BPF_ANY);
	return 0;
}

/* Whatever task was running. */
SEC("xdp")
int packet(void *unused)
{
	struct hook_key key = { .hook = HOOK_PACKET };
	u64 *value, zero = 0;

	bpf_map_update_elem(&runs, &key, &zero, BPF_NOEXIST);
	value = bpf_map_lookup_elem(&runs, &key);
	if (value)
		++*value;
	return XDP_PASS;
}

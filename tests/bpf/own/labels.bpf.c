/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Each run of a program called "labelled" counts once in each map, in turn with keys that have names and that have none. */
#include "label.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile u32 interface = 1;

#define MAP(name, key_type)                              \
	struct {                                         \
		__uint(type, BPF_MAP_TYPE_HASH);         \
		__uint(max_entries, 1024);               \
		__type(key, key_type);                   \
		__type(value, u64);                      \
	} name SEC(".maps")

struct plain_key {
	s32 error;
	u32 reason;
	u16 ether;
	bool is_ready;
	lbl_hex mac[5];
	u8 v4[4];
	u32 turn; /* other in each key: no attribute */
	u8 v6[16];
	lbl_dname name[16];
	lbl_cgroup_path cgroup;
	lbl_cgroup owner;
};

struct text_key {
	char text[16];
	s32 error;
};

struct stack_key {
	lbl_ksym frame[24];
};

struct device_key {
	lbl_pci_vendor vendor;
	lbl_pci_device device;
	u32 class;
	u32 subclass;
	lbl_dev disk;
};

MAP(plain, struct plain_key);
MAP(texts, struct text_key);
MAP(stacks, struct stack_key);
MAP(devices, struct device_key);
MAP(interfaces, u32);

static u32 turn;

static __always_inline void count(void *map, const void *key)
{
	u64 zero = 0, *value;

	bpf_map_update_elem(map, key, &zero, BPF_NOEXIST);
	value = bpf_map_lookup_elem(map, key);
	if (value)
		__sync_fetch_and_add(value, 1);
}

static __always_inline void count_plain(bool is_known, u64 cgroup)
{
	struct plain_key key = {
		.error = is_known ? -2 : -4000, .reason = is_known ? 1 : 99, .ether = is_known ? 0x86dd : 0x1234,
		.is_ready = is_known, .mac = { 2, 0, 0xab, 0, 1 }, .v4 = { 192, 0, 2, 1 }, .turn = turn,
		.cgroup = cgroup, .owner = cgroup,
	};

	if (is_known) {
		__builtin_memcpy(key.v6, "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\2\2", 16);
		__builtin_memcpy(key.name, "\3www\7Example\0\0\0\0", 16);
	} else {
		__builtin_memcpy(key.v6, "\x20\1\xd\xb8\0\0\0\0\0\0\0\0\0\0\0\1", 16);
		__builtin_memcpy(key.name, "\x3fno such name...", 16);
	}
	count(&plain, &key);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(process_exec)
{
	struct text_key text = { .error = 11 };
	struct stack_key stack = {};
	struct device_key device = { .vendor = 0x8086, .device = 0x80860fff, .class = 2, .subclass = 0x0200 };
	u32 index = interface;
	u64 name[2]; /* 16 characters */
	bool is_known;

	bpf_get_current_comm(name, sizeof(name));
	if (name[0] != 0x64656c6c6562616cull) /* "labelled" */
		return 0;
	turn++;
	is_known = turn % 2;
	count_plain(is_known, bpf_get_current_cgroup_id());
	if (is_known)
		__builtin_memcpy(text.text, "keep/7", 7);
	else
		__builtin_memcpy(text.text, "lose/7", 7);
	count(&texts, &text);
	if (bpf_get_stack(ctx, &stack, sizeof(stack), 0) > 0)
		count(&stacks, &stack);
	if (!is_known)
		device.vendor = device.device = device.class = device.subclass = device.disk = 0xfffffffe;
	count(&devices, &device);
	count(&interfaces, &index);
	return 0;
}

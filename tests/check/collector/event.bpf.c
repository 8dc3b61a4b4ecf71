/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "event.h"

struct kill {
	val_boot_ns time;
	lbl_cgroup cgroup;
	u32 signal;
	val_ns duration;
	lbl_words words[64];
};

struct timeless {
	u32 signal;
};

const struct kill *kill_type;
const struct timeless *timeless_type;

EVENTS(kills);
EVENTS(timeless_kills);
EVENTS(unknown_kills);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8);
	__type(key, u32);
	__type(value, u64);
} counts SEC(".maps");

SEC("tp_btf/signal_generate")
int signal_generate(void *ctx)
{
	struct kill kill = { .time = bpf_ktime_get_boot_ns() };

	if (event_is_admitted(kills))
		event_send(kills, &kill, sizeof(kill));
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

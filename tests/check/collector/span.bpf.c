/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "event.h"

struct call {
	val_boot_ns start;
	lbl_duration duration;
	lbl_trace_id trace;
	u64 half;
	u32 id;
	char text[8];
};

struct moment {
	val_boot_ns start;
	u64 other;
	lbl_parent_span_id parent;
};

const struct call *call_type;
const struct moment *moment_type;

EVENTS(calls);
EVENTS(moments);
EVENTS(other_moments);
EVENTS(both);

SEC("tp_btf/signal_generate")
int signal_generate(void *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

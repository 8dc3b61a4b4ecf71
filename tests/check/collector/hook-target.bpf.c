/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs that no machine could attach as they are. */
#include "kernel.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} calls SEC(".maps");

#define PROGRAM(section, name)              \
	SEC(section) int name(void *unused) \
	{                                   \
		return 2;                   \
	}

PROGRAM("kprobe", no_function)
PROGRAM("uprobe", no_file)
PROGRAM("uprobe/libc:", no_symbol)
PROGRAM("usdt/libc:setjmp", no_provider)
PROGRAM("tp/sched_switch", no_category)
PROGRAM("tp_btf", no_tracepoint)
PROGRAM("perf_event", no_event)
PROGRAM("perf_event/type=0,confic=1", no_number)
PROGRAM("perf_event/type=0,config=0x3,period=1000", numbers)
PROGRAM("perf_event", unknown_event)
PROGRAM("perf_event", raw_event)
PROGRAM("perf_event", cache_event)
PROGRAM("perf_event", twice)
PROGRAM("xdp", no_interface)
PROGRAM("xdp/lo", in_section)
PROGRAM("xdp", in_descriptor)
PROGRAM("uprobe", joined)
PROGRAM("xdp", all)
PROGRAM("uprobe", fixed)
PROGRAM("usdt", marked)

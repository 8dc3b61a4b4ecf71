/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* System calls that do not exist: CALL | kind << 8 | value. Each is told in a ring buffer and in a perf event array. */
#include "kernel.h"
#include "label.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define CALL 0x300000

enum kind { KIND_TOLD, KIND_SHORT, KIND_SILENT, KIND_N };

struct call {
	u32 value;
	u8 part;
	enum kind kind;
	u64 unused;	/* different each time */
	char text[8];
};

struct call *call_type; /* keeps the type */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} perf SEC(".maps");

SEC("tp_btf/sys_enter")
int BPF_PROG(enter, void *registers, long number)
{
	u32 kind = (number - CALL) >> 8;
	struct call call;

	if (number < CALL || kind >= KIND_N)
		return 0;
	__builtin_memset(&call, (int)bpf_ktime_get_ns(), sizeof(call)); /* what lies between the members differs too */
	call.value = number & 255;
	call.part = number & 1;
	call.kind = kind;
	call.unused = bpf_ktime_get_ns();
	__builtin_memcpy(call.text, "text", 5);
	__builtin_memset(call.text + 5, 0, 3);
	bpf_ringbuf_output(&ring, &call, kind == KIND_SHORT ? 16 : sizeof(call),
			   kind == KIND_SILENT ? BPF_RB_NO_WAKEUP : 0);
	bpf_perf_event_output(ctx, &perf, BPF_F_CURRENT_CPU, &call, sizeof(call));
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * System calls that do not exist: CALL + kind, with a span in their arguments. A CHILD has the id after its own as its
 * parent.
 */
#include <linux/ptrace.h>

#include "event.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define CALL 0x310000

enum kind { KIND_ROOT, KIND_CHILD, KIND_FAILED, KIND_N };

struct call {
	lbl_span_id id;
	lbl_parent_span_id parent;
	lbl_trace_id trace;
	val_boot_ns start;
	lbl_duration duration;
	lbl_cgroup cgroup;
	enum kind kind;
	lbl_errno error;
};

/* The same as an event of that trace, with its number halved. */
struct note {
	u64 start;
	u64 trace[2];
	u64 id;
	lbl_cgroup cgroup;
};

struct call *call_type; /* keeps the type */
struct note *note_type;

EVENTS(calls);
EVENTS(notes);

static __always_inline void put_id(u8 *to, u64 id)
{
	__builtin_memcpy(to, &id, sizeof(id));
}

SEC("tp_btf/sys_enter")
int BPF_PROG(enter, struct pt_regs *registers, long number)
{
	struct call call = { .kind = (u32)number - CALL };
	struct note note = { .cgroup = bpf_get_current_cgroup_id() };

	if (number < CALL || call.kind >= KIND_N)
		return 0;
	note.trace[0] = PT_REGS_PARM1_SYSCALL(registers);
	note.trace[1] = PT_REGS_PARM2_SYSCALL(registers);
	note.id = PT_REGS_PARM3_SYSCALL(registers);
	call.start = PT_REGS_PARM4_SYSCALL(registers);
	call.duration = PT_REGS_PARM5_SYSCALL(registers);
	call.cgroup = note.cgroup;
	call.error = call.kind == KIND_FAILED ? 2 : 0;
	__builtin_memcpy(call.trace, note.trace, sizeof(call.trace));
	put_id(call.id, note.id);
	if (call.kind == KIND_CHILD)
		put_id(call.parent, note.id + 1);
	event_send(calls, &call, sizeof(call));
	note.start = bpf_ktime_get_ns();
	event_send(notes, &note, sizeof(note));
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small program reads the kernel's count of reasons not to preempt, in the hook itself. It is 0
 * where the program can be preempted. But a kernel that never preempts does not count at all. So
 * the program also looks where every other kernel counts: at a switch of tasks. Tracepoints of
 * system calls changed later than the others, so each kind has its answer.
 *
 * A kernel does not tell if its count is not a variable (arm64; x86-64 in 6.2 to 6.14) or the
 * variable has no address for programs (CONFIG_KALLSYMS_ALL). Then its version decides.
 */
#include "collector/hook/preempt.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "collector/kernel/kernel.h"
#include "util/cleanup.h"

/* In C: if (!(*this_cpu_ptr(&__preempt_count) & 0xff)) seen = 1; */
static int load_probe(int variable, int map_fd)
{
	const struct bpf_insn code[] = {
		{ BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_BTF_ID, 0, variable }, { 0 },
		{ BPF_JMP | BPF_CALL, .imm = BPF_FUNC_this_cpu_ptr },
		{ BPF_LDX | BPF_W | BPF_MEM, BPF_REG_1, BPF_REG_0, 0, 0 },
		{ BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_1, 0, 0, 0xff },
		{ BPF_LD | BPF_DW | BPF_IMM, BPF_REG_2, BPF_PSEUDO_MAP_VALUE, 0, map_fd }, { 0 },
		{ BPF_JMP | BPF_JNE | BPF_K, BPF_REG_1, 0, 1, 0 },
		{ BPF_ST | BPF_W | BPF_MEM, BPF_REG_2, 0, 0, 1 },
		{ BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0 },
		{ BPF_JMP | BPF_EXIT },
	};

	return bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "preempt_probe", "GPL", code, ARRAY_SIZE(code), NULL);
}

/* System calls, of which one sends a datagram and one switches to another task. */
static void cause_events(void)
{
	const struct timespec moment = { .tv_nsec = 500000 };
	int ends[2];

	if (!socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends)) {
		(void)send(ends[0], "", 1, MSG_DONTWAIT);
		close(ends[0]);
		close(ends[1]);
	}
	nanosleep(&moment, NULL);
}

/*
 * 1 if the count was 0 at a tracepoint, else 0, or -errno. Each look has its own program and map: a
 * program that was preempted may end long after it has been detached, and would answer for the next
 * tracepoint.
 */
static int probe_tracepoint(int variable, const char *tracepoint)
{
	uint32_t only = 0, seen = 0;
	_cleanup_(closep) int map_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "preempt_seen", sizeof(only),
						      sizeof(seen), 1, NULL);
	_cleanup_(closep) int program_fd = map_fd < 0 ? map_fd : load_probe(variable, map_fd);
	int link_fd = program_fd < 0 ? program_fd : bpf_raw_tracepoint_open(tracepoint, program_fd);

	if (link_fd < 0)
		return link_fd;
	cause_events();
	close(link_fd);
	return bpf_map_lookup_elem(map_fd, &only, &seen) ?: (int)seen;
}

static const char *const tracepoints[] = { "sock_send_length", "sys_exit" };
/* programs there, and at those of the same kind */
static bool is_preemptible[ARRAY_SIZE(tracepoints)];

static void probe_kernel(void)
{
	struct btf *kernel = btf__load_vmlinux_btf();
	int variable = kernel ? btf__find_by_name_kind(kernel, "__preempt_count", BTF_KIND_VAR) : -errno;
	bool is_any = false;

	btf__free(kernel);
	for (size_t i = 0; i < ARRAY_SIZE(tracepoints); i++) {
		int seen = variable < 0 ? variable : probe_tracepoint(variable, tracepoints[i]);

		/* If it does not tell: hooks that cannot be preempted cost little more. */
		is_preemptible[i] = seen < 0 ? kernel_is_since(7, 0) : seen;
		is_any |= is_preemptible[i];
	}
	if (variable >= 0 && is_any && probe_tracepoint(variable, "sched_switch") == 1)
		memset(is_preemptible, false, sizeof(is_preemptible));
}

bool hook_is_preemptible(const char *section)
{
	const char *name = strrchr(section, '/');
	static bool is_asked;

	if (getenv("BPFPUSH_PRETEND_PREEMPTIBLE"))
		return true;
	if (!is_asked)
		probe_kernel();
	is_asked = true;
	return is_preemptible[name && (!strcmp(name, "/sys_exit") || !strcmp(name, "/sys_enter"))];
}

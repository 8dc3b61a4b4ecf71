/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Comes before the source of an example, which itself is not changed. Debian's libbpf 1.1 wants bpf_helpers.h before
 * bpf_core_read.h.
 */
#include <vmlinux.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* clang before 15 calls a function where later ones compare in place. */
#if __clang_major__ < 15
__attribute__((noinline, used)) static int memcmp(const char *left, const char *right, unsigned long size)
{
	for (unsigned long i = 0; i < size && i < 64; i++)
		if (left[i] != right[i])
			return 1;
	return 0;
}
#endif

/* Examples take the arguments of a kprobe with a macro that is not for kprobes: right on arm64, by chance. */
#ifdef KPROBE_ARGUMENTS
#undef BPF_PROG
#define BPF_PROG BPF_KPROBE
#endif

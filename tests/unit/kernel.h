/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What tests on the running kernel begin with. */

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KERNEL_SKIPPED 77 /* meson's exit status of a test that is skipped */

/* If the kernel does, says so. Any other failure ends the test as one. */
static inline bool kernel_refuses_programs(void)
{
	const struct bpf_insn insns[] = { { .code = 0xb7 }, { .code = 0x95 } }; /* return 0 */
	int fd = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "probe", "GPL", insns, 2, NULL);

	if (fd < 0 && fd != -EPERM && fd != -EACCES) {
		printf("bpf_prog_load() of a program that does nothing: %s\n", strerror(-fd));
		exit(EXIT_FAILURE);
	}
	if (fd < 0) {
		printf("skipped: needs the right to load BPF programs (root): %s\n", strerror(-fd));
		return true;
	}
	close(fd);
	return false;
}

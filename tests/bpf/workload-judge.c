/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ebpf_exporter's examples of uprobes and USDT count, to the last call:
 *
 *     workload-judge malloc CGROUP_PROCS N     N calls of malloc by a process that is in this cgroup
 *     workload-judge import N                  N passes of python:import__find__load__start, with a module's name
 */
#include "workload.h"

#include <stdint.h>

#define USDT_WITH_ARGUMENT(provider, name, argument)                                                          \
	asm volatile("990: nop\n"                                                                             \
		     ".pushsection .note.stapsdt, \"\", \"note\"\n"                                           \
		     ".balign 4\n .4byte 992f-991f, 994f-993f, 3\n"                                           \
		     "991: .asciz \"stapsdt\"\n"                                                              \
		     "992: .balign 4\n"                                                                       \
		     "993: .8byte 990b, _.stapsdt.base, 0\n"                                                  \
		     ".asciz \"" provider "\", \"" name "\", \"8@%0\"\n"                                      \
		     "994: .balign 4\n .popsection\n"                                                         \
		     ".ifndef _.stapsdt.base\n"                                                               \
		     ".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n"              \
		     ".weak _.stapsdt.base\n .hidden _.stapsdt.base\n"                                        \
		     "_.stapsdt.base: .space 1\n .size _.stapsdt.base, 1\n .popsection\n .endif\n" ::"r"(argument))

static void call_malloc(const char *procs, unsigned long n)
{
	int fd = workload_open_cgroup(procs);
	void *volatile memory; /* or the compiler leaves both calls out */

	workload_enter(fd);
	for (unsigned long i = 0; i < n; i++) {
		memory = malloc(1 + i % 100);
		free(memory);
	}
	_exit(0); /* exit() may allocate */
}

/* Its own function, so that the argument is in a register and the USDT is in the program once. */
__attribute__((noinline)) static void import(const char *module)
{
	USDT_WITH_ARGUMENT("python", "import__find__load__start", module);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "malloc"))
		call_malloc(argv[2], strtoul(argv[3], NULL, 10));
	workload_check(argc == 3 && !strcmp(argv[1], "import"));
	for (unsigned long i = strtoul(argv[2], NULL, 10); i > 0; i--)
		import(i % 3 ? "json" : "os.path");
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls a function, passes a USDT, touches pages, sleeps: each so many times as the argument says, while the task is
 * called "noted".
 */
#include "workload.h"

#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

/* A note as <sys/sdt.h> makes it, of a USDT without arguments. */
#define USDT(provider, name)                                                             \
	asm volatile("990: nop\n"                                                        \
		     ".pushsection .note.stapsdt, \"\", \"note\"\n"                      \
		     ".balign 4\n .4byte 992f-991f, 994f-993f, 3\n"                      \
		     "991: .asciz \"stapsdt\"\n"                                         \
		     "992: .balign 4\n"                                                  \
		     "993: .8byte 990b, _.stapsdt.base, 0\n"                             \
		     ".asciz \"" provider "\", \"" name "\", \"\"\n"                     \
		     "994: .balign 4\n .popsection\n"                                    \
		     ".ifndef _.stapsdt.base\n"                                          \
		     ".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n" \
		     ".weak _.stapsdt.base\n .hidden _.stapsdt.base\n"                   \
		     "_.stapsdt.base: .space 1\n .size _.stapsdt.base, 1\n .popsection\n .endif\n")

int noted_function(int number);
__attribute__((noinline)) int noted_function(int number)
{
	USDT("workload", "noted");
	return number + 1;
}

/* A function that the processor chooses. */
int __noted_choice_plain(void);
int __noted_choice_plain(void)
{
	return 1;
}

static int (*choose(void))(void)
{
	return __noted_choice_plain;
}

int noted_choice(void) __attribute__((ifunc("choose")));

int main(int argc, char **argv)
{
	size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;
	volatile uint8_t *pages = mmap(NULL, n * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct timespec nap = { .tv_nsec = 10000 };
	struct rusage before, after, first, last; /* inside and around the time in which it is "noted" */

	madvise((void *)pages, n * 4096, MADV_NOHUGEPAGE);
	getrusage(RUSAGE_THREAD, &after); /* no page of what follows is touched first then */
	nanosleep(&nap, NULL);
	getrusage(RUSAGE_THREAD, &first);
	prctl(PR_SET_NAME, "noted");
	getrusage(RUSAGE_THREAD, &before);
	for (size_t i = 0; i < n; i++) {
		noted_function((int)i);
		pages[i * 4096] = 1;
		nanosleep(&nap, NULL);
	}
	getrusage(RUSAGE_THREAD, &after);
	prctl(PR_SET_NAME, "done");
	getrusage(RUSAGE_THREAD, &last);
	printf("{\"calls\": %zu, \"faults\": %ld, \"switches\": %ld, \"switches_around\": %ld}\n", n,
	       after.ru_minflt + after.ru_majflt - before.ru_minflt - before.ru_majflt,
	       after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw,
	       last.ru_nvcsw + last.ru_nivcsw - first.ru_nvcsw - first.ru_nivcsw);
	return 0;
}

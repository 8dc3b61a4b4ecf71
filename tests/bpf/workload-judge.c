/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ebpf_exporter's examples of uprobes and USDT count, to the last call:
 *
 *     workload-judge malloc CGROUP_PROCS N     N calls of malloc by a process that is in this cgroup
 *     workload-judge import N                  N passes of python:import__find__load__start, with a module's name
 *
 * And work of which a trace is said first, as their demonstrations of spans do, by ebpf_exporter:NAME_set_parent_span:
 *
 *     workload-judge sleep HI LO ID N          sleeps N times, and says how often it was switched away meanwhile
 *     workload-judge talk HI LO ID N           sends N messages over a connection of its own, and says its cookie
 *     workload-judge spin HI LO ID CGROUP_PROCS MS  busy in this cgroup for that long
 */
#include "workload.h"

#include <inttypes.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

#ifndef SO_COOKIE
#define SO_COOKIE 57 /* asm-generic/socket.h */
#endif

#define USDT(provider, name, arguments, ...)                                                                  \
	asm volatile("990: nop\n"                                                                             \
		     ".pushsection .note.stapsdt, \"\", \"note\"\n"                                           \
		     ".balign 4\n .4byte 992f-991f, 994f-993f, 3\n"                                           \
		     "991: .asciz \"stapsdt\"\n"                                                              \
		     "992: .balign 4\n"                                                                       \
		     "993: .8byte 990b, _.stapsdt.base, 0\n"                                                  \
		     ".asciz \"" provider "\", \"" name "\", \"" arguments "\"\n"                                 \
		     "994: .balign 4\n .popsection\n"                                                         \
		     ".ifndef _.stapsdt.base\n"                                                               \
		     ".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n"              \
		     ".weak _.stapsdt.base\n .hidden _.stapsdt.base\n"                                        \
		     "_.stapsdt.base: .space 1\n .size _.stapsdt.base, 1\n .popsection\n .endif\n" ::__VA_ARGS__)

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
	USDT("python", "import__find__load__start", "8@%0", "r"(module));
}

struct trace {
	uint64_t high, low, parent;
};

#define SAY_PARENT(name, trace)                                                                               \
	USDT("ebpf_exporter", name, "8@%0 8@%1 8@%2", "r"((trace)->high), "r"((trace)->low), "r"((trace)->parent))

__attribute__((noinline)) static void say_sched_parent(const struct trace *trace)
{
	SAY_PARENT("sched_set_parent_span", trace);
}

__attribute__((noinline)) static void clear_sched_parent(void)
{
	USDT("ebpf_exporter", "sched_clear_parent_span", "", "r"(0ul));
}

__attribute__((noinline)) static void say_cfs_parent(const struct trace *trace)
{
	SAY_PARENT("cfs_set_parent_span", trace);
}

__attribute__((noinline)) static void clear_cfs_parent(void)
{
	USDT("ebpf_exporter", "cfs_clear_parent_span", "", "r"(0ul));
}

__attribute__((noinline)) static void say_socket_parent(uint64_t cookie, const struct trace *trace)
{
	USDT("ebpf_exporter", "sock_set_parent_span", "8@%0 8@%1 8@%2 8@%3", "r"(cookie), "r"(trace->high), "r"(trace->low),
	     "r"(trace->parent));
}

static struct rusage usage(void)
{
	struct rusage usage;

	workload_check(!getrusage(RUSAGE_SELF, &usage));
	return usage;
}

static void sleep_often(const struct trace *trace, unsigned long n)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	struct rusage outer = usage(), begin, end, last;

	say_sched_parent(trace);
	begin = usage();
	while (n--)
		nanosleep(&moment, NULL);
	end = usage();
	clear_sched_parent();
	last = usage();
	printf("{\"pid\": %d, \"inner\": [%ld, %ld], \"outer\": [%ld, %ld]}\n", getpid(), end.ru_nvcsw - begin.ru_nvcsw,
	       end.ru_nivcsw - begin.ru_nivcsw, last.ru_nvcsw - outer.ru_nvcsw, last.ru_nivcsw - outer.ru_nivcsw);
}

static void talk(const struct trace *trace, unsigned long n)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), from = socket(AF_INET, SOCK_STREAM, 0), to, one = 1;
	socklen_t size = sizeof(address), cookie_size = sizeof(uint64_t);
	uint64_t cookie;
	char byte = 'x';

	workload_check(!bind(listener, (struct sockaddr *)&address, size) && !listen(listener, 1));
	workload_check(!getsockname(listener, (struct sockaddr *)&address, &size));
	workload_check(!connect(from, (struct sockaddr *)&address, size));
	to = accept(listener, NULL, NULL);
	workload_check(to >= 0 && !setsockopt(from, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)));
	workload_check(!getsockopt(from, SOL_SOCKET, SO_COOKIE, &cookie, &cookie_size));
	say_socket_parent(cookie, trace);
	while (n--)
		workload_check(write(from, &byte, 1) == 1 && read(to, &byte, 1) == 1);
	close(from);
	close(to);
	printf("{\"cookie\": %" PRIu64 "}\n", cookie);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void spin(const struct trace *trace, const char *procs, unsigned long ms)
{
	int fd = workload_open_cgroup(procs);
	uint64_t end;

	workload_enter(fd);
	say_cfs_parent(trace);
	end = now_ms() + ms;
	while (now_ms() < end)
		;
	clear_cfs_parent();
	printf("{}\n");
}

static int work_in_trace(int argc, char **argv)
{
	struct trace trace = { strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10) };

	if (!strcmp(argv[1], "sleep"))
		sleep_often(&trace, strtoul(argv[5], NULL, 10));
	else if (!strcmp(argv[1], "talk"))
		talk(&trace, strtoul(argv[5], NULL, 10));
	else if (argc == 7 && !strcmp(argv[1], "spin"))
		spin(&trace, argv[5], strtoul(argv[6], NULL, 10));
	else
		return 1;
	return 0;
}

int main(int argc, char **argv)
{
	if (argc >= 6)
		return work_in_trace(argc, argv);
	if (argc == 4 && !strcmp(argv[1], "malloc"))
		call_malloc(argv[2], strtoul(argv[3], NULL, 10));
	workload_check(argc == 3 && !strcmp(argv[1], "import"));
	for (unsigned long i = strtoul(argv[2], NULL, 10); i > 0; i--)
		import(i % 3 ? "json" : "os.path");
	return 0;
}

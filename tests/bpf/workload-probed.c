/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probed PROCS N threads: N threads are in a function, first one after the other, then at one time. probed PROCS N
 * end: N threads end in it, one after the other, and another returns. probed PROCS N exec: it is left N times by exec,
 * by the first thread and by others. probed [PROCS] N: calls functions and passes a USDT that probes look at, in that
 * cgroup. Times are bounds: a call's own measure (inner) and its caller's (outer).
 */
#include "workload.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#define DEPTH 5
#define JUMPS 3
#define ESCAPES 20

#if defined(__x86_64__)
#define OPERAND "-4@%k[value]"
#else
#define OPERAND "-4@%[value]"
#endif

/* A note as <sys/sdt.h> makes it. */
#define USDT(provider, name, semaphore, operands, ...)                                                   \
	asm volatile("990: nop\n"                                                                        \
		     ".pushsection .note.stapsdt, \"\", \"note\"\n"                                      \
		     ".balign 4\n .4byte 992f-991f, 994f-993f, 3\n"                                      \
		     "991: .asciz \"stapsdt\"\n"                                                         \
		     "992: .balign 4\n"                                                                  \
		     "993: .8byte 990b, _.stapsdt.base, " semaphore "\n"                                 \
		     ".asciz \"" provider "\", \"" name "\", \"" operands "\"\n"                         \
		     "994: .balign 4\n .popsection\n"                                                    \
		     ".ifndef _.stapsdt.base\n"                                                          \
		     ".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n"         \
		     ".weak _.stapsdt.base\n .hidden _.stapsdt.base\n"                                   \
		     "_.stapsdt.base: .space 1\n .size _.stapsdt.base, 1\n .popsection\n .endif\n"       \
		     : : __VA_ARGS__)

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static uint64_t inner_ns, outer_ns, naps, nap_least_ns, nap_most_ns;

static void nap(unsigned int us)
{
	uint64_t before = now_ns();

	usleep(us);
	naps++;
	nap_least_ns += us * 1000;
	nap_most_ns += now_ns() - before;
}

int probed_error(int number);
__attribute__((noipa)) int probed_error(int number)
{
	return number % 4 ? number : -ENOENT;
}

void probed_large(uint64_t number);
__attribute__((noipa)) void probed_large(uint64_t number)
{
	asm volatile("" : : "r"(number));
}

long probed_call(int number, const char *name);
__attribute__((noipa)) long probed_call(int number, const char *name)
{
	USDT("workload", "probed", "0", OPERAND, [value] "r"(number));
	return number % 4 ? number : -ENOENT;
}

/* Above 0 while a probe is attached to the USDT that it guards. */
extern volatile unsigned short probed_semaphore;
volatile unsigned short probed_semaphore __attribute__((section(".probes"), visibility("hidden")));
extern int probed_table[4];
int probed_table[4] = { -50, -39, -28, -17 };

static uint64_t guarded;

/* One USDT in two places with operands of different forms; the last one is a floating-point number. */
static void pass_forms(int number)
{
#if defined(__x86_64__)
	USDT("workload", "forms", "0", "-4@(%%rdi,%%rsi,4) 8@%%rsi 8f@%%xmm0", "D"(probed_table), "S"(number % 4L));
	USDT("workload", "forms", "0", "-4@4+probed_table(%%rip) 8@$7 8@%%rdi", "D"(probed_table));
	if (!probed_semaphore)
		return;
	guarded++;
	USDT("workload", "guarded", "probed_semaphore", "-4@%%edi", "D"(number));
#endif
}

/* A text, or none. */
const char *probed_name(int number);
__attribute__((noipa)) const char *probed_name(int number)
{
	static const char *const texts[] = { "a long name", "short", "s" };

	return number % 4 ? texts[number % 3] : NULL;
}

void probed_typed(const uint8_t *ipv6, uint32_t ipv4, uint16_t port, uint32_t device, int state, int error);
__attribute__((noipa)) void probed_typed(const uint8_t *ipv6, uint32_t ipv4, uint16_t port, uint32_t device, int state,
					 int error)
{
	asm volatile("" : : "r"(ipv6), "r"(ipv4), "r"(port), "r"(device), "r"(state), "r"(error));
}

static void call_typed(int i)
{
	uint8_t ipv6[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = (uint8_t)(i % 3) };

	workload_check(!probed_name(i) == !(i % 4));
	probed_typed(ipv6, htonl(0xc0000200 + (uint32_t)i % 5), htons((uint16_t)(8080 + i % 2)), 7u << 20,
		     i % 6 ? i % 3 + 1 : 99, i % 4 ? i : -ENOENT);
}

void probed_nest(int depth);
__attribute__((noipa)) void probed_nest(int depth)
{
	uint64_t begin = now_ns(), before;

	if (depth) {
		before = now_ns();
		probed_nest(depth - 1);
		outer_ns += now_ns() - before;
	} else {
		nap(1000);
	}
	inner_ns += now_ns() - begin;
}

static jmp_buf back;

/* The inner call does not return, and neither do those between. */
void probed_jump(int depth);
__attribute__((noipa)) void probed_jump(int depth)
{
	if (depth == DEPTH) {
		if (!setjmp(back))
			probed_jump(depth - 1);
		nap(20000);
	} else if (depth) {
		probed_jump(depth - 1);
		asm volatile("");
	} else {
		longjmp(back, 1);
	}
}

static pthread_barrier_t all, alone, called;

void probed_wait(pthread_barrier_t *barrier);
__attribute__((noipa)) void probed_wait(pthread_barrier_t *barrier)
{
	if (!barrier)
		syscall(SYS_exit, 0); /* of the thread, without a way back through its calls */
	pthread_barrier_wait(barrier);
}

static void *end(void *unused)
{
	probed_wait(NULL);
	return NULL;
}

static int run_ends(int n)
{
	pthread_t thread;

	for (int i = 0; i < n; i++) {
		workload_check(!pthread_create(&thread, NULL, end, NULL));
		pthread_join(thread, NULL);
	}
	pthread_barrier_init(&alone, NULL, 1);
	probed_wait(&alone);
	return 0;
}

static void *call_twice(void *unused)
{
	probed_wait(&alone);
	pthread_barrier_wait(&called);
	probed_wait(&all);
	return NULL;
}

static int run_threads(int n)
{
	pthread_t *threads = calloc((size_t)n, sizeof(*threads));
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 32768);
	pthread_barrier_init(&alone, NULL, 1);
	pthread_barrier_init(&called, NULL, (unsigned int)n);
	pthread_barrier_init(&all, NULL, (unsigned int)n);
	for (int i = 0; i < n; i++)
		workload_check(!pthread_create(&threads[i], &small, call_twice, NULL));
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	return 0;
}

int probed_exec(char **argv, int left);
__attribute__((noipa)) int probed_exec(char **argv, int left)
{
	static char number[16];

	snprintf(number, sizeof(number), "%d", left - 1);
	argv[2] = number;
	if (left)
		execv("/proc/self/exe", argv);
	return left ? -ENOENT : 0; /* an int, whose upper half is 0 */
}

static void *exec_in_thread(void *argv)
{
	probed_exec(argv, (int)strtol(((char **)argv)[2], NULL, 10));
	return NULL;
}

static int run_exec(char **argv, int left)
{
	pthread_t thread;

	if (left % 2 == 0)
		return probed_exec(argv, left);
	workload_check(!pthread_create(&thread, NULL, exec_in_thread, argv));
	pthread_join(thread, NULL);
	return 1;
}

int main(int argc, char **argv)
{
	int procs = workload_open_cgroup(argv[1]), n = (int)strtol(argv[2], NULL, 10);
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC), full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	static const char *const names[] = { "first", "second", "third" };
	uint64_t before;

	if (argc == 4) {
		workload_enter(procs);
		switch (argv[3][1]) {
		case 'h':
			return run_threads(n);
		case 'n':
			return run_ends(n);
		default:
			return run_exec(argv, n);
		}
	}
	workload_check(argc == 3);
	prctl(PR_SET_NAME, "probed");
	workload_enter(procs);
	for (int i = 0; i < n; i++) {
		workload_check(probed_call(i, names[i % 3]) == (i % 4 ? i : -ENOENT));
		workload_check(probed_error(i) == (i % 4 ? i : -ENOENT));
		call_typed(i);
		pass_forms(i);
		probed_large(i % 4 ? (uint64_t)i : -(uint64_t)i - 1);
		workload_check(rename("", "") == -1);
		workload_check(lseek(-1, i % 5, SEEK_SET) < 0);
		workload_check(write(null, names, (size_t)(i % 7)) == i % 7);
		workload_check(write(full, names, 1) < 0);
	}
	before = now_ns();
	probed_nest(DEPTH);
	outer_ns += now_ns() - before;
	for (volatile int i = 0; i < ESCAPES; i++)
		if (!setjmp(back))
			probed_jump(0);
	for (int i = 0; i < JUMPS; i++)
		probed_jump(DEPTH);
	printf("{\"naps\": %llu, \"nap_least_ns\": %llu, \"nap_most_ns\": %llu}\n", (unsigned long long)naps,
	       (unsigned long long)nap_least_ns, (unsigned long long)nap_most_ns);
	printf("{\"inner_ns\": %llu, \"outer_ns\": %llu, \"nested\": %d, \"jumps\": %d, \"lost\": %d, \"guarded\": %llu}\n",
	       (unsigned long long)inner_ns, (unsigned long long)outer_ns, DEPTH + 1, JUMPS, ESCAPES + JUMPS * DEPTH,
	       (unsigned long long)guarded);
	return 0;
}

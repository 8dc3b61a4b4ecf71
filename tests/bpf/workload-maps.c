/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload-maps CGROUP.PROCS: one process on each CPU in that cgroup, which changes a BPF map of its own again and
 * again until stdin ends. Meanwhile the kernel runs no program at a classic tracepoint or kprobe on that CPU. Printed
 * is {"calls": how many calls they made}; an empty line before it says that they have begun.
 *
 * In such a call a task cannot leave its CPU. Linux 6.12 takes a CPU away when its tasks have left it, and moves a task
 * when it switches to it outside of such a call. A task that never gives its CPU away would keep it for ever.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "workload.h"

enum { ENOUGH = 256, YIELD_EVERY = 256 };

static struct shared {
	volatile bool is_over;
	uint64_t made[ENOUGH];
} *shared;

static int bpf(int command, union bpf_attr *attr, uint64_t *made)
{
	int result = syscall(SYS_bpf, command, attr, sizeof(*attr));

	workload_check(result >= 0);
	++*made;
	return result;
}

static void change(int procs, int cpu, uint64_t *made)
{
	union bpf_attr map = { .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4096, .max_entries = 1 };
	static uint32_t key, value[1024];
	union bpf_attr change = { .key = (uintptr_t)&key, .value = (uintptr_t)value };
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	workload_check(!sched_setaffinity(0, sizeof(one), &one) || errno == EINVAL); /* EINVAL: the CPU has just gone */
	workload_enter(procs);
	change.map_fd = bpf(BPF_MAP_CREATE, &map, made);
	while (!shared->is_over) {
		bpf(BPF_MAP_UPDATE_ELEM, &change, made);
		if (*made % YIELD_EVERY == 0) {
			sched_yield();
			++*made;
		}
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	int n = sysconf(_SC_NPROCESSORS_ONLN), procs, status;
	uint64_t sum = 0;
	char end;

	workload_check(argc == 2 && n <= ENOUGH);
	procs = workload_open_cgroup(argv[1]);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	workload_check(shared != MAP_FAILED);
	for (int cpu = 0; cpu < n; cpu++) {
		pid_t pid = fork();

		workload_check(pid >= 0);
		if (!pid)
			change(procs, cpu, &shared->made[cpu]);
	}
	for (int cpu = 0; cpu < n; cpu++)
		while (!*(volatile uint64_t *)&shared->made[cpu])
			usleep(1000);
	workload_check(write(STDOUT_FILENO, "\n", 1) == 1);
	while (read(STDIN_FILENO, &end, 1) > 0)
		;
	shared->is_over = true;
	for (int cpu = 0; cpu < n; cpu++)
		workload_check(wait(&status) > 0 && !status);
	for (int cpu = 0; cpu < n; cpu++)
		sum += shared->made[cpu];
	printf("{\"calls\": %llu}\n", (unsigned long long)sum);
	return 0;
}

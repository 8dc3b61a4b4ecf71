/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs children in a cgroup, and prints what /proc says of them once they are dead and before they
 * are reaped, when no number can change any more:
 *
 *     workload-sched CGROUP_DIRECTORY short N       N children that exit at once, one after another
 *     workload-sched CGROUP_DIRECTORY sleep N       one that sleeps N times
 *     workload-sched CGROUP_DIRECTORY contend N     N that compete for one CPU until each has had 100 ms of it
 *     workload-sched CGROUP_DIRECTORY pingpong N    one that moves itself between two CPUs N times
 *     workload-sched CGROUP_DIRECTORY crowd N       N that compete for two CPUs until each has had 100 ms of
 *                                                   them, and are moved from one to the other while they wait
 */
#include "workload.h"

#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct figures {
	uint64_t voluntary, involuntary, migrations;
	uint64_t cpu_ns, run_delay_ns, arrivals;
	uint64_t rusage_cpu_us, rusage_voluntary, rusage_involuntary;
};

static int cgroup_fd;

static void pin(pid_t pid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(pid, sizeof(set), &set) < 0)
		err(1, "sched_setaffinity %d", cpu);
}

/* By its own clock: those who share a CPU also share it if it is taken away for a while. */
static void spin_100_ms(void)
{
	struct timespec used;

	do {
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	} while (!used.tv_sec && used.tv_nsec < 100000000);
}

static void do_short(int n)
{
}

static void do_sleep(int n)
{
	for (int i = 0; i < n; i++)
		usleep(200);
}

static void do_contend(int n)
{
	pin(0, 0);
	spin_100_ms();
}

static void do_crowd(int n)
{
	spin_100_ms();
}

static void do_pingpong(int n)
{
	for (int i = 0; i < n; i++)
		pin(0, i & 1);
}

static const struct mode {
	const char *name;
	void (*child)(int n);
	enum { ONE, ONE_AFTER_ANOTHER, ALL_AT_ONCE, ALL_MOVED } children;
} modes[] = {
	{ "short", do_short, ONE_AFTER_ANOTHER }, { "sleep", do_sleep, ONE },
	{ "contend", do_contend, ALL_AT_ONCE },	  { "pingpong", do_pingpong, ONE },
	{ "crowd", do_crowd, ALL_MOVED },
};

/* Born in the cgroup, so that nothing of it belongs elsewhere. */
static pid_t spawn(const struct mode *mode, int n)
{
	struct clone_args args = {
		.flags = CLONE_INTO_CGROUP,
		.exit_signal = SIGCHLD,
		.cgroup = cgroup_fd,
	};
	pid_t pid = syscall(SYS_clone3, &args, sizeof(args));

	if (pid < 0)
		err(1, "clone3");
	if (pid == 0) {
		mode->child(n);
		_exit(0);
	}
	return pid;
}

static uint64_t field(pid_t pid, const char *file, const char *name)
{
	FILE *stream = workload_open_proc(pid, file);
	uint64_t value = 0;
	char line[256];

	while (fgets(line, sizeof(line), stream))
		if (!strncmp(line, name, strlen(name)))
			sscanf(line + strlen(name), "%*[ \t:]%" SCNu64, &value);
	fclose(stream);
	return value;
}

static void schedstat(pid_t pid, uint64_t ret_value[3])
{
	FILE *stream = workload_open_proc(pid, "schedstat");

	workload_check(fscanf(stream, "%" SCNu64 "%" SCNu64 "%" SCNu64, &ret_value[0], &ret_value[1], &ret_value[2]) == 3);
	fclose(stream);
}

static void wait_for_death(pid_t pid)
{
	siginfo_t info;

	if (waitid(P_PID, pid, &info, WEXITED | WNOWAIT) < 0)
		err(1, "waitid");
}

static void reap(pid_t pid, struct figures *total)
{
	struct rusage usage;
	uint64_t value[3];

	workload_wait_last_switch(pid);
	schedstat(pid, value);
	total->cpu_ns += value[0];
	total->run_delay_ns += value[1];
	total->arrivals += value[2];
	total->voluntary += field(pid, "status", "voluntary_ctxt_switches");
	total->involuntary += field(pid, "status", "nonvoluntary_ctxt_switches");
	total->migrations += field(pid, "sched", "se.nr_migrations");
	if (wait4(pid, NULL, 0, &usage) != pid)
		err(1, "wait4");
	total->rusage_cpu_us += (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
				usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
	total->rusage_voluntary += usage.ru_nvcsw;
	total->rusage_involuntary += usage.ru_nivcsw;
}

static void move_about(const pid_t *pids, int n)
{
	for (int i = 0; i < 200; i++) {
		pin(pids[i % n], i / n & 1);
		usleep(1000);
	}
}

static void run(const struct mode *mode, int n, struct figures *total)
{
	int n_children = mode->children == ONE ? 1 : n;
	pid_t pids[1024];

	if (n_children > 1024)
		errx(1, "at most 1024 children");
	for (int i = 0; i < n_children; i++) {
		pids[i] = spawn(mode, n);
		if (mode->children == ONE_AFTER_ANOTHER)
			wait_for_death(pids[i]);
	}
	if (mode->children == ALL_MOVED)
		move_about(pids, n_children);
	for (int i = 0; i < n_children; i++)
		wait_for_death(pids[i]);
	for (int i = 0; i < n_children; i++)
		reap(pids[i], total);
}

static void print(const struct figures *f)
{
	printf("{\"voluntary\": %" PRIu64 ", \"involuntary\": %" PRIu64 ", \"migrations\": %" PRIu64
	       ", \"cpu_ns\": %" PRIu64 ", \"run_delay_ns\": %" PRIu64 ", \"arrivals\": %" PRIu64
	       ", \"rusage_cpu_us\": %" PRIu64 ", \"rusage_voluntary\": %" PRIu64
	       ", \"rusage_involuntary\": %" PRIu64 "}\n",
	       f->voluntary, f->involuntary, f->migrations, f->cpu_ns, f->run_delay_ns, f->arrivals,
	       f->rusage_cpu_us, f->rusage_voluntary, f->rusage_involuntary);
}

int main(int argc, char **argv)
{
	struct figures total = {};

	if (argc != 4)
		errx(1, "usage: workload-sched CGROUP_DIRECTORY MODE N");
	cgroup_fd = open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (cgroup_fd < 0)
		err(1, "%s", argv[1]);
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!strcmp(argv[2], modes[i].name)) {
			run(&modes[i], strtol(argv[3], NULL, 10), &total);
			print(&total);
			return 0;
		}
	errx(1, "%s: no such workload", argv[2]);
}

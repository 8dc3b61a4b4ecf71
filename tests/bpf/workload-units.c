/* SPDX-License-Identifier: Apache-2.0 */
/*
 * units live PARENT N: N units in the cgroup directory PARENT, all alive at the same time. The one process of each
 * makes counted calls of 44 kinds on every CPU in turn, writes and reads a file and opens one TCP connection.
 * For each line of stdin they make the calls again, and they end when stdin ends.
 *
 * units churn PARENT N PER_SECOND [BATCH]: N units one after the other. Each lives for the few calls of its process.
 * After each batch of so many, an empty line is printed and a line of stdin is waited for.
 *
 * units spawn PARENT N PER_SECOND: the same with all processes in the one cgroup PARENT, and next to them
 * LONG_LIVED ones which go on calling until the end.
 *
 * Children are cloned straight into their cgroup (Linux 5.7), and make no call that is counted but their own. Every
 * process counts what it does in shared memory. Printed are {"call": [count of each unit or process]}.
 */
#include "workload.h"

#include <linux/capability.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

enum { LONG_LIVED = 5, CHURN_CALLS = 2, PATH_SIZE = 512, BLOCK = 4096 };

/* All have either no effect or one on the process alone; those of a wrong file or process fail. */
static const struct call {
	const char *name;
	long number;
	long arguments[5];
} calls[] = {
#define CALL(NAME, ...) { #NAME, SYS_##NAME, { __VA_ARGS__ } }
	CALL(timer_getoverrun, -1), /* the first CHURN_CALLS: what no other program makes */
	CALL(ioprio_get, 1),
	CALL(getppid),
	CALL(getuid),
	CALL(getgid),
	CALL(geteuid),
	CALL(getegid),
	CALL(gettid),
	CALL(getpgid),
	CALL(getsid),
	CALL(getgroups),
	CALL(getpriority),
	CALL(sched_getscheduler),
	CALL(sched_get_priority_max),
	CALL(sched_get_priority_min),
	CALL(umask, 022),
	CALL(personality, 0xffffffff),
	CALL(mincore),
	CALL(madvise),
	CALL(msync),
	CALL(munlock),
	CALL(mremap, 1, BLOCK, BLOCK),
	CALL(prctl, 3),
	CALL(sigaltstack),
	CALL(clock_getres),
	CALL(timer_delete, -1),
	CALL(dup, -1),
	CALL(lseek, -1),
	CALL(flock, -1),
	CALL(fchdir, -1),
	CALL(ftruncate, -1),
	CALL(fallocate, -1),
	CALL(fchmod, -1),
	CALL(fchown, -1),
	CALL(getdents64, -1),
	CALL(fstatfs, -1),
	CALL(syncfs, -1),
	CALL(inotify_rm_watch, -1),
	CALL(epoll_ctl, -1),
	CALL(timerfd_gettime, -1),
	CALL(listen, -1),
	CALL(shutdown, -1),
	CALL(getcpu),
	CALL(membarrier),
};

enum { N_CALLS = sizeof(calls) / sizeof(*calls), WRITTEN = N_CALLS, READ, SENT, PID, N_FIGURES };

_Static_assert(N_CALLS == 44, "as the tests say");

/* Shared with the children. */
static uint64_t (*figures)[N_FIGURES];
static volatile uint32_t *n_done, *n_lines, *is_over;

static struct sockaddr_in receiver = { .sin_family = AF_INET };

static pid_t spawn(int cgroup)
{
	struct clone_args args = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = cgroup };
	pid_t pid = syscall(SYS_clone3, &args, sizeof(args));

	workload_check(pid >= 0);
	return pid;
}

static void call(uint64_t *mine, int i, int times)
{
	const long *a = calls[i].arguments;

	for (int j = 0; j < times; j++) {
		syscall(calls[i].number, a[0], a[1], a[2], a[3], a[4]);
		mine[i]++;
	}
}

/* Each pair of unit and call has a number of its own, so that no two can be taken for one another. */
static void call_on_each_cpu(uint64_t *mine, int unit, const cpu_set_t *allowed)
{
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		cpu_set_t one;

		if (!CPU_ISSET(cpu, allowed))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		workload_check(!sched_setaffinity(0, sizeof(one), &one));
		for (int i = 0; i < N_CALLS; i++)
			call(mine, i, 1 + (unit * 7 + i * 3 + cpu) % 11);
	}
}

static void use_file(uint64_t *mine, const char *path)
{
	static char block[BLOCK];
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	workload_check(fd >= 0 && !unlink(path));
	mine[WRITTEN] += pwrite(fd, block, sizeof(block), 0);
	mine[READ] += pread(fd, block, sizeof(block) / 2, 0);
	close(fd);
}

static void use_network(uint64_t *mine, int unit)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char text[100] = "";

	workload_check(fd >= 0 && !connect(fd, (struct sockaddr *)&receiver, sizeof(receiver)));
	mine[SENT] += send(fd, text, 1 + unit % 90, 0);
	close(fd);
}

static void pause_us(long us)
{
	nanosleep(&(struct timespec){ us / 1000000, us % 1000000 * 1000 }, NULL);
}

static void *take_connections(void *listener)
{
	for (;;) {
		char text[100];
		int fd = accept(*(int *)listener, NULL, NULL);

		workload_check(fd >= 0);
		while (read(fd, text, sizeof(text)) > 0)
			;
		close(fd);
	}
	return NULL;
}

static void receive(void)
{
	static int listener;
	socklen_t size = sizeof(receiver);
	pthread_t thread;

	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	receiver.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	workload_check(listener >= 0 && !bind(listener, (struct sockaddr *)&receiver, size) && !listen(listener, 4096));
	workload_check(!getsockname(listener, (struct sockaddr *)&receiver, &size));
	workload_check(!pthread_create(&thread, NULL, take_connections, &listener));
}

static void *share(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	workload_check(memory != MAP_FAILED);
	return memory;
}

/* Named after the parent, so that no two workloads have a name in common. */
static void path_of(char *path, const char *parent, int unit)
{
	snprintf(path, PATH_SIZE, "%s/%s-%05d.service", parent, strrchr(parent, '/') + 1, unit);
}

static int open_directory(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	workload_check(fd >= 0);
	return fd;
}

static int make_unit(const char *parent, int unit)
{
	char path[PATH_SIZE];

	path_of(path, parent, unit);
	workload_check(!mkdir(path, 0755));
	return open_directory(path);
}

/* A process that has been waited for may still be on its way out of the cgroup. */
static void remove_unit(const char *parent, int unit)
{
	char path[PATH_SIZE];

	path_of(path, parent, unit);
	while (rmdir(path)) {
		workload_check(errno == EBUSY);
		pause_us(50);
	}
}

static void reap(pid_t pid)
{
	int status;

	workload_check(waitpid(pid, &status, 0) > 0 && !status);
}

static void print_figure(const char *name, int figure, int n)
{
	printf("\"%s\": [", name);
	for (int i = 0; i < n; i++)
		printf("%s%llu", i ? ", " : "", (unsigned long long)figures[i][figure]);
	printf("]%s", figure == N_FIGURES - 1 ? "}\n" : ", ");
}

static void print_figures(int n)
{
	static const char *const others[] = { "written", "read", "sent", "pid" };

	printf("{");
	for (int i = 0; i < N_FIGURES; i++)
		print_figure(i < N_CALLS ? calls[i].name : others[i - N_CALLS], i, n);
	fflush(stdout);
}

static void live(const char *parent, int unit, const cpu_set_t *allowed)
{
	uint32_t n_seen = 0;
	char path[PATH_SIZE];

	snprintf(path, sizeof(path), "/var/tmp/bpfpush-units-%d", getpid());
	call_on_each_cpu(figures[unit], unit, allowed);
	use_file(figures[unit], path);
	use_network(figures[unit], unit);
	__sync_fetch_and_add(n_done, 1);
	while (!*is_over) {
		pause_us(100000);
		if (n_seen == *n_lines)
			continue;
		n_seen = *n_lines;
		call_on_each_cpu(figures[unit], unit, allowed);
	}
	_exit(0);
}

static void run_live(const char *parent, int n)
{
	cpu_set_t allowed;
	char end;

	workload_check(!sched_getaffinity(0, sizeof(allowed), &allowed));
	receive();
	for (int i = 0; i < n; i++) {
		int cgroup = make_unit(parent, i);

		if (!spawn(cgroup))
			live(parent, i, &allowed);
		close(cgroup);
	}
	while (*n_done < (uint32_t)n) {
		workload_check(waitpid(-1, NULL, WNOHANG) == 0);
		pause_us(1000);
	}
	print_figures(n);
	while (read(STDIN_FILENO, &end, 1) > 0)
		(*n_lines)++;
	*is_over = 1;
	for (int i = 0; i < n; i++)
		reap(-1);
	for (int i = 0; i < n; i++)
		remove_unit(parent, i);
}

/* Until the i-th of those that come at a steady rate is due. One that is late is not waited for. */
static void wait_turn(const struct timespec *start, int i, int per_second)
{
	uint64_t ns = start->tv_nsec + (uint64_t)i * 1000000000 / per_second;
	struct timespec due = { start->tv_sec + ns / 1000000000, ns % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR)
		;
}

static void call_few(int i)
{
	figures[i][PID] = getpid();
	for (int j = 0; j < CHURN_CALLS; j++)
		call(figures[i], j, 1 + (i + j) % 5);
	_exit(0);
}

static void wait_line(void)
{
	char end;

	workload_check(printf("\n") == 1 && !fflush(stdout) && read(STDIN_FILENO, &end, 1) == 1);
}

static void run_churn(const char *parent, int n, int per_second, int batch)
{
	struct timespec start;

	clock_gettime(CLOCK_MONOTONIC, &start);
	for (int i = 0; i < n; i++) {
		int cgroup = make_unit(parent, i);
		pid_t pid = spawn(cgroup);

		if (!pid)
			call_few(i);
		close(cgroup);
		reap(pid);
		remove_unit(parent, i);
		wait_turn(&start, i + 1, per_second);
		if (batch && (i + 1) % batch == 0)
			wait_line();
	}
	print_figures(n);
}

static void live_long(int i)
{
	figures[i][PID] = getpid();
	while (!*is_over) {
		call(figures[i], 0, 10);
		pause_us(50000);
	}
	_exit(0);
}

static void run_spawn(const char *parent, int n, int per_second)
{
	struct timespec start;
	int cgroup = open_directory(parent);

	for (int i = 0; i < LONG_LIVED; i++)
		if (!spawn(cgroup))
			live_long(n + i);
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (int i = 0; i < n; i++) {
		pid_t pid = spawn(cgroup);

		if (!pid)
			call_few(i);
		reap(pid);
		wait_turn(&start, i + 1, per_second);
	}
	*is_over = 1;
	for (int i = 0; i < LONG_LIVED; i++)
		reap(-1);
	print_figures(n + LONG_LIVED);
}

int main(int argc, char **argv)
{
	int n = argc > 3 ? strtol(argv[3], NULL, 10) : 0, per_second = argc > 4 ? strtol(argv[4], NULL, 10) : 0;
	int batch = argc > 5 ? strtol(argv[5], NULL, 10) : 0;

	workload_check(n > 0 && strrchr(argv[2], '/') && (per_second > 0 || !strcmp(argv[1], "live")));
	figures = share((n + LONG_LIVED) * sizeof(*figures));
	n_done = share(sizeof(*n_done));
	n_lines = share(sizeof(*n_lines));
	is_over = share(sizeof(*is_over));
	if (!strcmp(argv[1], "live"))
		run_live(argv[2], n);
	if (!strcmp(argv[1], "churn"))
		run_churn(argv[2], n, per_second, batch);
	if (!strcmp(argv[1], "spawn"))
		run_spawn(argv[2], n, per_second);
	return 0;
}

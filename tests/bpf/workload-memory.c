/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes page faults, or runs out of memory, in children born in a cgroup, and prints what
 * getrusage() and /proc say of them:
 *
 *     workload-memory CGROUP_DIRECTORY minor N          one that touches N fresh pages
 *     workload-memory CGROUP_DIRECTORY major N          one that touches N pages of a file that are in
 *                                                       no cache
 *     workload-memory CGROUP_DIRECTORY short N          N that touch 20 fresh pages and exit, one after
 *                                                       another
 *     workload-memory CGROUP_DIRECTORY hold N           one that touches N fresh pages and is alive at
 *                                                       the end
 *     workload-memory CGROUP_DIRECTORY oom MEMORY       one that takes memory until it is killed; it
 *                                                       first moves into the memory cgroup whose
 *                                                       cgroup.procs is MEMORY
 *     workload-memory CGROUP_DIRECTORY reclaim MEMORY   one that reads a file larger than its memory
 *                                                       limit
 */
#include <err.h>
#include <inttypes.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "workload.h"

#define PAGE  4096
#define LIMIT (16 << 20) /* of the memory cgroup that the test makes */

struct figures {
	uint64_t minor, major; /* of all children, as /proc/PID/stat says once they are dead */
	uint64_t rusage_minor, rusage_major; /* as wait4() says */
	uint64_t forced_minor,
		forced_major; /* between two getrusage() calls around what forces them */
	uint64_t killed;
	uint64_t pid; /* of the last child */
};

static int cgroup_fd;
static struct figures *total; /* shared with the children */

static void touch(volatile char *pages, int n)
{
	for (int i = 0; i < n; i++)
		pages[(size_t)i * PAGE] = 1;
}

static void touch_fresh(int n)
{
	char *pages = mmap(NULL, (size_t)n * PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rusage before, after;

	workload_check(pages != MAP_FAILED);
	madvise(pages, (size_t)n * PAGE, MADV_NOHUGEPAGE);
	workload_check(!getrusage(RUSAGE_SELF, &before));
	touch(pages, n);
	workload_check(!getrusage(RUSAGE_SELF, &after));
	total->forced_minor += after.ru_minflt - before.ru_minflt;
	total->forced_major += after.ru_majflt - before.ru_majflt;
}

static int file_of_pages(int n)
{
	char name[] = "/var/tmp/workload-memory.XXXXXX", page[PAGE];
	int fd = mkstemp(name);

	workload_check(fd >= 0 && !unlink(name));
	memset(page, 'x', sizeof(page));
	for (int i = 0; i < n; i++)
		workload_check(write(fd, page, sizeof(page)) == sizeof(page));
	workload_check(!fsync(fd));
	return fd;
}

/* Reading ahead and faulting around are off, so that each page is one fault. */
static void touch_evicted(int n)
{
	int fd = file_of_pages(n);
	volatile char *pages;
	struct rusage before, after;

	pages = mmap(NULL, (size_t)n * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	workload_check(pages != MAP_FAILED);
	workload_check(!madvise((void *)pages, (size_t)n * PAGE, MADV_RANDOM));
	workload_check(!posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM));
	workload_check(!posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	workload_check(!getrusage(RUSAGE_SELF, &before));
	for (int i = 0; i < n; i++)
		(void)pages[(size_t)i * PAGE];
	workload_check(!getrusage(RUSAGE_SELF, &after));
	total->forced_minor += after.ru_minflt - before.ru_minflt;
	total->forced_major += after.ru_majflt - before.ru_majflt;
}

static void enter_memory(const char *procs)
{
	int fd = workload_open_cgroup(procs);

	workload_enter(fd);
	close(fd);
}

static void run_out(const char *procs)
{
	enter_memory(procs);
	workload_check(!prctl(PR_SET_DUMPABLE, 0));
	touch_fresh(4 * LIMIT / PAGE);
}

static void read_much(const char *procs)
{
	char buffer[64 << 10];
	int fd;

	enter_memory(procs);
	fd = file_of_pages(4 * LIMIT / PAGE);
	for (int i = 0; i < 2; i++) {
		workload_check(lseek(fd, 0, SEEK_SET) == 0);
		while (read(fd, buffer, sizeof(buffer)) > 0)
			;
	}
}

static void do_minor(const char *n)
{
	touch_fresh(strtol(n, NULL, 10));
}

static void do_major(const char *n)
{
	touch_evicted(strtol(n, NULL, 10));
}

static void do_short(const char *n)
{
	touch_fresh(20);
}

static void do_hold(const char *n)
{
	for (int fd = 0; fd < 3; fd++) /* or who reads our output waits for its end */
		close(fd);
	touch_fresh(strtol(n, NULL, 10));
	pause();
}

static const struct mode {
	const char *name;
	void (*child)(const char *argument);
	enum { ONE, MANY, ALIVE } children;
} modes[] = {
	{ "minor", do_minor, ONE }, { "major", do_major, ONE }, { "short", do_short, MANY },
	{ "hold", do_hold, ALIVE }, { "oom", run_out, ONE },	{ "reclaim", read_much, ONE },
};

/* Born in the cgroup, so that nothing of it belongs elsewhere. */
static pid_t spawn(const struct mode *mode, const char *argument)
{
	struct clone_args args = {
		.flags = CLONE_INTO_CGROUP,
		.exit_signal = SIGCHLD,
		.cgroup = cgroup_fd,
	};
	pid_t pid = syscall(SYS_clone3, &args, sizeof(args));

	workload_check(pid >= 0);
	if (pid == 0) {
		mode->child(argument);
		_exit(0);
	}
	return pid;
}

static void read_stat(pid_t pid)
{
	char path[64], line[1024];
	uint64_t minor = 0, major = 0;
	char *after;
	FILE *stream;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	stream = fopen(path, "r");
	workload_check(stream && fgets(line, sizeof(line), stream));
	fclose(stream);
	after = strrchr(line, ')');
	workload_check(after &&
		       sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %*u %" SCNu64 " %*u %" SCNu64,
			      &minor, &major) == 2);
	total->minor += minor;
	total->major += major;
}

static void reap(pid_t pid)
{
	struct rusage usage;
	siginfo_t info;
	int status;

	workload_check(!waitid(P_PID, pid, &info, WEXITED | WNOWAIT));
	read_stat(pid);
	workload_check(wait4(pid, &status, 0, &usage) == pid);
	total->rusage_minor += usage.ru_minflt;
	total->rusage_major += usage.ru_majflt;
	total->killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* Leaves the child to whoever removes the cgroup; its faults are over once it sleeps. */
static void leave_alive(pid_t pid)
{
	char path[64], state = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	while (state != 'S' || !total->forced_minor) {
		FILE *stream = fopen(path, "r");

		workload_check(stream && fscanf(stream, "%*d %*s %c", &state) == 1);
		fclose(stream);
		usleep(1000);
	}
	read_stat(pid);
}

int main(int argc, char **argv)
{
	const struct mode *mode = modes;

	workload_check(argc == 4);
	cgroup_fd = open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC);
	workload_check(cgroup_fd >= 0);
	total = mmap(NULL, sizeof(*total), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	workload_check(total != MAP_FAILED);
	while (strcmp(mode->name, argv[2]))
		workload_check(++mode < modes + sizeof(modes) / sizeof(modes[0]));
	for (int i = 0; i < (mode->children == MANY ? strtol(argv[3], NULL, 10) : 1); i++) {
		pid_t pid = spawn(mode, argv[3]);

		total->pid = pid;
		if (mode->children == ALIVE)
			leave_alive(pid);
		else
			reap(pid);
	}
	printf("{\"minor\": %" PRIu64 ", \"major\": %" PRIu64 ", \"rusage_minor\": %" PRIu64
	       ", \"rusage_major\": %" PRIu64 ", \"forced_minor\": %" PRIu64
	       ", \"forced_major\": %" PRIu64 ", \"killed\": %" PRIu64
	       ", \"pid\": %" PRIu64 "}\n",
	       total->minor, total->major, total->rusage_minor, total->rusage_major,
	       total->forced_minor, total->forced_major, total->killed, total->pid);
	return 0;
}

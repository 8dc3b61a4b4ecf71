/* SPDX-License-Identifier: Apache-2.0 */
/*
 * syscall CGROUP.PROCS: makes known numbers of system calls that nothing else in the process makes,
 * in every way that a hook may count wrongly.
 */
#include "workload.h"

#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

enum {
	SUCCESSES = 5000,
	NO_PROCESS = 700,
	BAD_FILE = 300,
	NO_ENTRY = 400,
	THREADS = 4,
	PER_THREAD = 1000,
	CHILDREN = 200,
	PER_CHILD = 3,
	MAPPINGS = 150,
	REFUSED = 100,
	UNKNOWN = 120,
	MINUS_ONE = 30,
	COMPAT = 50,
	PAUSES = 20,
	SLEEPS = 20,
	READS = 20,
};

static volatile int n_signals;

static void count_signal(int signal)
{
	n_signals++;
}

static void handle(int flags)
{
	struct sigaction action = { .sa_handler = count_signal, .sa_flags = flags };

	workload_check(!sigaction(SIGALRM, &action, NULL));
}

/* Again and again, so that one that comes too early delays the test and does not hang it. */
static void set_alarm(int every_us)
{
	struct itimerval timer = { { 0, every_us }, { 0, every_us } };

	workload_check(!setitimer(ITIMER_REAL, &timer, NULL));
}

static void *call_in_thread(void *unused)
{
	for (int i = 0; i < PER_THREAD; i++)
		syscall(SYS_getsid, 0);
	return NULL;
}

static void call_many(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < SUCCESSES; i++)
		workload_check(syscall(SYS_getsid, 0) >= 0);
	for (int i = 0; i < NO_PROCESS; i++)
		workload_check(syscall(SYS_getsid, INT_MAX) < 0 && errno == ESRCH);
	for (int i = 0; i < BAD_FILE; i++)
		workload_check(syscall(SYS_inotify_rm_watch, -1, 0) < 0 && errno == EBADF);
	for (int i = 0; i < NO_ENTRY; i++)
		workload_check(syscall(SYS_unlinkat, AT_FDCWD, "/no/such", 0) < 0 && errno == ENOENT);
	for (int i = 0; i < MAPPINGS; i++) /* addresses are no errors */
		workload_check(!syscall(SYS_mincore, 0, 0, 0) &&
			       syscall(SYS_mremap, 1, 4096, 4096, 0) == -1 && errno == EINVAL);
	for (int i = 0; i < THREADS; i++)
		workload_check(!pthread_create(&threads[i], NULL, call_in_thread, NULL));
	for (int i = 0; i < THREADS; i++)
		workload_check(!pthread_join(threads[i], NULL));
}

/* They end at once, and so long before anybody looks. */
static void call_in_children(void)
{
	for (int i = 0; i < CHILDREN; i++) {
		int status;
		pid_t pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

		workload_check(pid >= 0);
		if (!pid) {
			for (int j = 0; j < PER_CHILD; j++)
				syscall(SYS_getsid, 0);
			_exit(0);
		}
		workload_check(waitpid(pid, &status, 0) == pid && !status);
	}
}

/* A child of its own for what changes a process for good. */
static int in_child(void (*act)(void))
{
	int status;
	pid_t pid = fork();

	workload_check(pid >= 0);
	if (!pid) {
		act();
		_exit(0);
	}
	workload_check(waitpid(pid, &status, 0) == pid);
	return status;
}

/* The kernel never starts these: a filter refuses them. */
static void call_refused(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpgid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };

	workload_check(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	workload_check(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
	for (int i = 0; i < REFUSED; i++)
		workload_check(syscall(SYS_getpgid, 0) < 0 && errno == EPERM);
}

static void call_unknown(void)
{
	for (int i = 0; i < UNKNOWN; i++)
		workload_check(syscall(100000 + i * 17) < 0 && errno == ENOSYS);
	for (int i = 0; i < MINUS_ONE; i++)
		workload_check(syscall(-1) < 0 && errno == ENOSYS);
}

/* The numbers of 32-bit code are others: 147 is getsid there, sched_get_priority_min here. */
static void call_compat(void)
{
#ifdef __x86_64__
	for (int i = 0; i < COMPAT; i++) {
		long result = 147;

		asm volatile("int $0x80" : "+a"(result) : "b"(0) : "memory", "r8", "r9", "r10", "r11");
		if (result < 0)
			_exit(1);
	}
#else
	_exit(1);
#endif
}

static void be_interrupted(void)
{
	struct timespec long_time = { 1000, 0 };

	handle(0);
	set_alarm(3000);
	for (int i = 0; i < PAUSES; i++)
		workload_check(syscall(SYS_rt_sigsuspend, &(sigset_t){ 0 }, 8) < 0 && errno == EINTR);
	for (int i = 0; i < SLEEPS; i++)
		workload_check(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &long_time, NULL) < 0 &&
			       errno == EINTR);
	set_alarm(0);
}

struct restarted {
	int ends[2];
	sigset_t alarm;
};

/* Lets each read be interrupted three times before it gets its byte. */
static void *feed(void *argument)
{
	struct restarted *restarted = argument;

	for (int i = 0; i < READS; i++) {
		int before = n_signals;

		while (n_signals < before + 3)
			sched_yield();
		workload_check(write(restarted->ends[1], "x", 1) == 1);
	}
	return NULL;
}

static void be_restarted(void)
{
	struct restarted restarted;
	pthread_t thread;
	char byte;

	workload_check(!pipe(restarted.ends));
	sigemptyset(&restarted.alarm);
	sigaddset(&restarted.alarm, SIGALRM);
	handle(SA_RESTART);
	workload_check(!pthread_sigmask(SIG_BLOCK, &restarted.alarm, NULL));
	workload_check(!pthread_create(&thread, NULL, feed, &restarted));
	workload_check(!pthread_sigmask(SIG_UNBLOCK, &restarted.alarm, NULL));
	set_alarm(3000);
	for (int i = 0; i < READS; i++)
		workload_check(readv(restarted.ends[0], &(struct iovec){ &byte, 1 }, 1) == 1);
	set_alarm(0);
	workload_check(!pthread_join(thread, NULL));
}

int main(int argc, char **argv)
{
	int compat;

	workload_check(argc == 2);
	workload_enter(workload_open_cgroup(argv[1]));
	call_many();
	call_in_children();
	workload_check(!in_child(call_refused));
	call_unknown();
	compat = in_child(call_compat) ? 0 : COMPAT;
	be_interrupted();
	be_restarted();
	printf("{\"getsid\": %d, \"getsid_ESRCH\": %d, \"inotify_rm_watch_EBADF\": %d, "
	       "\"unlinkat_ENOENT\": %d, \"mincore\": %d, \"mremap_EINVAL\": %d, \"clone\": %d, "
	       "\"getpgid_EPERM\": %d, \"unknown_ENOSYS\": %d, \"compat\": %d, "
	       "\"rt_sigsuspend_EINTR\": %d, \"clock_nanosleep_EINTR\": %d, \"readv\": %d, "
	       "\"rt_sigreturn\": %d, \"setitimer\": %d, \"pid\": %d}\n",
	       SUCCESSES + THREADS * PER_THREAD + CHILDREN * PER_CHILD, NO_PROCESS, BAD_FILE,
	       NO_ENTRY, MAPPINGS, MAPPINGS, CHILDREN, REFUSED, UNKNOWN + MINUS_ONE, compat, PAUSES,
	       SLEEPS, READS, n_signals, 4, getpid());
	return 0;
}

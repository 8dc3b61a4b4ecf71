/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload-contend CGROUP_DIRECTORY N
 *
 * Counted work under contention: on each CPU, four busy processes and one of high priority that interrupts them.
 * They call the kernel, use files, send datagrams and open connections, until N children were born next to them that
 * touch a few pages and die at once.
 *
 * All are born in the cgroup. They count what they do in shared memory. What the kernel counts for them (/proc) is
 * read when all are dead and none has been reaped, when no number can change any more. Printed is one JSON object.
 */
#include <inttypes.h>
#include <linux/sched.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "workload.h"

enum { BLOCK = 4096, PAGES = 50, BATCH = 8, PAUSE_US = 50000, FILE_BLOCKS = 256 };
enum { ENOUGH = 4096, NO_PROCESS = 0x3ffffff };

/* What a process counts itself. Calls are called as bpfpush calls them. */
#define COUNTED(do)                                                                                                \
	do(getpgid) do(getpriority) do(pwrite64) do(pread64) do(sendto) do(recvfrom) do(connect) do(accept4)       \
	do(file_reads) do(file_writes) do(file_opens) do(file_read_bytes) do(file_write_bytes)                     \
	do(udp_sent) do(udp_sent_bytes) do(udp_received) do(udp_received_bytes)                                    \
	do(tcp_listeners) do(tcp_connections) do(tcp_sent_bytes) do(tcp_received_bytes)

/* What the kernel counts for a process. */
#define KEPT(do)                                                                                                   \
	do(minor) do(major) do(voluntary) do(involuntary) do(migrations) do(cpu_ns) do(run_delay_ns) do(arrivals)  \
	do(disk_read_bytes) do(disk_write_bytes)

#define MEMBER(name) uint64_t name;
#define NAME(name) #name,

struct figures {
	COUNTED(MEMBER)
	KEPT(MEMBER)
};

static const char *const names[] = { COUNTED(NAME) KEPT(NAME) };
enum { N_NAMES = sizeof(names) / sizeof(*names) };

static struct shared {
	volatile bool is_over;
	struct figures figures[];
} *shared;

static int cgroup;
static char block[BLOCK];

/* ------ what a round of each kind does ------ */

struct tools {
	struct figures *mine;
	int file, udp, listener;
	struct sockaddr_in udp_address, tcp_address;
};

static void call(struct figures *mine, int n)
{
	for (int i = 0; i < n; i++)
		workload_check(syscall(SYS_getpgid, NO_PROCESS) < 0 && errno == ESRCH);
	mine->getpgid += n;
}

/* With work of the program's own between the calls. */
static void call_and_work(struct figures *mine, int n)
{
	for (int i = 0; i < n; i++) {
		for (volatile int spun = 0; spun < 200; spun++)
			;
		workload_check(syscall(SYS_getpriority, PRIO_PROCESS, 0) > 0);
	}
	mine->getpriority += n;
}

static void use_file(struct tools *tools)
{
	struct figures *mine = tools->mine;
	size_t size = 1 + mine->file_writes % BLOCK;
	off_t at = mine->file_writes % FILE_BLOCKS * BLOCK;

	workload_check(pwrite(tools->file, block, size, at) == (ssize_t)size);
	workload_check(pread(tools->file, block, size, at) == (ssize_t)size);
	mine->pwrite64++;
	mine->pread64++;
	mine->file_writes++;
	mine->file_reads++;
	mine->file_write_bytes += size;
	mine->file_read_bytes += size;
}

/* To itself, and received at once, so that none is dropped. */
static void use_udp(struct tools *tools)
{
	const struct sockaddr *address = (struct sockaddr *)&tools->udp_address;
	struct figures *mine = tools->mine;
	size_t size = 1 + mine->udp_sent % 1000;

	workload_check(sendto(tools->udp, block, size, 0, address, sizeof(tools->udp_address)) == (ssize_t)size);
	workload_check(recvfrom(tools->udp, block, BLOCK, 0, NULL, NULL) == (ssize_t)size);
	mine->sendto++;
	mine->recvfrom++;
	mine->udp_sent++;
	mine->udp_received++;
	mine->udp_sent_bytes += size;
	mine->udp_received_bytes += size;
}

/* Both ends are here. */
static void use_tcp(struct tools *tools)
{
	int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), server;
	struct figures *mine = tools->mine;
	size_t size = 1 + mine->tcp_connections % 2000;

	workload_check(client >= 0);
	workload_check(!connect(client, (struct sockaddr *)&tools->tcp_address, sizeof(tools->tcp_address)));
	server = accept4(tools->listener, NULL, NULL, SOCK_CLOEXEC);
	workload_check(server >= 0);
	workload_check(sendto(client, block, size, 0, NULL, 0) == (ssize_t)size);
	workload_check(recvfrom(server, block, size, MSG_WAITALL, NULL, NULL) == (ssize_t)size);
	close(client);
	close(server);
	mine->connect++;
	mine->accept4++;
	mine->sendto++;
	mine->recvfrom++;
	mine->tcp_connections++;
	mine->tcp_sent_bytes += size;
	mine->tcp_received_bytes += size;
}

static void do_calls(struct tools *tools, int i)
{
	call(tools->mine, 100);
}

static void do_files(struct tools *tools, int i)
{
	call_and_work(tools->mine, 5);
	use_file(tools);
}

static void do_datagrams(struct tools *tools, int i)
{
	call(tools->mine, 5);
	use_udp(tools);
}

static void do_connections(struct tools *tools, int i)
{
	call_and_work(tools->mine, 20);
	use_tcp(tools);
}

/* Comes at irregular times, and interrupts the busy ones wherever they are. */
static void do_interrupt(struct tools *tools, int i)
{
	clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ 0, 300000 + i * 7919L % 200000 }, NULL);
	call(tools->mine, 5);
	call_and_work(tools->mine, 5);
	use_file(tools);
	use_udp(tools);
	if (i % 16 == 0)
		use_tcp(tools);
}

static const struct kind {
	void (*round)(struct tools *tools, int i);
	bool has_priority;
} kinds[] = {
	{ do_calls }, { do_files }, { do_datagrams }, { do_connections }, { do_interrupt, true },
};
enum { N_KINDS = sizeof(kinds) / sizeof(*kinds) };

/* ------ processes ------ */

static void bind_socket(int fd, struct sockaddr_in *ret_address)
{
	socklen_t size = sizeof(*ret_address);

	*ret_address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	workload_check(fd >= 0 && !bind(fd, (struct sockaddr *)ret_address, size));
	workload_check(!getsockname(fd, (struct sockaddr *)ret_address, &size));
}

static void open_tools(struct tools *tools)
{
	char path[64];

	/* mkostemp() may try several names, and each try is counted: it makes them of a clock, which two of us may read
	 * at the same moment. */
	snprintf(path, sizeof(path), "/var/tmp/bpfpush-contend.%d", getpid());
	tools->file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	workload_check(tools->file >= 0 && !unlink(path));
	tools->mine->file_opens++;
	tools->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bind_socket(tools->udp, &tools->udp_address);
	tools->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bind_socket(tools->listener, &tools->tcp_address);
	workload_check(!listen(tools->listener, 8));
	tools->mine->tcp_listeners++;
}

static void work(const struct kind *kind, int cpu, struct figures *mine)
{
	const struct sched_param high = { .sched_priority = 10 };
	struct tools tools = { .mine = mine };
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	workload_check(!sched_setaffinity(0, sizeof(one), &one) || errno == EINVAL); /* it has just gone offline */
	if (kind->has_priority)
		workload_check(!sched_setscheduler(0, SCHED_FIFO, &high));
	open_tools(&tools);
	for (int i = 0; !shared->is_over; i++)
		kind->round(&tools, i);
	close(tools.file); /* removing it writes to the disk, which may be too late in an exit */
	_exit(0);
}

static void die_at_once(void)
{
	volatile char *pages = mmap(NULL, PAGES * BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	workload_check(pages != MAP_FAILED);
	for (int i = 0; i < PAGES; i++)
		pages[i * BLOCK] = 1;
	_exit(0);
}

static pid_t spawn(void)
{
	struct clone_args args = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = cgroup };
	pid_t pid = syscall(SYS_clone3, &args, sizeof(args));

	workload_check(pid >= 0);
	return pid;
}

static void wait_dead(pid_t pid)
{
	siginfo_t info;

	workload_check(!waitid(P_PID, pid, &info, WEXITED | WNOWAIT));
	workload_check(info.si_code == CLD_EXITED && !info.si_status);
}

/* ------ what the kernel says ------ */

static uint64_t proc_field(pid_t pid, const char *file, const char *name)
{
	FILE *stream = workload_open_proc(pid, file);
	uint64_t value = UINT64_MAX;
	char line[256];

	while (fgets(line, sizeof(line), stream))
		if (!strncmp(line, name, strlen(name)))
			sscanf(line + strlen(name), "%*[ \t:]%" SCNu64, &value);
	fclose(stream);
	workload_check(value != UINT64_MAX);
	return value;
}

static void add_kept(pid_t pid, struct figures *figures)
{
	uint64_t cpu_ns, run_delay_ns, arrivals, minor, major;
	FILE *stream;

	workload_wait_last_switch(pid);
	stream = workload_open_proc(pid, "schedstat");
	workload_check(fscanf(stream, "%" SCNu64 "%" SCNu64 "%" SCNu64, &cpu_ns, &run_delay_ns, &arrivals) == 3);
	fclose(stream);
	stream = workload_open_proc(pid, "stat"); /* no name here has a space */
	workload_check(fscanf(stream, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %" SCNu64 " %*u %" SCNu64, &minor, &major) == 2);
	fclose(stream);
	figures->cpu_ns += cpu_ns;
	figures->run_delay_ns += run_delay_ns;
	figures->arrivals += arrivals;
	figures->minor += minor;
	figures->major += major;
	figures->voluntary += proc_field(pid, "status", "voluntary_ctxt_switches");
	figures->involuntary += proc_field(pid, "status", "nonvoluntary_ctxt_switches");
	figures->migrations += proc_field(pid, "sched", "se.nr_migrations");
	figures->disk_read_bytes += proc_field(pid, "io", "read_bytes");
	figures->disk_write_bytes += proc_field(pid, "io", "write_bytes");
}

/* Closing goes on after the death of those who closed. */
static void wait_all_closed(void)
{
	char line[256] = "";
	FILE *stream;

	while (strncmp(line, "TCP: inuse 0 ", 13)) {
		stream = fopen("/proc/self/net/sockstat", "re");
		workload_check(stream);
		while (fgets(line, sizeof(line), stream) && strncmp(line, "TCP:", 4))
			;
		fclose(stream);
	}
}

/* Of the network namespace, in which nobody else should use TCP. */
static uint64_t retransmits(void)
{
	FILE *stream = fopen("/proc/self/net/snmp", "re");
	uint64_t value = UINT64_MAX;
	char line[1024];

	workload_check(stream);
	while (fgets(line, sizeof(line), stream))
		sscanf(line, "Tcp: %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &value);
	fclose(stream);
	workload_check(value != UINT64_MAX);
	return value;
}

static void print(int n, uint64_t retransmits_before)
{
	printf("{\"retransmits\": %" PRIu64, retransmits() - retransmits_before);
	for (int name = 0; name < N_NAMES; name++) {
		uint64_t sum = 0;

		for (int i = 0; i < n; i++)
			sum += ((uint64_t *)&shared->figures[i])[name];
		printf(", \"%s\": %" PRIu64, names[name], sum);
	}
	printf("}\n");
}

static void prepare(const char *directory)
{
	struct ifreq interface = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd;

	cgroup = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	workload_check(cgroup >= 0);
	shared = mmap(NULL, sizeof(*shared) + ENOUGH * sizeof(struct figures), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	workload_check(shared != MAP_FAILED);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	workload_check(fd >= 0 && !ioctl(fd, SIOCSIFFLAGS, &interface));
	close(fd);
}

int main(int argc, char **argv)
{
	int n_workers = N_KINDS * sysconf(_SC_NPROCESSORS_ONLN), n_brief, n = 0;
	uint64_t retransmits_before;
	pid_t pids[ENOUGH];

	workload_check(argc == 3);
	n_brief = strtol(argv[2], NULL, 10);
	workload_check(n_brief > 0 && n_workers + n_brief + BATCH <= ENOUGH);
	prepare(argv[1]);
	retransmits_before = retransmits();
	for (; n < n_workers; n++)
		if (!(pids[n] = spawn()))
			work(&kinds[n % N_KINDS], n / N_KINDS, &shared->figures[n]);
	while (n < n_workers + n_brief) {
		for (int i = 0; i < BATCH; i++)
			if (!(pids[n + i] = spawn()))
				die_at_once();
		for (int i = 0; i < BATCH; i++)
			wait_dead(pids[n++]);
		usleep(PAUSE_US);
	}
	shared->is_over = true;
	for (int i = 0; i < n; i++) {
		wait_dead(pids[i]);
		add_kept(pids[i], &shared->figures[i]);
	}
	wait_all_closed();
	print(n, retransmits_before);
	for (int i = 0; i < n; i++)
		workload_check(waitpid(pids[i], NULL, 0) == pids[i]);
	return 0;
}

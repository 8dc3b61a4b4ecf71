/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What hooks add to a system call, a read of a file, a context switch, a TCP message and a TCP connection: nothing
 * attached, an empty program at the same hook, our collectors. Each round measures all of them, in an order that
 * turns, on one CPU; times are CPU times, so what other processes take away is not in them, but how they
 * spoil the caches is.
 *
 *     bench-hooks COLLECTOR-DIRECTORY EMPTY-OBJECT [ROUNDS]
 */
#include <arpa/inet.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collector/collector.h"
#include "util/buf.h"

#define ROUNDS_MAX 200
#define CHUNKS	   5 /* measurements of a kind a round */
#define NAMES_MAX  7
#define UNITS	   500 /* as the agent sizes tables for */

enum work { WORK_SYSCALL, WORK_FILE, WORK_SWITCH, WORK_TCP, WORK_CONNECTION, WORKS };

static const struct {
	const char *name;
	unsigned int n; /* a chunk */
} works[] = {
	[WORK_SYSCALL] = { "system call (getppid)", 100000 },
	[WORK_FILE] = { "pread of 1 byte of a file", 50000 },
	[WORK_SWITCH] = { "context switch (two processes, pipes)", 10000 },
	[WORK_TCP] = { "TCP message of 1 byte, both ends", 10000 },
	[WORK_CONNECTION] = { "TCP connection, opened and reset, both ends", 1000 },
};

/* Names of empty programs, or of collectors. */
static const struct variant {
	const char *title;
	bool is_empty;
	const char *names[NAMES_MAX];
	bool is_for[WORKS];
} variants[] = {
	{ "nothing", true, { NULL }, { true, true, true, true, true } },
	{ "empty sys_exit", true, { "sys_exit" }, { true, true } },
	{ "empty sched_switch", true, { "sched_switch" }, { [WORK_SWITCH] = true } },
	{ "empty sock_send_length, sock_recv_length", true, { "sock_send_length", "sock_recv_length" }, { [WORK_TCP] = true } },
	{ "empty inet_sock_set_state", true, { "inet_sock_set_state" }, { [WORK_CONNECTION] = true } },
	{ "all of these empty ones", true,
	  { "sys_exit", "sched_switch", "sock_send_length", "sock_recv_length", "inet_sock_set_state" },
	  { true, true, true, true, true } },
	{ "syscalls", false, { "syscalls" }, { true } },
	{ "fileio", false, { "fileio" }, { true, true } },
	{ "scheduler", false, { "scheduler" }, { [WORK_SWITCH] = true } },
	{ "scheduler, memory", false, { "scheduler", "memory" }, { [WORK_SWITCH] = true } },
	{ "network", false, { "network" }, { [WORK_TCP] = true, [WORK_CONNECTION] = true } },
	{ "tcpstate", false, { "tcpstate" }, { [WORK_CONNECTION] = true } },
	{ "network, tcpstate", false, { "network", "tcpstate" }, { [WORK_CONNECTION] = true } },
	{ "all six collectors", false,
	  { "syscalls", "network", "fileio", "scheduler", "memory", "tcpstate", "cgroup" }, { true, true, true, true, true } },
};

#define VARIANTS (sizeof(variants) / sizeof(variants[0]))

static const struct label_choice choice;

struct bench {
	const char *directory, *empty_path;
	struct labels *labels;
	struct collector *collectors[NAMES_MAX];
	struct bpf_object *object;
	struct bpf_link *links[NAMES_MAX];
	int file, ping[2], pong[2], listener, sockets[2];
	struct sockaddr_in address; /* of the listener */
	pid_t child;
	clockid_t child_clock;
	double times[VARIANTS][WORKS][ROUNDS_MAX * CHUNKS]; /* ns an operation */
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double clock_ns(clockid_t clock)
{
	struct timespec now;

	if (clock_gettime(clock, &now))
		die("clock_gettime");
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int quiet(enum libbpf_print_level level, const char *format, va_list arguments)
{
	return 0;
}

static bool has_name(const struct variant *variant, const char *name)
{
	for (size_t i = 0; i < NAMES_MAX && variant->names[i]; i++)
		if (!strcmp(variant->names[i], name))
			return true;
	return false;
}

static void attach_empty(struct bench *bench, const struct variant *variant)
{
	struct bpf_program *program;
	size_t n = 0;

	bench->object = bpf_object__open_file(bench->empty_path, NULL);
	if (!bench->object)
		die(bench->empty_path);
	bpf_object__for_each_program (program, bench->object)
		bpf_program__set_autoload(program, has_name(variant, bpf_program__name(program)));
	if (bpf_object__load(bench->object))
		die("loading the empty programs");
	bpf_object__for_each_program (program, bench->object)
		if (bpf_program__autoload(program) && !(bench->links[n++] = bpf_program__attach(program)))
			die("attaching an empty program");
}

static void attach_collectors(struct bench *bench, const struct variant *variant)
{
	struct diag diag = DIAG_INIT;
	struct buf why = BUF_INIT;
	size_t n = 0, n_started = 0;
	bool is_sound = true;

	for (; is_sound && n < NAMES_MAX && variant->names[n]; n += is_sound) {
		const struct collector_options options = { bench->labels, NULL, bench->collectors, n };
		struct collector **collector = &bench->collectors[n];

		is_sound = !collector_open(bench->directory, variant->names[n], &options, &diag, collector);
		is_sound = is_sound && *collector;
	}
	if (is_sound)
		collectors_size(bench->collectors, n, UNITS);
	while (is_sound && n_started < n)
		is_sound = !collector_start(bench->collectors[n_started++], &why);
	if (!is_sound) {
		fprintf(stderr, "%s: %s%s\n", variant->title, buf_text(&diag.text), buf_text(&why));
		exit(1);
	}
	buf_done(&why);
	diag_done(&diag);
}

static void detach(struct bench *bench)
{
	for (size_t i = 0; i < NAMES_MAX; i++) {
		collector_free(bench->collectors[i]);
		bpf_link__destroy(bench->links[i]);
		bench->collectors[i] = NULL;
		bench->links[i] = NULL;
	}
	bpf_object__close(bench->object);
	bench->object = NULL;
}

/* A reset leaves no TIME_WAIT, so that ports do not run out. */
static bool connect_once(const struct bench *bench)
{
	struct linger linger = { 1, 0 };
	int client = socket(AF_INET, SOCK_STREAM, 0), server;

	if (connect(client, (const struct sockaddr *)&bench->address, sizeof(bench->address)))
		return false;
	server = accept(bench->listener, NULL, NULL);
	return server >= 0 && !setsockopt(client, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) && !close(client) &&
	       !close(server);
}

static void work(struct bench *bench, enum work kind, unsigned int n)
{
	char byte = 0;

	for (unsigned int i = 0; i < n; i++) {
		bool is_done = true;

		if (kind == WORK_SYSCALL)
			syscall(SYS_getppid);
		else if (kind == WORK_FILE)
			is_done = pread(bench->file, &byte, 1, 0) == 1;
		else if (kind == WORK_SWITCH)
			is_done = write(bench->ping[1], &byte, 1) == 1 && read(bench->pong[0], &byte, 1) == 1;
		else if (kind == WORK_CONNECTION)
			is_done = connect_once(bench);
		else
			is_done = send(bench->sockets[0], &byte, 1, 0) == 1 &&
				  recv(bench->sockets[1], &byte, 1, 0) == 1;
		if (!is_done)
			die(works[kind].name);
	}
}

static double cpu_ns(const struct bench *bench)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID) + clock_ns(bench->child_clock);
}

static void measure(struct bench *bench, size_t variant, size_t round)
{
	if (variants[variant].is_empty)
		attach_empty(bench, &variants[variant]);
	else
		attach_collectors(bench, &variants[variant]);
	for (enum work kind = 0; kind < WORKS; kind++) {
		/* There and back: two switches. */
		unsigned int n = works[kind].n, per = kind == WORK_SWITCH ? 2 : 1;

		if (!variants[variant].is_for[kind])
			continue;
		work(bench, kind, n / 5);
		for (size_t chunk = 0; chunk < CHUNKS; chunk++) {
			double start_ns = cpu_ns(bench);

			work(bench, kind, n);
			bench->times[variant][kind][round * CHUNKS + chunk] = (cpu_ns(bench) - start_ns) / n / per;
		}
	}
	detach(bench);
}

static int compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return a < b ? -1 : a > b;
}

static void report(struct bench *bench, size_t rounds)
{
	for (enum work kind = 0; kind < WORKS; kind++) {
		double none_median = 0, none_min = 0, empty_median = 0, empty_min = 0;

		printf("\n%-44s %9s %9s %9s %9s  %s\n", works[kind].name, "median", "min", "+median", "+min", "ratio to empty (median, min)");
		for (size_t i = 0; i < VARIANTS; i++) {
			double *times = bench->times[i][kind], median, min;

			if (!variants[i].is_for[kind])
				continue;
			qsort(times, rounds * CHUNKS, sizeof(*times), compare);
			median = times[rounds * CHUNKS / 2];
			min = times[0];
			if (!i)
				none_median = median, none_min = min;
			else if (!empty_min)
				empty_median = median - none_median, empty_min = min - none_min;
			printf("%-44s %9.1f %9.1f %+9.1f %+9.1f", variants[i].title, median, min, median - none_median,
			       min - none_min);
			if (!variants[i].is_empty)
				printf("  %.2f, %.2f", (median - none_median) / empty_median, (min - none_min) / empty_min);
			printf("\n");
		}
	}
}

static void answer(struct bench *bench)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(bench->ping[0], &byte, 1) == 1)
		if (write(bench->pong[1], &byte, 1) != 1)
			break;
	_exit(0);
}

static void connect_sockets(struct bench *bench)
{
	socklen_t size = sizeof(bench->address);

	bench->address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	bench->listener = socket(AF_INET, SOCK_STREAM, 0);
	bench->sockets[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (bench->listener < 0 || bind(bench->listener, (struct sockaddr *)&bench->address, size) ||
	    listen(bench->listener, 1) || getsockname(bench->listener, (struct sockaddr *)&bench->address, &size) ||
	    connect(bench->sockets[0], (struct sockaddr *)&bench->address, size))
		die("loopback");
	bench->sockets[1] = accept(bench->listener, NULL, NULL);
}

static void prepare(struct bench *bench)
{
	char path[] = "/var/tmp/bpfpush-bench-XXXXXX";
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) - 1, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) || pipe(bench->ping) || pipe(bench->pong))
		die("preparing");
	bench->file = mkstemp(path);
	if (bench->file < 0 || unlink(path) || write(bench->file, "x", 1) != 1)
		die(path);
	connect_sockets(bench);
	bench->child = fork();
	if (!bench->child)
		answer(bench);
	if (bench->child < 0 || clock_getcpuclockid(bench->child, &bench->child_clock))
		die("fork");
}

int main(int argc, char **argv)
{
	size_t rounds = argc > 3 ? strtoul(argv[3], NULL, 10) : 11;
	struct bench *bench = calloc(1, sizeof(*bench));

	if (argc < 3 || !bench || !rounds || rounds > ROUNDS_MAX)
		return 2;
	bench->directory = argv[1];
	bench->empty_path = argv[2];
	programs_quiet();
	libbpf_set_print(quiet);
	if (labels_new(0, &choice, &bench->labels))
		die("labels");
	prepare(bench);
	for (size_t round = 0; round < rounds; round++)
		for (size_t i = 0; i < VARIANTS; i++)
			measure(bench, (i + round) % VARIANTS, round);
	report(bench, rounds);
	kill(bench->child, SIGKILL);
	waitpid(bench->child, NULL, 0);
	labels_free(bench->labels);
	free(bench);
	return 0;
}

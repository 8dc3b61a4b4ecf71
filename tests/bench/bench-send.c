/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs to get a batch to a receiver: the real exporters on a real event loop, 100 000 known series that
 * all have something to say, and a receiver in a process of its own that counts what arrives and adds up the
 * numbers in it. Its sockets have the kernel's default buffers.
 *
 *     bench-send [CYCLES [WORD]]    only the ways whose names hold WORD
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>
#include <time.h>
#include <unistd.h>

#include "bench-metrics.h"
#include "export/exporter.h"
#include "util/cleanup.h"

#define METRICS	    50
#define SERIES	    2000
#define INTERVAL_NS UINT64_C(10000000000)
#define SETTLE_US   200000 /* what the receiver has not read by then is lost */
#define CYCLES_MAX  100

/* --- the receiver ------------------------------------------------------------------------------------ */

/* Shared with the receiver, which alone writes it. */
struct received {
	uint64_t n_pieces, n_lines, sum, last_ns;
};

static struct received *received;

/* The line's number is whole, and stands behind the first before. */
static void count(const char *line, const char *end, char before)
{
	const char *at = memchr(line, before, (size_t)(end - line));
	uint64_t value = 0;

	for (at = at ? at + 1 : end; at < end && isdigit((unsigned char)*at); at++)
		value = value * 10 + (uint64_t)(*at - '0');
	received->sum += value;
	received->n_lines++;
}

/* Counts all whole lines; how many bytes those are. */
static size_t count_lines(const char *data, size_t size, char before)
{
	const char *at = data, *end;

	while ((end = memchr(at, '\n', (size_t)(data + size - at)))) {
		count(at, end, before);
		at = end + 1;
	}
	return (size_t)(at - data);
}

static void receive_datagrams(int fd)
{
	static char room[65536];

	for (;;) {
		ssize_t n = recv(fd, room, sizeof(room) - 1, 0);

		if (n <= 0)
			continue;
		room[n] = '\n';
		count_lines(room, (size_t)n + 1, ':');
		received->n_pieces++;
		received->last_ns = bench_now_ns();
	}
}

/* One connection after the other, each to its end. */
static void receive_streams(int fd)
{
	static char room[1 << 18];

	for (;;) {
		int connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		size_t kept = 0;
		ssize_t n;

		while ((n = recv(connection, room + kept, sizeof(room) - kept, 0)) > 0) {
			size_t used = count_lines(room, kept + (size_t)n, ' ');

			kept += (size_t)n - used;
			memmove(room, room + used, kept);
			received->last_ns = bench_now_ns();
		}
		received->n_pieces++;
		close(connection);
	}
}

/* Where the body begins; 0: it is not there yet. */
static size_t head_size(const char *room, size_t size, size_t *ret_body_size)
{
	static const char field[] = "\r\ncontent-length:";
	const char *end = memmem(room, size, "\r\n\r\n", 4);

	if (!end)
		return 0;
	for (const char *at = room; at + sizeof(field) < end; at++)
		if (!strncasecmp(at, field, sizeof(field) - 1))
			*ret_body_size = strtoul(at + sizeof(field) - 1, NULL, 10);
	return (size_t)(end - room) + 4;
}

static void receive_requests(int fd)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n";
	static char room[8 << 20];

	for (;;) {
		int connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		size_t kept = 0, body = 0, head;
		ssize_t n;

		while ((n = recv(connection, room + kept, sizeof(room) - kept, 0)) > 0) {
			kept += (size_t)n;
			head = head_size(room, kept, &body);
			if (!head || kept < head + body)
				continue;
			kept = 0;
			received->n_pieces++;
			received->last_ns = bench_now_ns();
			if (send(connection, answer, sizeof(answer) - 1, MSG_NOSIGNAL) < 0)
				break;
		}
		close(connection);
	}
}

enum transport { UDP,
		 UNIX,
		 TCP,
		 HTTP };

static pid_t start_receiver(enum transport transport, char endpoint[128])
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_un local = { .sun_family = AF_UNIX };
	bool is_datagram = transport == UDP || transport == UNIX;
	int type = is_datagram ? SOCK_DGRAM : SOCK_STREAM;
	int fd = socket(transport == UNIX ? AF_UNIX : AF_INET, type | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(address);
	pid_t pid;

	if (transport == UNIX) {
		snprintf(local.sun_path, sizeof(local.sun_path), "/tmp/bench-send.%d", getpid());
		snprintf(endpoint, 128, "unix:%s", local.sun_path);
		unlink(local.sun_path);
		if (bind(fd, (struct sockaddr *)&local, sizeof(local)) < 0)
			abort();
	} else if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || (!is_datagram && listen(fd, 8) < 0) ||
		   getsockname(fd, (struct sockaddr *)&address, &size) < 0) {
		abort();
	} else {
		snprintf(endpoint, 128, "%s127.0.0.1:%d", transport == HTTP ? "http://" : "", ntohs(address.sin_port));
	}
	memset(received, 0, sizeof(*received));
	pid = fork();
	if (pid < 0)
		abort();
	if (!pid) {
		if (is_datagram)
			receive_datagrams(fd);
		else if (transport == TCP)
			receive_streams(fd);
		else
			receive_requests(fd);
	}
	close(fd);
	return pid;
}

static void stop_receiver(pid_t pid, const char *endpoint)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (!strncmp(endpoint, "unix:", 5))
		unlink(endpoint + 5);
}

/* --- the sender -------------------------------------------------------------------------------------- */

static const struct way {
	const char *name, *type;
	enum transport transport;
	const char *keys[8]; /* and values, ended by NULL */
} ways[] = {
	{ "statsd plain, UDP", "statsd", UDP, { NULL } },
	{ "statsd dogstatsd, UDP", "statsd", UDP, { "dialect", "dogstatsd" } },
	{ "statsd plain, UDP, unpaced", "statsd", UDP, { "burst", "0" } },
	{ "statsd plain, unix, unpaced", "statsd", UNIX, { "burst", "0" } },
	{ "graphite dotted, TCP", "graphite", TCP, { NULL } },
	{ "graphite tagged, TCP", "graphite", TCP, { "dialect", "tagged" } },
	{ "otlp, gzip", "otlp", HTTP, { NULL } },
	{ "otlp, uncompressed", "otlp", HTTP, { "compression", "none" } },
};

struct cycle {
	uint64_t push_ns, last_ns, idle_ns, cpu_ns, system_ns;
	uint64_t n_lines, n_pieces, sum, wanted_sum;
};

static uint64_t ns_of(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_usec * 1000;
}

static void run_cycle(sd_event *event, struct exporter *exporter, struct bench_metrics *bench, struct cycle *ret_cycle)
{
	struct cycle cycle = { .wanted_sum = bench_metrics_grow(bench) };
	struct received before = *received;
	struct rusage start, end;
	uint64_t start_ns = bench_now_ns();

	getrusage(RUSAGE_SELF, &start);
	if (exporter_encode(exporter, &bench->batch) < 0)
		abort();
	exporter_send(exporter, &bench->batch);
	cycle.push_ns = bench_now_ns() - start_ns;
	while (!exporter_is_idle(exporter))
		if (sd_event_run(event, UINT64_MAX) < 0)
			abort();
	getrusage(RUSAGE_SELF, &end);
	cycle.idle_ns = bench_now_ns() - start_ns;
	usleep(SETTLE_US);
	cycle.cpu_ns = ns_of(&end.ru_utime) + ns_of(&end.ru_stime) - ns_of(&start.ru_utime) - ns_of(&start.ru_stime);
	cycle.system_ns = ns_of(&end.ru_stime) - ns_of(&start.ru_stime);
	cycle.last_ns = received->last_ns - start_ns;
	cycle.n_lines = received->n_lines - before.n_lines;
	cycle.n_pieces = received->n_pieces - before.n_pieces;
	cycle.sum = received->sum - before.sum;
	*ret_cycle = cycle;
}

static void print(const struct way *way, const char *which, const struct cycle *cycle, uint64_t n_exported)
{
	uint64_t n_arrived = way->transport == HTTP ? n_exported : cycle->n_lines;
	const char *sum = cycle->sum == cycle->wanted_sum ? "exact" : "differs";
	double n = METRICS * SERIES;

	printf("%-28s %-5s %d: %" PRIu64 " arrived, ", way->name, which, METRICS * SERIES, n_arrived);
	if (way->transport == HTTP)
		printf("%" PRIu64 " requests", cycle->n_pieces);
	else
		printf("sum %s, %" PRIu64 " %s", sum, cycle->n_pieces,
		       way->transport == TCP ? "connections" : "datagrams");
	printf("; push %.1f ms, last after %.1f ms, idle after %.1f: %.0f a second; CPU %.0f ns each, kernel %.0f\n",
	       (double)cycle->push_ns / 1e6, (double)cycle->last_ns / 1e6, (double)cycle->idle_ns / 1e6,
	       (double)n_arrived * 1e9 / (double)cycle->last_ns, (double)cycle->cpu_ns / n,
	       (double)cycle->system_ns / n);
}

static struct exporter *open_exporter(const struct way *way, const char *endpoint,
				      const struct exporter_context *context, void **ret_options)
{
	const struct exporter_ops *ops = exporter_find(way->type);
	void *options = calloc(1, ops->settings->size_bytes);
	struct exporter *exporter;
	struct diag diag = DIAG_INIT;

	if (!options || setting_table_init(ops->settings, options) < 0 ||
	    setting_table_set(ops->settings, options,
			      &(struct assignment){ "endpoint", endpoint, "", 0 }, &diag) < 0)
		abort();
	for (size_t i = 0; way->keys[i]; i += 2)
		if (setting_table_set(ops->settings, options,
				      &(struct assignment){ way->keys[i], way->keys[i + 1], "", 0 }, &diag) < 0)
			abort();
	if (exporter_open("bench", ops, options, context, &exporter) < 0)
		abort();
	*ret_options = options;
	return exporter;
}

static int compare_cpu(const void *left, const void *right)
{
	const struct cycle *a = left, *b = right;

	return bench_compare(&a->cpu_ns, &b->cpu_ns);
}

/* The first cycle, whose series are new, and of the others the one with the median of CPU, with all losses. */
static void measure(const struct way *way, size_t n_cycles)
{
	static const struct attribute resource = { .name = "host.name", .text = "web-1" };
	struct exporter_context context = { .resource = &resource, .n_resource = 1, .version = "0.1.0",
					    .interval_ns = INTERVAL_NS };
	const struct exporter_ops *ops = exporter_find(way->type);
	struct cycle first, cycles[CYCLES_MAX];
	struct bench_metrics bench;
	struct exporter *exporter;
	uint64_t n_exported, n_lost = 0, n_inexact = 0;
	char endpoint[128];
	pid_t receiver = start_receiver(way->transport, endpoint);
	void *options;

	if (sd_event_new(&context.event) < 0)
		abort();
	bench_metrics_init(&bench, METRIC_SUM, "{call}", 1, METRICS, SERIES);
	exporter = open_exporter(way, endpoint, &context, &options);
	run_cycle(context.event, exporter, &bench, &first);
	n_exported = exporter->stats.points[POINTS_DELIVERED];
	print(way, "new", &first, n_exported);
	for (size_t i = 0; i < n_cycles; i++) {
		run_cycle(context.event, exporter, &bench, &cycles[i]);
		n_lost += METRICS * SERIES - cycles[i].n_lines;
		n_inexact += cycles[i].sum != cycles[i].wanted_sum;
	}
	qsort(cycles, n_cycles, sizeof(cycles[0]), compare_cpu);
	print(way, "known", &cycles[n_cycles / 2], (exporter->stats.points[POINTS_DELIVERED] - n_exported) / n_cycles);
	if (way->transport != HTTP)
		printf("%-28s known cycles: %zu, lines lost in all of them: %" PRIu64 ", sums that differ: %" PRIu64 "\n",
		       way->name, n_cycles, n_lost, n_inexact);
	exporter_free(exporter);
	setting_table_done(ops->settings, options);
	free(options);
	sd_event_unref(context.event);
	bench_metrics_done(&bench);
	stop_receiver(receiver, endpoint);
}

/* In a process of its own: what one way has left in memory is nothing to the next one. */
static void measure_apart(const struct way *way, size_t n_cycles)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		abort();
	if (!pid) {
		malloc_trim(0); /* free memory goes back as it does in the agent */
		measure(way, n_cycles);
		exit(0);
	}
	if (waitpid(pid, &status, 0) < 0 || status)
		abort();
}

int main(int argc, char **argv)
{
	size_t n_cycles = argc > 1 ? strtoul(argv[1], NULL, 10) : 5;

	if (!n_cycles || n_cycles > CYCLES_MAX)
		return 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	received = mmap(NULL, sizeof(*received), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (received == MAP_FAILED)
		return 1;
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
		if (argc < 3 || strstr(ways[i].name, argv[2]))
			measure_apart(&ways[i], n_cycles);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#define START_NS    UINT64_C(1800000000000000000)
#define INTERVAL_NS UINT64_C(10000000000)

enum { CALLS, DURATION, CPU, SIZES, SOCKETS, NOTHING, LENGTHS, WAITS };

/* Of queues, and in microseconds. */
static const struct histogram_bound length_bounds[] = { { 0 }, { 49 }, { 1099 } },
				    wait_bounds[] = { { 1 }, { 10 }, { 2500000 } };

static const struct metric literals[FIXTURE_METRICS] = {
	[CALLS] = { .scope = "syscalls", .name = "bpfpush.syscalls", .unit = "{call}",
		    .description = "System calls.", .kind = METRIC_SUM, .divisor = 1 },
	[DURATION] = { .scope = "syscalls", .name = "bpfpush.syscall.duration", .unit = "s", .description = "",
		       .kind = METRIC_HISTOGRAM, .divisor = 1000000000,
		       .layout = { 0, -30, 48, .n_explicit = 20, .first = 10, .step = 2 } },
	[CPU] = { .scope = "scheduler", .name = "bpfpush.scheduler.cpu.time", .unit = "s",
		  .description = "Time on a CPU.", .kind = METRIC_SUM, .divisor = 1000000000 },
	[SIZES] = { .scope = "scheduler", .name = "example.size", .unit = "By", .description = "",
		    .kind = METRIC_HISTOGRAM, .divisor = 1, .layout = { 0, -1, 6 } },
	[SOCKETS] = { .scope = "scheduler", .name = "example.open", .unit = "{socket}", .description = "",
		      .kind = METRIC_GAUGE, .is_updown = true, .divisor = 1 },
	[NOTHING] = { .scope = "nothing", .name = "example.nothing", .unit = "1", .description = "",
		      .kind = METRIC_SUM, .divisor = 1 },
	[LENGTHS] = { .scope = "queue", .name = "example.length", .unit = "{packet}", .description = "",
		      .kind = METRIC_HISTOGRAM, .divisor = 1, .layout = { .n_buckets = 4, .bounds = length_bounds } },
	[WAITS] = { .scope = "queue", .name = "example.wait", .unit = "s", .description = "",
		    .kind = METRIC_HISTOGRAM, .divisor = 1000000,
		    .layout = { .n_buckets = 4, .has_no_sum = true, .bounds = wait_bounds } },
};

/* attributes: "name=text" each, ended by NULL; a text of "#5" is a number. */
static struct series *add(struct metric *metric, uint64_t start_ns, const char *const *texts)
{
	struct attributes attributes;
	struct series *series;
	char name[8][64];

	attributes_init(&attributes);
	for (int i = 0; texts[i]; i++) {
		const char *equals = strchr(texts[i], '=');
		size_t size = (size_t)(equals - texts[i]);

		memcpy(name[i], texts[i], size);
		name[i][size] = '\0';
		if (equals[1] == '#')
			attributes_add_number(&attributes, name[i], atoll(equals + 2));
		else if (!strcmp(name[i], "code.stacktrace"))
			attributes_add_lines(&attributes, name[i], equals + 1, strlen(equals + 1));
		else
			attributes_add_text(&attributes, name[i], equals + 1, strlen(equals + 1));
	}
	if (series_get(metric, &attributes, start_ns, &series) < 0)
		abort();
	return series;
}

#define ADD(metric, start_ns, ...) add(metric, start_ns, (const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

static void first_round(struct fixture *fixture, struct series **series)
{
	struct metric *metrics = fixture->metrics;
	uint64_t time[48] = { 0 }, size[6] = { 1, 0, 2, 0, 0, 1 }, few[4] = { 1, 2, 0, 3 };

	series[0] = ADD(&metrics[CALLS], START_NS, "bpfpush.syscall.name=read", "systemd.unit.name=cron.service");
	series[1] = ADD(&metrics[CALLS], START_NS, "bpfpush.syscall.name=openat", "error.type=ENOENT",
			"process.executable.name=evil \"\\\n,x", "process.pid=#-7");
	series[2] = ADD(&metrics[CALLS], START_NS, "bpfpush.syscall.name=write", "systemd.unit.name=caf\xc3\xa9.service");
	series[3] = ADD(&metrics[DURATION], START_NS, "bpfpush.syscall.name=read");
	series[4] = ADD(&metrics[DURATION], START_NS, "bpfpush.syscall.name=write");
	series[5] = ADD(&metrics[CPU], START_NS, "code.stacktrace=inner\nouter");
	series[6] = ADD(&metrics[SIZES], START_NS, NULL);
	series[7] = ADD(&metrics[SOCKETS], START_NS, "network.connection.state=established");
	series[8] = ADD(&metrics[SOCKETS], START_NS, "network.connection.state=time_wait");
	series_add(series[0], 1000);
	series_add(series[1], 3);
	series_add(series[2], UINT64_C(9007199254740993)); /* 2^53 + 1: no double */
	time[0] = 1, time[10] = 5, time[11] = 2;
	series_add_histogram(series[3], 123456789, time);
	memset(time, 0, sizeof(time));
	time[47] = 1;
	series_add_histogram(series[4], UINT64_C(200000000000001), time);
	series_add(series[5], 1500000001);
	series_add_histogram(series[6], 40, size);
	series[9] = ADD(&metrics[SIZES], START_NS, "systemd.unit.name=gone.service");
	series[10] = ADD(&metrics[SOCKETS], START_NS, "network.connection.state=gone");
	series[11] = ADD(&metrics[CPU], START_NS, "systemd.unit.name=gone.service");
	series_add_histogram(series[9], 40, size);
	series_add_histogram(ADD(&metrics[LENGTHS], START_NS, NULL), 5100, few);
	series_add_histogram(ADD(&metrics[WAITS], START_NS, "network.local.port=#443"), 0, few);
	series_add(series[10], 3);
	series_add(series[11], 3);
}

void fixture_init(struct fixture *fixture)
{
	struct series *series[12], *late, *refused, *fresh;
	uint64_t time[48] = { 0 }, few[4] = { 0, 1, 4, 0 };

	memcpy(fixture->metrics, literals, sizeof(literals));
	fixture->budget = (struct budget){ .limit_series = 3 };
	for (int i = 0; i < FIXTURE_METRICS; i++) {
		metric_init_series(&fixture->metrics[i], i == CALLS ? &fixture->budget : NULL);
		fixture->pointers[i] = &fixture->metrics[i];
	}
	fixture->batch = (struct batch){ .time_ns = START_NS + 2 * INTERVAL_NS, .previous_ns = START_NS + INTERVAL_NS,
					 .metrics = fixture->pointers, .n_metrics = FIXTURE_METRICS };
	for (int i = 0; i < FIXTURE_METRICS; i++)
		series_begin(&fixture->metrics[i]);
	first_round(fixture, series);
	for (int i = 0; i < FIXTURE_METRICS; i++)
		series_end(&fixture->metrics[i]);

	for (int i = 9; i < 12; i++)
		series_put(series[i]);
	for (int i = 0; i < FIXTURE_METRICS; i++)
		series_begin(&fixture->metrics[i]);
	late = ADD(&fixture->metrics[CALLS], START_NS + INTERVAL_NS, "bpfpush.syscall.name=late");
	series_add(late, 9); /* the fourth, so an overflow series */
	if (series_get_overflow(&fixture->metrics[CALLS], OVERFLOW_TABLE, START_NS + INTERVAL_NS, &refused) < 0)
		abort();
	series_add(refused, 5);
	fresh = ADD(&fixture->metrics[DURATION], START_NS + INTERVAL_NS, "bpfpush.syscall.name=fresh");
	time[11] = 1;
	series_add_histogram(fresh, 1000, time);
	series_add_histogram(fixture->metrics[LENGTHS].series[0], 250, few);
	series_add_histogram(fixture->metrics[WAITS].series[0], 0, few);
	series_add(series[0], 234);
	series_add(series[2], 1);
	time[11] = 3;
	series_add_histogram(series[3], 3000000, time);
	series_add(series[5], 250000000);
	series_add(series[7], 12);
	for (int i = 0; i < FIXTURE_METRICS; i++)
		series_end(&fixture->metrics[i]);
}

void fixture_done(struct fixture *fixture)
{
	for (int i = 0; i < FIXTURE_METRICS; i++)
		metric_done_series(&fixture->metrics[i]);
}

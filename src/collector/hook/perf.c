/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perf_event programs: an event on each CPU that is online. Which CPUs these are is not asked: the
 * kernel refuses an event on another CPU, and the time of an event whose CPU has gone stands still.
 */
#include "collector/hook/perf.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collector/descriptor.h"
#include "collector/hook/target.h"
#include "collector/program.h"
#include "util/array.h"
#include "util/cleanup.h"
#include "util/parse.h"

#define FREQUENCY 99 /* not in step with what happens 100 times a second */

#define HARDWARE(event) PERF_TYPE_HARDWARE, PERF_COUNT_HW_##event
#define SOFTWARE(event) PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##event
#define CACHE(name)	PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_##name
#define OPERATION(name, result) \
	PERF_TYPE_HW_CACHE, \
		PERF_COUNT_HW_CACHE_OP_##name << 8 | PERF_COUNT_HW_CACHE_RESULT_##result << 16

static const struct event {
	const char *name; /* of a cache: what precedes that of an operation */
	uint32_t type;
	uint64_t config;
	bool is_each; /* each of them is an occurrence that can be counted */
} events[] = {
	{ "cycles", HARDWARE(CPU_CYCLES) }, { "cpu-cycles", HARDWARE(CPU_CYCLES) },
	{ "instructions", HARDWARE(INSTRUCTIONS) }, { "ref-cycles", HARDWARE(REF_CPU_CYCLES) },
	{ "cache-references", HARDWARE(CACHE_REFERENCES) }, { "cache-misses", HARDWARE(CACHE_MISSES) },
	{ "branches", HARDWARE(BRANCH_INSTRUCTIONS) }, { "branch-misses", HARDWARE(BRANCH_MISSES) },
	{ "stalled-cycles-frontend", HARDWARE(STALLED_CYCLES_FRONTEND) }, { "bus-cycles", HARDWARE(BUS_CYCLES) },
	{ "stalled-cycles-backend", HARDWARE(STALLED_CYCLES_BACKEND) },
	{ "cpu-clock", SOFTWARE(CPU_CLOCK) }, { "task-clock", SOFTWARE(TASK_CLOCK) },
	{ "page-faults", SOFTWARE(PAGE_FAULTS), true }, { "minor-faults", SOFTWARE(PAGE_FAULTS_MIN), true },
	{ "major-faults", SOFTWARE(PAGE_FAULTS_MAJ), true }, { "context-switches", SOFTWARE(CONTEXT_SWITCHES), true },
	{ "cpu-migrations", SOFTWARE(CPU_MIGRATIONS), true }, { "cgroup-switches", SOFTWARE(CGROUP_SWITCHES), true },
	{ "alignment-faults", SOFTWARE(ALIGNMENT_FAULTS), true }, { "emulation-faults", SOFTWARE(EMULATION_FAULTS), true },
}, caches[] = {
	{ "L1-dcache", CACHE(L1D) }, { "L1-icache", CACHE(L1I) }, { "LLC", CACHE(LL) },	  { "dTLB", CACHE(DTLB) },
	{ "iTLB", CACHE(ITLB) },     { "branch", CACHE(BPU) },	  { "node", CACHE(NODE) },
}, operations[] = {
	{ "-loads", OPERATION(READ, ACCESS) },	       { "-load-misses", OPERATION(READ, MISS) },
	{ "-stores", OPERATION(WRITE, ACCESS) },       { "-store-misses", OPERATION(WRITE, MISS) },
	{ "-prefetches", OPERATION(PREFETCH, ACCESS) }, { "-prefetch-misses", OPERATION(PREFETCH, MISS) },
};

static void set_rate(struct perf_event_attr *attributes, bool is_frequency, uint64_t number)
{
	attributes->freq = is_frequency;
	attributes->sample_period = number; /* the same place as sample_freq */
}

static bool find_cache(const char *name, struct perf_event_attr *attributes)
{
	const struct event *operation = NULL;

	array_for_each (cache, caches, ARRAY_SIZE(caches)) {
		size_t length = strlen(cache->name);

		if (strncmp(name, cache->name, length))
			continue;
		operation = array_find(operations, ARRAY_SIZE(operations), name + length);
		attributes->type = cache->type;
		attributes->config = cache->config | (operation ? operation->config : 0);
	}
	return operation;
}

/* r1a2: as the processor's manual numbers it. */
static bool find_raw(const char *name, struct perf_event_attr *attributes)
{
	size_t n = *name == 'r' ? strspn(name + 1, "0123456789abcdefABCDEF") : 0;

	attributes->type = PERF_TYPE_RAW;
	attributes->config = n ? strtoull(name + 1, NULL, 16) : 0;
	return n && n <= 16 && !name[n + 1];
}

/* type=0,config=3,frequency=99 */
static bool find_numbers(const char *text, struct perf_event_attr *attributes)
{
	char key[16], number[24];
	uint64_t value;
	int length;

	for (; *text; text += length + (text[length] == ',')) {
		if (sscanf(text, "%15[a-z_]=%23[0-9a-fx]%n", key, number, &length) != 2 || parse_u64(number, &value))
			return false;
		if (!strcmp(key, "type") && value <= UINT32_MAX)
			attributes->type = (uint32_t)value;
		else if (!strcmp(key, "config"))
			attributes->config = value;
		else if (!strcmp(key, "frequency") || !strcmp(key, "period") || !strcmp(key, "sample_period"))
			set_rate(attributes, *key == 'f', value);
		else
			return false;
	}
	return true;
}

bool perf_find(const char *name, struct perf_event_attr *attributes)
{
	const struct event *event = array_find(events, ARRAY_SIZE(events), name);

	*attributes = (struct perf_event_attr){ .size = sizeof(*attributes) };
	attributes->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
	set_rate(attributes, !event || !event->is_each, event && event->is_each ? 1 : FREQUENCY);
	if (event) {
		attributes->type = event->type;
		attributes->config = event->config;
		return true;
	}
	return strchr(name, '=') ? find_numbers(name, attributes) :
				   find_cache(name, attributes) || find_raw(name, attributes);
}

/*
 * What is asked for is stronger than what the event says. The grammar has complained of other
 * texts.
 */
static void ask_rate(struct perf_event_attr *attributes, const char *frequency, const char *period)
{
	uint64_t number;

	if ((frequency || period) && !parse_u64(frequency ?: period, &number) && number)
		set_rate(attributes, frequency, number);
}

static uint64_t frequency_limit(void)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/sys/kernel/perf_event_max_sample_rate", "re");
	uint64_t limit;

	return f && fscanf(f, "%" SCNu64, &limit) == 1 ? limit : UINT64_MAX;
}

/*
 * Each period of a clock is an interrupt, and below 10000 ns the kernel makes it longer but says
 * the shorter one.
 */
const char *perf_complaint(const char *event, const char *frequency, const char *period)
{
	struct perf_event_attr attributes;
	bool is_clock;

	if (!perf_find(event, &attributes))
		return "no event has this name; write one like cycles, cache-misses, L1-dcache-load-misses, page-faults, cpu-clock or r1a2";
	ask_rate(&attributes, frequency, period);
	is_clock = attributes.type == PERF_TYPE_SOFTWARE &&
		   attributes.config <= PERF_COUNT_SW_TASK_CLOCK;
	if (!attributes.sample_period || (!attributes.freq && attributes.sample_period >> 63))
		return "the kernel takes no frequency or period of 0, and no period of 2^63 or more; write one in between";
	if (attributes.freq && attributes.sample_freq > frequency_limit())
		return "the kernel takes no frequency above its sysctl kernel.perf_event_max_sample_rate; write a smaller one";
	if (is_clock &&
	    (attributes.freq ? attributes.sample_freq > 10000 : attributes.sample_period < 100000))
		return "a clock that runs the program so often would leave a CPU little time for other work; write a frequency of "
		       "10000 or less, or a period of 100000 (ns) or more";
	return NULL;
}

bool perf_is_counted(const char *event)
{
	_cleanup_(closep) int fd = -1;
	struct perf_event_attr attributes;

	if (!perf_find(event, &attributes))
		return false;
	attributes.disabled = true;
	attributes.exclude_kernel = attributes.exclude_hv = true;
	fd = (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd >= 0 || (errno != ENOENT && errno != EOPNOTSUPP);
}

/* The kernel counts on while the event's CPU is there. */
static bool is_alive(struct hook_link *item)
{
	uint64_t numbers[2]; /* the count, the time */

	if (read(item->fd, numbers, sizeof(numbers)) != sizeof(numbers) ||
	    numbers[1] == item->time_ns)
		return false;
	item->time_ns = numbers[1];
	return true;
}

/* -ENODEV: the CPU is offline. */
static int renew_event(struct bpf_program *bpf, struct perf_event_attr *attributes, int cpu,
		       struct hook_link *item)
{
	_cleanup_(closep) int fd = -1;

	bpf_link__destroy(item->link);
	fd = (int)syscall(SYS_perf_event_open, attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	*item = (struct hook_link){ .link = fd < 0 ? NULL :
					    bpf_program__attach_perf_event(bpf, fd) };
	if (!item->link)
		return -errno;
	item->fd = TAKE_FD(fd); /* it is the link's now */
	return 0;
}

int perf_attach(const struct bpf_object *object, struct program *program, struct bpf_program *bpf)
{
	const struct descriptor_program *how = program->how;
	struct perf_event_attr attributes;
	int n_cpus = libbpf_num_possible_cpus(), err = 0, n = 0;

	if (!perf_find(target_of(program->section), &attributes))
		return -EINVAL;
	if (how)
		ask_rate(&attributes, how->frequency, how->period);
	if (!program->links)
		program->links = calloc((size_t)n_cpus, sizeof(*program->links));
	if (!program->links)
		return -ENOMEM;
	program->n_links = (size_t)n_cpus;
	for (int cpu = 0; cpu < n_cpus; cpu++) {
		struct hook_link *item = &program->links[cpu];
		int r = item->link && is_alive(item) ? 0 : renew_event(bpf, &attributes, cpu, item);

		n += !r;
		if (r && r != -ENODEV)
			err = r;
	}
	return err || n ? err : -ENODEV;
}

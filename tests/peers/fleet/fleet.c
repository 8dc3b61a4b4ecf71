/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many machines in one process: an exporter of type otlp for each, which pushes at the moment of its machine, as the
 * agent does.
 *
 *     fleet [--first=N] [--machines=N] [--series=N] [--interval=MS] [--pushes=N] [--at=NS] KEY=VALUE…
 *
 * KEY=VALUE are options of the exporters. All machines start at the moment --at of CLOCK_BOOTTIME. Push i (from 1) adds
 * i * (machine + 1) * (series + 1) to each series. When all is sent, or five minutes after the last push, this ends and
 * prints a line for each push and request, and a JSON object:
 *
 *     push MACHINE NS         when it was due, CLOCK_BOOTTIME
 *     request MACHINE NS      when it was given to libcurl
 *     {"pushed": POINTS, …}   what all exporters together counted
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "accounted.h"
#include "metric/series.h"
#include "options.h"
#include "util/duration.h"
#include "util/log.h"
#include "util/phase.h"

struct fleet;

struct machine {
	struct fleet *fleet;
	unsigned int number, n_pushed;
	char id[64];
	struct attribute resource[2];
	struct exporter_context context;
	struct exporter *exporter;
	struct metric metric;
	struct series **series;
	uint64_t next_ns;     /* CLOCK_BOOTTIME */
	uint64_t previous_ns; /* Unix time */
	uint64_t n_requests;  /* seen */
};

struct fleet {
	unsigned int first, n_machines, n_series, interval_ms, n_pushes;
	uint64_t at_ns;
	const struct exporter_ops *ops;
	void *options;
	struct machine *machines;
	sd_event *event;
	unsigned int n_done; /* machines that have pushed all */
	uint64_t done_ns;
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void push(struct machine *machine)
{
	struct metric *metrics[] = { &machine->metric };
	struct batch batch = { .time_ns = clock_ns(CLOCK_REALTIME), .previous_ns = machine->previous_ns,
			       .metrics = metrics, .n_metrics = 1 };

	machine->n_pushed++;
	series_begin(&machine->metric);
	for (unsigned int i = 0; i < machine->fleet->n_series; i++)
		series_add(machine->series[i], (uint64_t)machine->n_pushed * (machine->number + 1) * (i + 1));
	series_end(&machine->metric);
	(void)exporter_encode(machine->exporter, &batch);
	exporter_send(machine->exporter, &batch);
	machine->previous_ns = batch.time_ns;
}

static int on_time(sd_event_source *source, uint64_t usec, void *user)
{
	struct machine *machine = user;
	struct fleet *fleet = machine->fleet;

	printf("push %u %" PRIu64 "\n", machine->number, machine->next_ns);
	push(machine);
	if (machine->n_pushed == fleet->n_pushes) {
		fleet->n_done++;
		fleet->done_ns = clock_ns(CLOCK_BOOTTIME);
		return 0;
	}
	do
		machine->next_ns += fleet->interval_ms * NS_PER_MS;
	while (machine->next_ns <= clock_ns(CLOCK_BOOTTIME));
	sd_event_source_set_time(source, machine->next_ns / NS_PER_US);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static void add_series(struct machine *machine)
{
	metric_init_series(&machine->metric, NULL);
	machine->series = calloc(machine->fleet->n_series, sizeof(*machine->series));
	for (unsigned int i = 0; i < machine->fleet->n_series; i++) {
		struct attributes attributes;
		char unit[64];
		int size = snprintf(unit, sizeof(unit), "some-%u.service", i / 10);

		attributes_init(&attributes);
		attributes_add_number(&attributes, "n", i);
		attributes_add_text(&attributes, "systemd.unit.name", unit, (size_t)size);
		if (series_get(&machine->metric, &attributes, machine->previous_ns, &machine->series[i]) < 0)
			abort();
	}
}

static void open_machine(struct fleet *fleet, unsigned int i)
{
	struct machine *machine = &fleet->machines[i];
	uint64_t start_ns = clock_ns(CLOCK_REALTIME) + fleet->at_ns - clock_ns(CLOCK_BOOTTIME);

	*machine = (struct machine){
		.fleet = fleet,
		.number = fleet->first + i,
		.resource = { { .name = "service.instance.id", .type = ATTRIBUTE_TEXT, .text = machine->id },
			      { .name = "service.name", .type = ATTRIBUTE_TEXT, .text = "bpfpush" } },
		.context = { .event = fleet->event, .resource = machine->resource, .n_resource = 2, .version = "1.2.3",
			     .interval_ns = fleet->interval_ms * NS_PER_MS },
		.metric = { .scope = "test", .name = "test.count", .unit = "{thing}", .description = "Things.",
			    .kind = METRIC_SUM, .divisor = 1 },
		.previous_ns = start_ns,
	};
	snprintf(machine->id, sizeof(machine->id), "machine-%u", machine->number);
	add_series(machine);
	if (exporter_open("test", fleet->ops, fleet->options, &machine->context, &machine->exporter) < 0)
		exit(1);
	machine->next_ns = fleet->at_ns + phase_delay_ns(machine->id, machine->context.interval_ns, start_ns);
	if (sd_event_add_time(fleet->event, NULL, CLOCK_BOOTTIME, machine->next_ns / NS_PER_US, NS_PER_MS / NS_PER_US,
			      on_time, machine) < 0)
		abort();
}

/* Notes which machines have begun a request since the last look, at most a millisecond ago; are all idle? */
static bool look(struct fleet *fleet)
{
	bool is_idle = true;

	for (unsigned int i = 0; i < fleet->n_machines; i++) {
		struct machine *machine = &fleet->machines[i];

		is_idle = is_idle && exporter_is_idle(machine->exporter);
		if (machine->n_requests == machine->exporter->stats.requests)
			continue;
		machine->n_requests = machine->exporter->stats.requests;
		printf("request %u %" PRIu64 "\n", machine->number, clock_ns(CLOCK_BOOTTIME));
	}
	return is_idle;
}

static void run(struct fleet *fleet)
{
	bool is_over = false;
	uint64_t looked_ns = 0;

	while (!is_over) {
		if (sd_event_run(fleet->event, 100 * NS_PER_MS / NS_PER_US) < 0)
			abort();
		if (clock_ns(CLOCK_BOOTTIME) < looked_ns + NS_PER_MS)
			continue;
		looked_ns = clock_ns(CLOCK_BOOTTIME);
		is_over = look(fleet) && fleet->n_done == fleet->n_machines;
		is_over |= fleet->done_ns && clock_ns(CLOCK_BOOTTIME) > fleet->done_ns + 300 * NS_PER_S;
	}
}

static void print(const struct fleet *fleet)
{
	const char *const names[N_POINTS] = {
		[POINTS_PUSHED] = "pushed", [POINTS_DELIVERED] = "delivered", [POINTS_REJECTED] = "rejected",
		[POINTS_QUEUE_FULL] = "queue_full", [POINTS_TOO_LARGE] = "too_large", [POINTS_NOT_SENT] = "not_sent",
		[POINTS_CONNECTION_REFUSED] = "refused", [POINTS_UNSUPPORTED] = "unsupported",
		[POINTS_IN_DOUBT] = "in_doubt",
	};
	uint64_t points[N_POINTS] = { 0 }, doubtful_values = 0, bytes_sent = 0, requests = 0;

	for (unsigned int i = 0; i < fleet->n_machines; i++) {
		const struct exporter *exporter = fleet->machines[i].exporter;

		if (!is_accounted(exporter))
			abort();
		for (enum points fate = 0; fate < N_POINTS; fate++)
			points[fate] += exporter->stats.points[fate];
		doubtful_values += exporter->stats.doubtful_values;
		bytes_sent += exporter->stats.bytes_sent;
		requests += exporter->stats.requests;
	}
	printf("{");
	for (enum points fate = 0; fate < N_POINTS; fate++)
		printf("\"%s\": %" PRIu64 ", ", names[fate], points[fate]);
	printf("\"doubtful_values\": %" PRIu64 ", \"requests\": %" PRIu64 ", \"bytes_sent\": %" PRIu64 "}\n",
	       doubtful_values, requests, bytes_sent);
}

static void read_arguments(struct fleet *fleet, int argc, char **argv, char **ret_words)
{
	for (int i = 1; i < argc; i++)
		if (sscanf(argv[i], "--first=%u", &fleet->first) != 1 &&
		    sscanf(argv[i], "--machines=%u", &fleet->n_machines) != 1 &&
		    sscanf(argv[i], "--series=%u", &fleet->n_series) != 1 &&
		    sscanf(argv[i], "--interval=%u", &fleet->interval_ms) != 1 &&
		    sscanf(argv[i], "--pushes=%u", &fleet->n_pushes) != 1 &&
		    sscanf(argv[i], "--at=%" SCNu64, &fleet->at_ns) != 1)
			*ret_words++ = argv[i];
}

int main(int argc, char **argv)
{
	struct fleet fleet = { .n_machines = 1, .n_series = 10, .interval_ms = 10000, .n_pushes = 1,
			       .at_ns = clock_ns(CLOCK_BOOTTIME), .ops = exporter_find("otlp") };
	char **words = calloc((size_t)argc, sizeof(*words));
	struct rlimit files;

	sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	log_init(LOG_LEVEL_ERROR);
	read_arguments(&fleet, argc, argv, words);
	fleet.options = read_options(fleet.ops, words);
	fleet.machines = calloc(fleet.n_machines, sizeof(*fleet.machines));
	if (!fleet.machines || sd_event_new(&fleet.event) < 0)
		abort();
	for (unsigned int i = 0; i < fleet.n_machines; i++)
		open_machine(&fleet, i);
	run(&fleet);
	print(&fleet);
	for (unsigned int i = 0; i < fleet.n_machines; i++) {
		exporter_free(fleet.machines[i].exporter);
		metric_done_series(&fleet.machines[i].metric);
		free(fleet.machines[i].series);
	}
	sd_event_unref(fleet.event);
	setting_table_done(fleet.ops->settings, fleet.options);
	free(fleet.options);
	free(fleet.machines);
	free(words);
	return 0;
}

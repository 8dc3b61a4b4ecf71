/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens an exporter of type otlp as the agent does, pushes literal batches, turns the loop until all is
 * settled, and prints what the exporter counted as one JSON object.
 *
 *     push-otlp [--batches=N | --on-demand] [--pause=MS] [--interval=MS] [--attempts=N] [--series=N] KEY=VALUE…
 *
 * KEY=VALUE are options of the exporter. Batch i has N series with i + 1 more than before, at time i + 2 s.
 * None of them is new. They come after --pause; --interval is what the exporter takes for the time between two.
 * --on-demand: there is a batch for each byte on stdin, until its end. After an "l" it is one at the end.
 * --attempts=N: it ends after so many attempts, whatever waits.
 * While it runs, it prints "pushed" for each batch, and "began US" and "ended US" for each attempt, by the loop's clock.
 * Exit status 2: the options were refused, with the reasons on stderr.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "accounted.h"
#include "export/transport/timer.h"
#include "metric/series.h"
#include "options.h"
#include "util/duration.h"
#include "util/log.h"

struct push {
	unsigned int n_batches, pause_ms, n_attempts, n_series, n_pushed;
	unsigned int n_begun, n_ended; /* attempts */
	bool is_on_demand; /* more batches may be asked for */
	bool has_last; /* the last batch is one at the end */
	struct exporter *exporter;
	struct metric metric;
	struct series **series;
	sd_event *event;
};

static void add_series(struct push *push)
{
	metric_init_series(&push->metric, NULL);
	push->series = calloc(push->n_series, sizeof(*push->series));
	for (unsigned int i = 0; i < push->n_series; i++) {
		struct attributes attributes;

		attributes_init(&attributes);
		attributes_add_number(&attributes, "n", i);
		if (series_get(&push->metric, &attributes, 500000000, &push->series[i]) < 0)
			abort();
	}
}

static void push_batch(struct push *push)
{
	struct metric *metrics[] = { &push->metric };
	struct batch batch = { .metrics = metrics, .n_metrics = 1 };

	series_begin(&push->metric);
	for (unsigned int i = 0; i < push->n_series; i++)
		series_add(push->series[i], push->n_pushed + 1);
	series_end(&push->metric);
	batch.previous_ns = (push->n_pushed + 1) * NS_PER_S;
	batch.time_ns = batch.previous_ns + NS_PER_S;
	batch.is_last = push->has_last && push->n_pushed + 1 == push->n_batches;
	(void)exporter_encode(push->exporter, &batch);
	exporter_send(push->exporter, &batch);
	push->n_pushed++;
	printf("pushed\n");
}

static void read_demand(struct push *push)
{
	char bytes[64];
	ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

	push->is_on_demand = n != 0;
	if (n <= 0)
		return;
	push->n_batches += (unsigned int)n;
	push->has_last = bytes[n - 1] == 'l';
}

static int on_tick(sd_event_source *source, uint64_t usec, void *user)
{
	struct push *push = user;
	uint64_t pause_us = 5000;

	if (push->is_on_demand)
		read_demand(push);
	if (push->n_pushed < push->n_batches) {
		push_batch(push);
		pause_us = push->pause_ms * UINT64_C(1000);
	} else if (!push->is_on_demand && (exporter_is_idle(push->exporter) ||
					   (push->n_attempts && push->n_ended >= push->n_attempts))) {
		return sd_event_exit(push->event, 0);
	} else if (!push->n_batches && !push->exporter->stats.requests) {
		exporter_send(push->exporter, &(struct batch){ 0 });
	}
	sd_event_source_set_time_relative(source, pause_us);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/*
 * After each turn of the loop. An attempt ends in a later turn than that in which it began, maybe in that in which the
 * next one begins.
 */
static void trace(struct push *push)
{
	const struct exporter_stats *stats = &push->exporter->stats;
	uint64_t now_us = timer_now_ns(push->event) / NS_PER_US;
	bool is_begun = stats->requests != push->n_begun;

	if (push->n_ended < push->n_begun && (is_begun || !stats->asked_ns)) {
		printf("ended %" PRIu64 "\n", now_us);
		push->n_ended++;
	}
	if (is_begun) {
		printf("began %" PRIu64 "\n", now_us);
		push->n_begun++;
	}
	fflush(stdout);
}

static void print(const struct push *push)
{
	const struct exporter_stats *stats = &push->exporter->stats;
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {
		{ "pushed", stats->points[POINTS_PUSHED] },
		{ "exported", stats->points[POINTS_DELIVERED] },
		{ "rejected", stats->points[POINTS_REJECTED] },
		{ "dropped_queue", stats->points[POINTS_QUEUE_FULL] },
		{ "dropped_size", stats->points[POINTS_TOO_LARGE] },
		{ "dropped_error", stats->points[POINTS_NOT_SENT] },
		{ "dropped_doubt", stats->points[POINTS_IN_DOUBT] },
		{ "doubtful_points", stats->doubtful_points },
		{ "doubtful_values", stats->doubtful_values },
		{ "inflight", exporter_waiting(push->exporter).n_points },
		{ "requests", stats->requests },
		{ "retries", stats->retries },
		{ "bytes_sent", stats->bytes_sent },
		{ "queue_bytes", exporter_waiting(push->exporter).n_bytes },
		{ "is_failing", stats->is_failing },
		{ "is_idle", exporter_is_idle(push->exporter) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		printf("%s\"%s\": %" PRIu64, i ? ", " : "{", rows[i].name, rows[i].value);
	printf("}\n");
}

static void say_saved(void *user)
{
	const struct push *push = user;

	fprintf(stderr, "saved after %" PRIu64 "\n", push->exporter->stats.requests);
}

static void read_arguments(struct push *push, struct exporter_context *context, int argc, char **argv, char **ret_words)
{
	unsigned int interval_ms = 0;

	for (int i = 1; i < argc; i++) {
		if (sscanf(argv[i], "--batches=%u", &push->n_batches) == 1 ||
		    sscanf(argv[i], "--pause=%u", &push->pause_ms) == 1 ||
		    sscanf(argv[i], "--attempts=%u", &push->n_attempts) == 1 ||
		    sscanf(argv[i], "--series=%u", &push->n_series) == 1 ||
		    sscanf(argv[i], "--interval=%u", &interval_ms) == 1)
			continue;
		if (!strcmp(argv[i], "--on-demand")) {
			push->is_on_demand = !fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
			push->n_batches = 0;
			continue;
		}
		if (!strchr(argv[i], '=')) {
			fprintf(stderr, "%s: not KEY=VALUE\n", argv[i]);
			exit(1);
		}
		*ret_words++ = argv[i];
	}
	context->interval_ns = interval_ms * NS_PER_MS;
}

int main(int argc, char **argv)
{
	const struct attribute resource[] = { { .name = "service.name", .type = ATTRIBUTE_TEXT, .text = "test" } };
	struct push push = {
		.n_batches = 1,
		.pause_ms = 10,
		.n_series = 10,
		.metric = { .scope = "test", .name = "test.count", .unit = "{thing}", .description = "Things.",
			    .kind = METRIC_SUM, .divisor = 1 },
	};
	const struct exporter_ops *ops = exporter_find("otlp");
	struct exporter_context context = { .resource = resource, .n_resource = 1, .version = "1.2.3",
					    .save = say_saved, .save_user = &push };
	char **words = calloc((size_t)argc, sizeof(*words));
	void *options;

	sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	log_init(LOG_LEVEL_DEBUG);
	read_arguments(&push, &context, argc, argv, words);
	options = read_options(ops, words);
	add_series(&push);
	if (sd_event_new(&push.event) < 0)
		abort();
	context.event = push.event;
	if (exporter_open("test", ops, options, &context, &push.exporter) < 0)
		return 1;
	exporter_spool(push.exporter); /* as the agent does before the first batch */
	sd_event_add_time_relative(push.event, NULL, CLOCK_MONOTONIC, 0, 1, on_tick, &push);
	while (sd_event_get_state(push.event) != SD_EVENT_FINISHED && sd_event_run(push.event, UINT64_MAX) >= 0) {
		if (!is_accounted(push.exporter))
			abort();
		trace(&push);
	}
	print(&push);
	exporter_free(push.exporter);
	sd_event_unref(push.event);
	metric_done_series(&push.metric);
	setting_table_done(ops->settings, options);
	free(push.series);
	free(options);
	free(words);
	return 0;
}

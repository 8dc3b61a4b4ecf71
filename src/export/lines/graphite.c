/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphite's plaintext protocol over TCP, with the times of the collections: what arrives late lies in the graph
 * where it belongs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/lines/lines.h"
#include "export/transport/delivery.h"
#include "util/log.h"

/* Lines are queued, sent and dropped by pieces of this size. */
#define PIECE_BYTES 16384

#define SECOND_NS   UINT64_C(1000000000)
#define STANDING_NS UINT64_C(1000) /* no two collections are so near */

struct graphite_options {
	char *endpoint, *template;
	struct setting_list resource_attributes;
	int dialect, is_cumulative;
	bool sends_unchanged;
	uint64_t queue_bytes, confirm_every_ns, timeout_ns, retry_initial_ns, retry_max_ns;
};

struct graphite {
	struct exporter *exporter;
	uint64_t slot_s, time_ns; /* of the last batch; 0: none yet */
	struct lines *lines;
	struct delivery_client *client;
};

static const char *const temporalities[] = { "delta", "cumulative", NULL };

static int check_endpoint(const char *text, const char **ret_complaint)
{
	struct endpoint endpoint;

	return endpoint_parse(text, "2003", false, &endpoint, ret_complaint);
}

#define ROW(...) SETTING(struct graphite_options, __VA_ARGS__)

static const struct setting_row rows[] = {
	ROW(endpoint, "endpoint", SETTING_TEXT, "localhost:2003", .check = check_endpoint),
	ROW(dialect, "dialect", SETTING_CHOICE, "dotted", .choices = dialect_graphite_names),
	ROW(template, "template", SETTING_TEXT, NULL, .check = template_check),
	ROW(resource_attributes, "resource_attributes", SETTING_WORDS, "host.name"),
	ROW(is_cumulative, "temporality", SETTING_CHOICE, "delta", .choices = temporalities),
	ROW(sends_unchanged, "send_unchanged", SETTING_BOOL, "no"),
	ROW(queue_bytes, "queue_size", SETTING_SIZE, "16MiB", .minimum = 65536),
	ROW(confirm_every_ns, "confirm_every", SETTING_DURATION, "5m"),
	ROW(timeout_ns, "timeout", SETTING_DURATION, "10s", .minimum = 100000000),
	ROW(retry_initial_ns, "retry_initial", SETTING_DURATION, "1s", .minimum = 1000000),
	ROW(retry_max_ns, "retry_max", SETTING_DURATION, "30s", .minimum = 1000000),
};

static int graphite_check(const void *data, const char *path, unsigned int line, struct diag *diag)
{
	const struct graphite_options *options = data;

	if (options->confirm_every_ns && options->confirm_every_ns < SECOND_NS)
		diag_add(diag, path, line, "confirm_every: at least 1s, or 0");
	return naming_check(&options->resource_attributes, path, line, diag);
}

static int put(void *user, uint8_t *data, size_t size, size_t n_points)
{
	struct graphite *graphite = user;

	return delivery_client_put(graphite->client, data, size, n_points);
}

static void graphite_close(struct exporter *exporter)
{
	struct graphite *graphite = exporter->state;

	if (!graphite)
		return;
	lines_free(graphite->lines);
	delivery_client_free(graphite->client);
	free(graphite);
	exporter->state = NULL;
}

static int open_client(struct graphite *graphite, const struct graphite_options *options)
{
	struct delivery_options delivery = {
		.queue_bytes = options->queue_bytes,
		.confirm_every_ns = options->confirm_every_ns,
		.timeout_ns = options->timeout_ns,
		.retry_initial_ns = options->retry_initial_ns,
		.retry_max_ns = options->retry_max_ns,
	};
	struct exporter *exporter = graphite->exporter;
	const char *complaint;
	int err = endpoint_parse(options->endpoint, "2003", false, &delivery.endpoint, &complaint);

	if (err)
		return err;
	return delivery_client_new(exporter->context->event, &delivery, exporter, &graphite->client);
}

static int graphite_open(struct exporter *exporter, const void *data)
{
	const struct graphite_options *options = data;
	struct graphite *graphite = calloc(1, sizeof(*graphite));
	struct lines_options lines = {
		.is_cumulative = options->is_cumulative,
		.sends_unchanged = options->sends_unchanged,
		.pack = { .limit_bytes = PIECE_BYTES, .is_stream = true, .put = put, .user = graphite },
	};
	int err;

	if (!graphite)
		return -ENOMEM;
	exporter->state = graphite;
	graphite->exporter = exporter;
	err = open_client(graphite, options);
	if (!err)
		err = naming_init(&lines.naming, &dialect_table[DIALECT_DOTTED + options->dialect], options->template,
				  exporter->context->resource, exporter->context->n_resource,
				  &options->resource_attributes);
	if (!err)
		err = lines_new(&lines, exporter, &graphite->lines);
	if (err) {
		log_error("exporter %s: could not be set up: %s", exporter->name, strerror(-err));
		graphite_close(exporter);
	}
	return err;
}

/*
 * The time of a batch as Graphite keeps it: a slot of its storage, as long as the interval. A second point in a slot
 * replaces the first, and what that counted would be gone. So batches in one slot have lines of what happened in both
 * (lines.h), and no batch but the first has a slot that has not begun: it might be that of the next run. The slot
 * in which we began belongs to the run before: what happens in it counts for the one after.
 *
 * A batch that comes a moment late, over the end of its slot, keeps it: else one would be empty and another had two.
 * While the agent waits for a clock that was set back its times stand still, and slots go on with the intervals.
 */
static uint64_t next_slot(struct graphite *graphite, const struct batch *batch)
{
	uint64_t step_s = graphite->exporter->context->interval_ns / SECOND_NS ?: 1;
	uint64_t slot_s = batch->time_ns / SECOND_NS / step_s * step_s, least_s = graphite->slot_s;
	uint64_t passed_ns = batch->time_ns - graphite->time_ns;
	bool is_in_turn = !batch->is_last && passed_ns < step_s * SECOND_NS * 3 / 2;

	if (!graphite->slot_s)
		least_s = (batch->previous_ns / SECOND_NS / step_s + 1) * step_s;
	else if (passed_ns < STANDING_NS)
		least_s += step_s;
	else if (is_in_turn && slot_s == graphite->slot_s + 2 * step_s)
		slot_s -= step_s;
	graphite->slot_s = slot_s < least_s ? least_s : slot_s;
	graphite->time_ns = batch->time_ns;
	return graphite->slot_s;
}

static int graphite_push(struct exporter *exporter, const struct batch *batch)
{
	struct graphite *graphite = exporter->state;
	int err = lines_push(graphite->lines, batch, next_slot(graphite, batch), 0);

	if (batch->is_last)
		delivery_client_finish(graphite->client);
	else
		delivery_client_flush(graphite->client);
	return err;
}

static struct exporter_waiting graphite_waiting(const struct exporter *exporter)
{
	const struct graphite *graphite = exporter->state;

	return delivery_client_waiting(graphite->client);
}

static const struct setting_table graphite_settings = SETTING_TABLE(rows, struct graphite_options);

const struct exporter_ops graphite_exporter = {
	.type = "graphite",
	.settings = &graphite_settings,
	.check = graphite_check,
	.open = graphite_open,
	.push = graphite_push,
	.waiting = graphite_waiting,
	.close = graphite_close,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphite's plaintext protocol over TCP, with the times of the collections: what arrives late lies in the graph
 * where it belongs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/columns.h"
#include "export/lines/lines.h"
#include "export/transport/delivery.h"
#include "util/log.h"

/* Lines are queued, sent and dropped by pieces of this size. */
#define PIECE_BYTES 16384

#define SECOND_NS   UINT64_C(1000000000)
#define STANDING_NS UINT64_C(1000) /* no two collections are so near */

struct graphite_options {
	char *endpoint, *template;
	struct option_list resource_attributes;
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

#define ROW(member, name, kind, default_value, text, ...) \
	OPTION(struct graphite_options, member, name, kind, default_value, text, ##__VA_ARGS__)

static const struct option option_table[] = {
	ROW(endpoint, "endpoint", OPTION_TEXT, "localhost:2003", "HOST:PORT of the plaintext protocol, over TCP",
	    .check = check_endpoint),
	ROW(dialect, "dialect", OPTION_CHOICE, "dotted", "dotted puts attributes into the path, tagged makes them tags",
	    .choices = dialect_graphite_names),
	ROW(template, "template", OPTION_TEXT, NULL,
	    "the path, of text and {host}, {unit}, {metric}, {attributes}, {an.attribute}", .check = template_check),
	ROW(resource_attributes, "resource_attributes", OPTION_WORDS, "host.name",
	    "which attributes of the resource become tags"),
	ROW(is_cumulative, "temporality", OPTION_CHOICE, "delta",
	    "delta is what happened in an interval (NAME.count), cumulative the total since the start (NAME.total)",
	    .choices = temporalities),
	ROW(sends_unchanged, "send_unchanged", OPTION_BOOL, "no", "send a point for what did not happen, too"),
	ROW(queue_bytes, "queue_size", OPTION_SIZE, "16MiB",
	    "memory for lines that wait or are not confirmed; then the oldest go", .minimum = 65536),
	ROW(confirm_every_ns, "confirm_every", OPTION_DURATION, "5m",
	    "renew the connection, so that the receiver's close says that it has read all; 0: keep it, trust TCP"),
	ROW(timeout_ns, "timeout", OPTION_DURATION, "10s", "without progress before a connection is given up",
	    .minimum = 100000000),
	ROW(retry_initial_ns, "retry_initial", OPTION_DURATION, "1s",
	    "the first wait before another connection is up to this long", .minimum = 1000000),
	ROW(retry_max_ns, "retry_max", OPTION_DURATION, "30s", "no wait is longer", .minimum = 1000000),
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
	int err = delivery_client_put(graphite->client, data, size, n_points);

	if (err)
		graphite->exporter->stats.points_dropped_error += n_points;
	return err;
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
		err = lines_new(&lines, &exporter->stats, &graphite->lines);
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

	lines_complain(graphite->lines, exporter->name, err);
	if (batch->is_last)
		delivery_client_finish(graphite->client);
	else
		delivery_client_flush(graphite->client);
	return err;
}

static bool graphite_is_idle(const struct exporter *exporter)
{
	const struct graphite *graphite = exporter->state;

	return delivery_client_is_idle(graphite->client);
}

const struct exporter_ops graphite_exporter = {
	.type = "graphite",
	.help = "Graphite's plaintext protocol over TCP, to carbon and what reads the same",
	.options = option_table,
	.n_options = ARRAY_SIZE(option_table),
	.options_size = sizeof(struct graphite_options),
	.check = graphite_check,
	.open = graphite_open,
	.push = graphite_push,
	.is_idle = graphite_is_idle,
	.close = graphite_close,
};

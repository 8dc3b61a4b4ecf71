/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphite's plaintext protocol over TCP, with the times of the collections: what arrives late lies in the graph
 * where it belongs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/lines/lines.h"
#include "export/transport/tcp.h"
#include "util/duration.h"
#include "util/log.h"

/* Lines are queued, sent and dropped by pieces of this size. */
#define PIECE_BYTES 16384

struct graphite {
	uint64_t slot_s, time_ns; /* of the last batch; 0: none yet */
	struct lines *lines;
	struct tcp_sender *sender;
};

static const char *const temporalities[] = { "delta", "cumulative", NULL };

static int check_endpoint(const char *text, const char **ret_complaint)
{
	struct endpoint endpoint;

	return endpoint_parse(text, "2003", false, &endpoint, ret_complaint);
}

#define ROW(...) SETTING(struct lines_settings, __VA_ARGS__)

static const struct setting_row rows[] = {
	ROW(endpoint, "endpoint", SETTING_TEXT, "localhost:2003", .check = check_endpoint),
	ROW(dialect, "dialect", SETTING_CHOICE, "dotted", .choices = dialect_graphite_names),
	ROW(template, "template", SETTING_TEXT, NULL, .check = template_check),
	ROW(resource_attributes, "resource_attributes", SETTING_WORDS, "host.name"),
	ROW(temporality, "temporality", SETTING_CHOICE, "delta", .choices = temporalities),
	ROW(lines.sends_unchanged, "send_unchanged", SETTING_BOOL, "no"),
	ROW(sender.queue_bytes, "queue_size", SETTING_SIZE, "16MiB", .minimum = 65536),
	ROW(sender.confirm_every_ns, "confirm_every", SETTING_DURATION, "5m"),
	ROW(sender.timeout_ns, "timeout", SETTING_DURATION, "10s", .minimum = 100000000),
	ROW(sender.retry_initial_ns, "retry_initial", SETTING_DURATION, "1s", .minimum = 1000000),
	ROW(sender.retry_max_ns, "retry_max", SETTING_DURATION, "30s", .minimum = 1000000),
};

static int graphite_check(const void *data, const char *path, unsigned int line, struct diag *diag)
{
	const struct lines_settings *settings = data;

	if (settings->sender.confirm_every_ns && settings->sender.confirm_every_ns < NS_PER_S)
		diag_add(diag, path, line, "confirm_every: write at least 1s, or 0");
	return naming_check(&settings->resource_attributes, path, line, diag);
}

static void graphite_close(struct exporter *exporter)
{
	struct graphite *graphite = exporter->state;

	lines_free(graphite->lines);
	tcp_sender_free(graphite->sender);
	free(graphite);
}

static int open_all(struct exporter *exporter, const struct lines_settings *settings, struct graphite *graphite)
{
	const struct exporter_context *context = exporter->context;
	struct sender_options sender = settings->sender;
	struct lines_options lines = settings->lines;
	const char *complaint;
	int err = endpoint_parse(settings->endpoint, "2003", false, &sender.endpoint, &complaint) ?:
		  naming_init(&lines.naming, &dialect_table[DIALECT_DOTTED + settings->dialect], settings->template,
			      context->resource, context->n_resource, &settings->resource_attributes) ?:
		  tcp_sender_new(exporter, &sender, &graphite->sender);

	if (err)
		return err;
	lines.is_cumulative = settings->temporality;
	lines.pack = (struct pack){ .limit_bytes = PIECE_BYTES, .is_stream = true, .put = tcp_sender_put,
				    .user = graphite->sender };
	return lines_new(&lines, exporter, &graphite->lines);
}

static int graphite_open(struct exporter *exporter, const void *settings)
{
	struct graphite *graphite = calloc(1, sizeof(*graphite));
	int err;

	if (!graphite)
		return -ENOMEM;
	exporter->state = graphite;
	err = open_all(exporter, settings, graphite);
	if (err) {
		log_error("exporter %s: cannot be set up: %s", exporter->name, strerror(-err));
		graphite_close(exporter);
	}
	return err;
}

/*
 * The time of a batch as Graphite keeps it: a slot of its storage, which is as long as the interval. A later point in a
 * slot replaces the earlier one and its counts. So the lines of batches in one slot have what happened in all
 * of them (point.h), and only the first batch may have a slot that has not begun, since that could be the next run's.
 * The slot in which we began belongs to the run before; what happens in it counts for the slot after.
 *
 * A batch that comes a moment late, after the end of its slot, keeps that slot. Otherwise one slot would be empty and
 * another one would have two. A clock that was set back is a new beginning.
 */
static uint64_t next_slot(struct graphite *graphite, const struct batch *batch, uint64_t interval_ns)
{
	uint64_t step_s = interval_ns / NS_PER_S ?: 1;
	uint64_t slot_s = batch->time_ns / NS_PER_S / step_s * step_s, least_s = graphite->slot_s;
	uint64_t passed_ns = batch->time_ns - graphite->time_ns;
	bool is_in_turn = !batch->is_last && passed_ns < step_s * NS_PER_S * 3 / 2;

	if (!graphite->slot_s || batch->time_ns < graphite->time_ns)
		least_s = (batch->previous_ns / NS_PER_S / step_s + 1) * step_s;
	else if (is_in_turn && slot_s == graphite->slot_s + 2 * step_s)
		slot_s -= step_s;
	graphite->slot_s = slot_s < least_s ? least_s : slot_s;
	graphite->time_ns = batch->time_ns;
	return graphite->slot_s;
}

static int graphite_push(struct exporter *exporter, const struct batch *batch)
{
	struct graphite *graphite = exporter->state;
	uint64_t slot_s = next_slot(graphite, batch, exporter->context->interval_ns);
	int err = lines_push(graphite->lines, batch, slot_s, 0);

	tcp_sender_flush(graphite->sender, batch->is_last);
	return err;
}

static struct exporter_waiting graphite_waiting(const struct exporter *exporter)
{
	const struct graphite *graphite = exporter->state;

	return tcp_sender_waiting(graphite->sender);
}

static const struct setting_table graphite_settings = SETTING_TABLE(rows, struct lines_settings);

const struct exporter_ops graphite_exporter = {
	.type = "graphite",
	.settings = &graphite_settings,
	.check = graphite_check,
	.open = graphite_open,
	.push = graphite_push,
	.waiting = graphite_waiting,
	.close = graphite_close,
};

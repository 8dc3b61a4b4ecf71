/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two exporters of lines. They differ in their settings, in how they send, and in what time
 * means to them.
 *
 * StatsD, in any of its dialects, goes over UDP or a unix datagram socket. A batch becomes lines
 * and datagrams when it is pushed; the datagrams leave in turn. StatsD's lines have no time: what
 * arrives late counts for the time of its arrival, and nothing is sent twice.
 *
 * Graphite's plaintext protocol goes over TCP, with the times of the collections: what arrives late
 * lies in the graph where it belongs.
 */
#include "export/lines/lines.h"
#include "export/transport/socket.h"
#include "util/duration.h"
#include "util/hash.h"

/* Of payload, which no network within a site fragments; a unix socket carries more at once. */
#define UDP_BYTES  1432
#define UNIX_BYTES 8192
/* Lines over TCP are queued, sent and dropped by pieces of this size. */
#define PIECE_BYTES 16384
#define PROOF_NS    (5 * NS_PER_S) /* in the docs; HAProxy needs 3 s by default */

/* Datagrams are spread over this part of the interval, and this long at most. */
#define WINDOW_PART	 2
#define WINDOW_MAX_NS	 (5 * NS_PER_S)
#define WINDOW_AT_END_NS NS_PER_S

/* What the rows of both fill in. */
struct lines_settings {
	char *endpoint, *template;
	struct setting_list resource_attributes;
	int dialect;
	uint64_t max_name_bytes, max_datagram_bytes;
	struct lines lines;
	struct sender_options sender;
};

struct state {
	struct lines lines;
	struct socket *sock;
	uint64_t slot_s, time_ns; /* of Graphite's last batch; 0: none yet */
};

extern const struct exporter_ops graphite_exporter;

static const char *const time_units[] = { "s", "ms", "us", "ns", NULL };
static const char *const histograms[] = { "counters", "distribution", "timer", NULL };
static const char *const temporalities[] = { "delta", "cumulative", NULL };

/*
 * Slots in which points may lie before their time, after restarts that follow each other quickly.
 */
#define AHEAD_MAX 60

#define STATSD_PORT   "8125"
#define GRAPHITE_PORT "2003"

static int check_statsd_endpoint(const char *text, const char **ret_complaint)
{
	struct endpoint endpoint;

	return endpoint_parse(text, STATSD_PORT, true, &endpoint, ret_complaint);
}

static int check_graphite_endpoint(const char *text, const char **ret_complaint)
{
	struct endpoint endpoint;

	return endpoint_parse(text, GRAPHITE_PORT, false, &endpoint, ret_complaint);
}

#define ROW(...) SETTING(struct lines_settings, __VA_ARGS__)

static const struct setting_row statsd_rows[] = {
	ROW(endpoint, "endpoint", SETTING_TEXT, "localhost:8125", .check = check_statsd_endpoint),
	ROW(dialect, "dialect", SETTING_CHOICE, "plain", .choices = dialect_statsd_names),
	ROW(template, "template", SETTING_TEXT, NULL, .check = template_check),
	ROW(resource_attributes, "resource_attributes", SETTING_WORDS, "host.name"),
	ROW(lines.time_unit, "time_unit", SETTING_CHOICE, "us", .choices = time_units),
	ROW(lines.histogram, "histogram", SETTING_CHOICE, "counters", .choices = histograms),
	ROW(lines.sends_unchanged, "send_unchanged", SETTING_BOOL, "no"),
	ROW(max_name_bytes, "max_name_size", SETTING_SIZE, "1000B", .minimum = NAME_PATH_LEAST,
	    .maximum = NAME_PATH_BYTES),
	ROW(max_datagram_bytes, "max_datagram_size", SETTING_SIZE, "0", .minimum = 256, .maximum = 65507,
	    .takes_zero = true),
	ROW(sender.burst, "burst", SETTING_U64, "8", .maximum = 100000),
	ROW(sender.resolve_every_ns, "resolve_every", SETTING_DURATION, "5m", .minimum = NS_PER_S,
	    .takes_zero = true),
	ROW(sender.retry.initial_ns, "retry_initial", SETTING_DURATION, "100ms", .minimum = 1000000),
	ROW(sender.retry.max_ns, "retry_max", SETTING_DURATION, "30s", .minimum = 1000000),
};

static const struct setting_row graphite_rows[] = {
	ROW(endpoint, "endpoint", SETTING_TEXT, "localhost:2003", .check = check_graphite_endpoint),
	ROW(dialect, "dialect", SETTING_CHOICE, "dotted", .choices = dialect_graphite_names),
	ROW(template, "template", SETTING_TEXT, NULL, .check = template_check),
	ROW(resource_attributes, "resource_attributes", SETTING_WORDS, "host.name"),
	ROW(lines.is_cumulative, "temporality", SETTING_CHOICE, "delta", .choices = temporalities),
	ROW(lines.sends_unchanged, "send_unchanged", SETTING_BOOL, "no"),
	ROW(sender.confirm_every_ns, "confirm_every", SETTING_DURATION, "5m", .minimum = NS_PER_S,
	    .takes_zero = true),
	ROW(sender.timeout_ns, "timeout", SETTING_DURATION, "10s", .minimum = 100000000),
	ROW(sender.retry.initial_ns, "retry_initial", SETTING_DURATION, "1s", .minimum = 1000000),
	ROW(sender.retry.max_ns, "retry_max", SETTING_DURATION, "30s", .minimum = 1000000),
};

static void check_settings(const void *data, const struct assignments *given, struct diag *diag)
{
	const struct lines_settings *settings = data;

	if (settings->lines.histogram == LINES_DISTRIBUTION &&
	    settings->dialect != DIALECT_DOGSTATSD)
		assignments_complain(given, diag, "histogram", NULL, "distribution works only with dialect = dogstatsd; with other dialects, receivers would misread the values");
	if (settings->resource_attributes.n_items > NAME_RESOURCE_TAGS_MAX)
		assignments_complain(given, diag, "resource_attributes", NULL, "%zu names; at most %d are allowed",
				     settings->resource_attributes.n_items, NAME_RESOURCE_TAGS_MAX);
}

static void close_all(struct exporter *exporter)
{
	struct state *state = exporter->state;

	lines_done(&state->lines);
	socket_free(state->sock);
}

/* A hash of the settings that change lines, except max_name_size: others drop what waits. */
static uint64_t hash_format(const struct exporter *exporter, const struct lines_settings *settings)
{
	const struct lines *lines = &settings->lines;
	const uint64_t numbers[] = { (uint64_t)settings->dialect, lines->time_unit,
				     lines->histogram, (uint64_t)lines->is_cumulative };
	uint64_t hash = hash_stable(hash_text(HASH_STABLE_START, exporter->ops->type), numbers,
				    sizeof(numbers));

	for (size_t i = 0; i < settings->resource_attributes.n_items; i++)
		hash = hash_text(hash, settings->resource_attributes.items[i]);
	return hash_text(hash, settings->template);
}

static int open_exporter(struct exporter *exporter, const void *untyped)
{
	const struct lines_settings *settings = untyped;
	struct state *state = exporter->state;
	const struct exporter_context *context = exporter->context;
	bool is_graphite = exporter->ops == &graphite_exporter;
	struct sender_options sender = settings->sender;
	struct lines *lines = &state->lines;
	const struct dialect *dialect =
		&dialect_table[settings->dialect + (is_graphite ? DIALECT_DOTTED : 0)];
	const struct socket_ops *ops = is_graphite ? &tcp_ops : &udp_ops;
	const char *port = is_graphite ? GRAPHITE_PORT : STATSD_PORT, *complaint;
	unsigned int datagram_bytes;
	int err;

	sender.proof_ns = PROOF_NS;
	*lines = settings->lines;
	exporter->format = hash_format(exporter, settings);
	err = endpoint_parse(settings->endpoint, port, !is_graphite, &sender.endpoint, &complaint);
	err = err ?: naming_init(&lines->naming, dialect, settings->template, context->resource,
				 context->n_resource, &settings->resource_attributes);
	lines->exporter = exporter;
	lines->pack = (struct pack){ .put = exporter_enqueue, .user = exporter,
				     .limit_bytes = PIECE_BYTES };
	if (!is_graphite) {
		datagram_bytes = sender.endpoint.path[0] ? UNIX_BYTES : UDP_BYTES;
		lines->pack.limit_bytes = settings->max_datagram_bytes ?: datagram_bytes;
		lines->naming.limit_bytes = settings->max_name_bytes;
	}
	err = err ?: socket_new(ops, exporter, &sender, &state->sock);
	if (err)
		close_all(exporter);
	return err;
}

/*
 * The time of a batch as Graphite keeps it: a slot of its storage, which is as long as the
 * interval. A later point in a slot replaces the earlier one and its counts. So the lines of
 * batches in one slot have what happened in all of them (point.h), and only the first batch may
 * have a slot that has not begun, since that could be the next run's. The slot in which we began
 * belongs to the run before; what happens in it counts for the slot after.
 *
 * A batch that comes a moment late, after the end of its slot, keeps that slot. Otherwise one slot
 * would be empty and another one would have two. A clock that was set back is a new beginning.
 */
static uint64_t next_slot(struct exporter *exporter, const struct batch *batch)
{
	struct state *state = exporter->state;
	uint64_t step_s = exporter->context->interval_ns / NS_PER_S ?: 1;
	uint64_t slot_s = batch->time_ns / NS_PER_S / step_s * step_s, least_s = state->slot_s;
	uint64_t passed_ns = batch->time_ns - state->time_ns;
	bool is_in_turn = !batch->is_last && passed_ns < step_s * NS_PER_S * 3 / 2;

	if (!state->slot_s || batch->time_ns < state->time_ns)
		least_s = (batch->previous_ns / NS_PER_S / step_s + 1) * step_s;
	else if (is_in_turn && slot_s == state->slot_s + 2 * step_s)
		slot_s -= step_s;
	/* A run that is continued may have had the next slot. */
	if (!state->slot_s && exporter->position >= least_s &&
	    exporter->position < least_s + AHEAD_MAX * step_s)
		least_s = exporter->position + step_s;
	exporter->position = state->slot_s = slot_s < least_s ? least_s : slot_s;
	state->time_ns = batch->time_ns;
	return state->slot_s;
}

static int push_batch(struct exporter *exporter, const struct batch *batch)
{
	struct state *state = exporter->state;

	return lines_push(&state->lines, batch,
			  exporter->ops == &graphite_exporter ? next_slot(exporter, batch) : 0);
}

static void send_lines(struct exporter *exporter, const struct batch *batch)
{
	const struct state *state = exporter->state;
	uint64_t window_ns = exporter->context->interval_ns / WINDOW_PART;

	if (window_ns > WINDOW_MAX_NS)
		window_ns = WINDOW_MAX_NS;
	state->sock->ops->flush(state->sock, batch->is_last,
				batch->is_last ? WINDOW_AT_END_NS : window_ns);
}

static int probe_receiver(struct exporter *exporter)
{
	return socket_probe(((struct state *)exporter->state)->sock);
}

static const struct setting_table statsd_settings = SETTING_TABLE(statsd_rows,
								  struct lines_settings);
static const struct setting_table graphite_settings = SETTING_TABLE(graphite_rows,
								    struct lines_settings);

#define OPS											\
	.check = check_settings, .state_bytes = sizeof(struct state), .open = open_exporter,	\
	.push = push_batch, .send = send_lines, .probe = probe_receiver, .close = close_all

const struct exporter_ops statsd_exporter = { .type = "statsd", .settings = &statsd_settings, OPS };
const struct exporter_ops graphite_exporter = { .type = "graphite", .settings = &graphite_settings, OPS };

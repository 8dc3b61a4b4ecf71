/* SPDX-License-Identifier: Apache-2.0 */
/*
 * StatsD, in any of its dialects, over UDP or a unix datagram socket. A batch becomes lines and datagrams when it
 * is pushed; the datagrams leave in turn. StatsD's lines have no time: what arrives late counts for the time of
 * its arrival, and nothing is sent twice.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/lines/lines.h"
#include "export/transport/udp.h"
#include "util/log.h"

/* Of payload, which no network within a site fragments; a unix socket carries more at once. */
#define UDP_BYTES  1432
#define UNIX_BYTES 8192

/* Datagrams are spread over this part of the interval, and this long at most. */
#define WINDOW_PART	  2
#define WINDOW_MAX_NS	  UINT64_C(5000000000)
#define WINDOW_AT_END_NS  UINT64_C(1000000000)

struct statsd {
	struct lines *lines;
	struct udp_sender *sender;
};

static const char *const time_units[] = { "s", "ms", "us", "ns", NULL };
static const char *const histograms[] = { "counters", "distribution", "timer", NULL };

static int check_endpoint(const char *text, const char **ret_complaint)
{
	struct endpoint endpoint;

	return endpoint_parse(text, "8125", true, &endpoint, ret_complaint);
}

#define ROW(...) SETTING(struct lines_settings, __VA_ARGS__)

static const struct setting_row rows[] = {
	ROW(endpoint, "endpoint", SETTING_TEXT, "localhost:8125", .check = check_endpoint),
	ROW(dialect, "dialect", SETTING_CHOICE, "plain", .choices = dialect_statsd_names),
	ROW(template, "template", SETTING_TEXT, NULL, .check = template_check),
	ROW(resource_attributes, "resource_attributes", SETTING_WORDS, "host.name"),
	ROW(lines.time_unit, "time_unit", SETTING_CHOICE, "us", .choices = time_units),
	ROW(lines.histogram, "histogram", SETTING_CHOICE, "counters", .choices = histograms),
	ROW(lines.sends_unchanged, "send_unchanged", SETTING_BOOL, "no"),
	ROW(max_name_bytes, "max_name_size", SETTING_SIZE, "1000B", .minimum = NAME_PATH_LEAST,
	    .maximum = NAME_PATH_BYTES),
	ROW(max_datagram_bytes, "max_datagram_size", SETTING_SIZE, "0", .maximum = 65507),
	ROW(sender.burst, "burst", SETTING_U64, "8", .maximum = 100000),
	ROW(sender.resolve_every_ns, "resolve_every", SETTING_DURATION, "5m"),
	ROW(sender.queue_bytes, "queue_size", SETTING_SIZE, "16MiB", .minimum = 65536),
	ROW(sender.retry_initial_ns, "retry_initial", SETTING_DURATION, "100ms", .minimum = 1000000),
	ROW(sender.retry_max_ns, "retry_max", SETTING_DURATION, "30s", .minimum = 1000000),
};

static int statsd_check(const void *data, const char *path, unsigned int line, struct diag *diag)
{
	const struct lines_settings *settings = data;

	if (settings->lines.histogram == LINES_DISTRIBUTION && settings->dialect != DIALECT_DOGSTATSD)
		diag_add(diag, path, line, "histogram = distribution works only with dialect = dogstatsd; with other dialects, receivers would misread the values");
	if (settings->max_datagram_bytes && settings->max_datagram_bytes < 256)
		diag_add(diag, path, line, "max_datagram_size: write at least 256B, or 0 for the default");
	if (settings->sender.resolve_every_ns && settings->sender.resolve_every_ns < UINT64_C(1000000000))
		diag_add(diag, path, line, "resolve_every: write at least 1s, or 0");
	return naming_check(&settings->resource_attributes, path, line, diag);
}

static void statsd_close(struct exporter *exporter)
{
	struct statsd *statsd = exporter->state;

	lines_free(statsd->lines);
	udp_sender_free(statsd->sender);
	free(statsd);
}

static int open_all(struct exporter *exporter, const struct lines_settings *settings, struct statsd *statsd)
{
	const struct exporter_context *context = exporter->context;
	struct sender_options sender = settings->sender;
	struct lines_options lines = settings->lines;
	const char *complaint;
	int err = endpoint_parse(settings->endpoint, "8125", true, &sender.endpoint, &complaint) ?:
		  naming_init(&lines.naming, &dialect_table[settings->dialect], settings->template, context->resource,
			      context->n_resource, &settings->resource_attributes) ?:
		  udp_sender_new(exporter, &sender, &statsd->sender);

	if (err)
		return err;
	lines.naming.limit_bytes = settings->max_name_bytes;
	lines.pack = (struct pack){ .put = udp_sender_put, .user = statsd->sender };
	lines.pack.limit_bytes = settings->max_datagram_bytes ?: sender.endpoint.path[0] ? UNIX_BYTES : UDP_BYTES;
	return lines_new(&lines, exporter, &statsd->lines);
}

static int statsd_open(struct exporter *exporter, const void *settings)
{
	struct statsd *statsd = calloc(1, sizeof(*statsd));
	int err;

	if (!statsd)
		return -ENOMEM;
	exporter->state = statsd;
	err = open_all(exporter, settings, statsd);
	if (err) {
		log_error("exporter %s: cannot be set up: %s", exporter->name, strerror(-err));
		statsd_close(exporter);
	}
	return err;
}

static int statsd_push(struct exporter *exporter, const struct batch *batch)
{
	struct statsd *statsd = exporter->state;
	uint64_t window_ns = exporter->context->interval_ns / WINDOW_PART;
	int err = lines_push(statsd->lines, batch, 0, udp_sender_losses(statsd->sender));

	if (window_ns > WINDOW_MAX_NS)
		window_ns = WINDOW_MAX_NS;
	udp_sender_flush(statsd->sender, batch->is_last ? WINDOW_AT_END_NS : window_ns);
	return err;
}

static struct exporter_waiting statsd_waiting(const struct exporter *exporter)
{
	const struct statsd *statsd = exporter->state;

	return udp_sender_waiting(statsd->sender);
}

static const struct setting_table statsd_settings = SETTING_TABLE(rows, struct lines_settings);

const struct exporter_ops statsd_exporter = {
	.type = "statsd",
	.settings = &statsd_settings,
	.check = statsd_check,
	.open = statsd_open,
	.push = statsd_push,
	.waiting = statsd_waiting,
	.close = statsd_close,
};

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

struct statsd_options {
	char *endpoint, *template;
	struct setting_list resource_attributes;
	int dialect, time_unit, histogram;
	bool sends_unchanged;
	uint64_t max_name_bytes, max_datagram_bytes, burst, queue_bytes;
	uint64_t resolve_every_ns, retry_initial_ns, retry_max_ns;
};

struct statsd {
	struct lines *lines;
	struct udp_sender *sender;
	uint64_t datagram_bytes;
};

static const char *const time_units[] = { "s", "ms", "us", "ns", NULL };
static const char *const histograms[] = { "counters", "distribution", "timer", NULL };

static int check_endpoint(const char *text, const char **ret_complaint)
{
	struct endpoint endpoint;

	return endpoint_parse(text, "8125", true, &endpoint, ret_complaint);
}

#define ROW(...) SETTING(struct statsd_options, __VA_ARGS__)

static const struct setting_row rows[] = {
	ROW(endpoint, "endpoint", SETTING_TEXT, "localhost:8125", .check = check_endpoint),
	ROW(dialect, "dialect", SETTING_CHOICE, "plain", .choices = dialect_statsd_names),
	ROW(template, "template", SETTING_TEXT, NULL, .check = template_check),
	ROW(resource_attributes, "resource_attributes", SETTING_WORDS, "host.name"),
	ROW(time_unit, "time_unit", SETTING_CHOICE, "us", .choices = time_units),
	ROW(histogram, "histogram", SETTING_CHOICE, "counters", .choices = histograms),
	ROW(sends_unchanged, "send_unchanged", SETTING_BOOL, "no"),
	ROW(max_name_bytes, "max_name_size", SETTING_SIZE, "1000B", .minimum = NAME_PATH_LEAST,
	    .maximum = NAME_PATH_BYTES),
	ROW(max_datagram_bytes, "max_datagram_size", SETTING_SIZE, "0", .maximum = 65507),
	ROW(burst, "burst", SETTING_U64, "8", .maximum = 100000),
	ROW(resolve_every_ns, "resolve_every", SETTING_DURATION, "5m"),
	ROW(queue_bytes, "queue_size", SETTING_SIZE, "16MiB", .minimum = 65536),
	ROW(retry_initial_ns, "retry_initial", SETTING_DURATION, "100ms", .minimum = 1000000),
	ROW(retry_max_ns, "retry_max", SETTING_DURATION, "30s", .minimum = 1000000),
};

static int statsd_check(const void *data, const char *path, unsigned int line, struct diag *diag)
{
	const struct statsd_options *options = data;

	if (options->histogram == LINES_DISTRIBUTION && options->dialect != DIALECT_DOGSTATSD)
		diag_add(diag, path, line, "histogram = distribution works only with dialect = dogstatsd; with "
					   "others, receivers would count its values as something else");
	if (options->max_datagram_bytes && options->max_datagram_bytes < 256)
		diag_add(diag, path, line, "max_datagram_size: write at least 256B, or 0 for the default");
	if (options->resolve_every_ns && options->resolve_every_ns < UINT64_C(1000000000))
		diag_add(diag, path, line, "resolve_every: write at least 1s, or 0");
	return naming_check(&options->resource_attributes, path, line, diag);
}

static int put(void *user, uint8_t *data, size_t size, size_t n_points)
{
	return udp_sender_put(user, data, size, n_points);
}

static void statsd_close(struct exporter *exporter)
{
	struct statsd *statsd = exporter->state;

	lines_free(statsd->lines);
	udp_sender_free(statsd->sender);
	free(statsd);
}

static int open_sender(struct exporter *exporter, const struct statsd_options *options, struct statsd *statsd)
{
	struct udp_options udp = {
		.burst = options->burst,
		.resolve_every_ns = options->resolve_every_ns,
		.queue_bytes = options->queue_bytes,
		.retry_initial_ns = options->retry_initial_ns,
		.retry_max_ns = options->retry_max_ns,
	};
	const char *complaint;
	int err = endpoint_parse(options->endpoint, "8125", true, &udp.endpoint, &complaint);

	statsd->datagram_bytes = options->max_datagram_bytes ?: udp.endpoint.path[0] ? UNIX_BYTES : UDP_BYTES;
	return err ? err : udp_sender_new(exporter->context->event, &udp, exporter, &statsd->sender);
}

static int open_lines(struct exporter *exporter, const struct statsd_options *options, struct statsd *statsd)
{
	struct lines_options lines = {
		.histogram = (enum lines_histogram)options->histogram,
		.time_unit = (enum lines_unit)options->time_unit,
		.sends_unchanged = options->sends_unchanged,
		.pack = { .limit_bytes = statsd->datagram_bytes, .put = put, .user = statsd->sender },
	};
	const struct exporter_context *context = exporter->context;
	int err = naming_init(&lines.naming, &dialect_table[options->dialect], options->template, context->resource,
			      context->n_resource, &options->resource_attributes);

	lines.naming.limit_bytes = options->max_name_bytes;
	return err ? err : lines_new(&lines, exporter, &statsd->lines);
}

static int statsd_open(struct exporter *exporter, const void *options)
{
	struct statsd *statsd = calloc(1, sizeof(*statsd));
	int err;

	if (!statsd)
		return -ENOMEM;
	exporter->state = statsd;
	err = open_sender(exporter, options, statsd) ?: open_lines(exporter, options, statsd);
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

static const struct setting_table statsd_settings = SETTING_TABLE(rows, struct statsd_options);

const struct exporter_ops statsd_exporter = {
	.type = "statsd",
	.settings = &statsd_settings,
	.check = statsd_check,
	.open = statsd_open,
	.push = statsd_push,
	.waiting = statsd_waiting,
	.close = statsd_close,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP over HTTP. A batch is encoded, compressed and queued when it is pushed, once for all
 * exporters that send the same bodies. What waits for long is merged (backlog.h), so an outage
 * costs resolution: of totals only the newest go, and deltas that were refused go with the next
 * ones. No request of totals begins before the end of one that was sent before it,
 * except the last one (otlp_send_last()).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "export/otlp/aside.h"
#include "export/otlp/cut.h"
#include "export/otlp/gzip.h"
#include "export/otlp/merge.h"
#include "export/transport/proxy.h"
#include "export/transport/url.h"
#include "util/buf.h"

#define CONNECTION_LIFETIME_S 600 /* in the manual */

/* Pages of the room beyond this are given back after a push. */
#define ROOM_KEPT_BYTES ((size_t)1 << 20)

/* One encoded body, as it is to be sent. -ENOMEM. */
static int compress_body(const struct otlp *otlp, const uint8_t *data, size_t size,
			 struct buf *body)
{
	if (!otlp->options->is_uncompressed)
		return gzip_append(body, data, size) ?: buf_error(body);
	buf_append(body, data, size);
	return buf_error(body);
}

int otlp_enqueue(struct otlp *otlp, const uint8_t *data, size_t size, size_t n_points)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT;
	int err = compress_body(otlp, data, size, &body);

	if (!err)
		return exporter_enqueue(otlp->exporter, TAKE_PTR(body.data), body.size, n_points);
	exporter_drop_no_memory(otlp->exporter, n_points);
	return err;
}

/* A body of a batch, for all that send the same: it is compressed once and held once. */
static int enqueue_for_all(void *user, const uint8_t *data, size_t size, size_t n_points)
{
	struct otlp *otlp = user;
	int err = otlp_enqueue(otlp, data, size, n_points);
	struct queue_item *item = err ? NULL :
				  TAILQ_LAST(&otlp->exporter->queue.items, queue_items);

	for (struct otlp *led = otlp->next_led; led; led = led->next_led)
		err = exporter_share(led->exporter, item, n_points) ?: err;
	return err;
}

/*
 * A body of a merged window: its points are new, and those that it was made of go. If there is no
 * memory for it, they stay, and nothing is lost.
 */
static int enqueue_merged(void *user, const uint8_t *data, size_t size, size_t n_points)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT;
	struct otlp *otlp = user;
	int err = compress_body(otlp, data, size, &body) ?:
		  queue_put(&otlp->exporter->queue, TAKE_PTR(body.data), body.size, n_points);

	if (!err)
		exporter_account(otlp->exporter, POINTS_PUSHED, n_points);
	return err;
}

void otlp_give_room_back(const struct otlp_encoding *encoding)
{
	if (encoding->limit_bytes > ROOM_KEPT_BYTES)
		(void)madvise(encoding->room + ROOM_KEPT_BYTES,
			      encoding->limit_bytes - ROOM_KEPT_BYTES, MADV_DONTNEED);
}

static int merge_requests(struct exporter *exporter, struct queue_item *const *items, size_t n)
{
	struct otlp *otlp = exporter->state;
	struct otlp_writer into = { otlp->encoding.room, otlp->encoding.limit_bytes,
				    enqueue_merged, otlp,
				    otlp->cut_points ?: otlp_limit_points(otlp) };
	int err = otlp_merge(items, n, &into) ?: into.err;

	otlp_give_room_back(&otlp->encoding);
	return !err && into.n_too_large ? -EFBIG : err; /* max_request_size may have become less */
}

static int otlp_push(struct exporter *exporter, const struct batch *batch)
{
	struct otlp *otlp = exporter->state, *each;
	uint64_t limit_points = otlp_limit_points(otlp); /* the least of all, or 0 */
	struct otlp_encoded encoded;
	int err;

	if (otlp->is_led)
		return 0;
	for (each = otlp->next_led; each; each = each->next_led) {
		uint64_t limit = otlp_limit_points(each);

		queue_begin_window(&each->exporter->queue, batch->time_ns);
		each->exporter->has_window = true;
		if (limit && (!limit_points || limit < limit_points))
			limit_points = limit;
	}
	otlp->encoding.limit_points = limit_points;
	err = otlp_encode(&otlp->encoding, batch, enqueue_for_all, otlp, &encoded);
	for (each = otlp; each; each = each->next_led) {
		otlp_cut_waiting(each);
		exporter_account(each->exporter, POINTS_PUSHED, encoded.n_points);
		exporter_drop(each->exporter, POINTS_TOO_LARGE, encoded.n_too_large,
			      "points are dropped, because each alone is longer than max_request_size; raise it");
		exporter_drop_no_memory(each->exporter, encoded.n_failed);
	}
	otlp_give_room_back(&otlp->encoding);
	return err;
}

/* An empty request is whole: the receiver checks the headers, decodes it and answers. */
int otlp_probe(struct exporter *exporter)
{
	struct exporter_stats *stats = &exporter->stats;
	struct otlp *otlp = exporter->state;
	int err = 0;

	if (!stats->requests && !exporter->queue.n_items) {
		err = otlp_enqueue(otlp, NULL, 0, 0);
		otlp_send_next(otlp);
	}
	if (err || stats->is_failing)
		return err ?: -EIO;
	if (!exporter_is_idle(exporter))
		return 0;
	snprintf(stats->problem, sizeof(stats->problem), "HTTP %d", otlp->report.status);
	return 1;
}

void otlp_send(struct exporter *exporter, const struct batch *batch)
{
	struct otlp *otlp = exporter->state;

	otlp->is_last = batch->is_last;
	if (batch->is_last)
		otlp_send_last(otlp);
	otlp_aside_release(otlp);
	otlp_send_next(otlp);
}

void otlp_close(struct exporter *exporter)
{
	struct otlp *otlp = exporter->state;

	timer_done(&otlp->retry);
	http_client_free(otlp->client);
	free(otlp->report.url);
	free(otlp->proxy);
	if (otlp->encoding.room != MAP_FAILED)
		munmap(otlp->encoding.room, otlp->encoding.limit_bytes);
}

/* Where requests go, in words. */
static int describe_place(struct otlp *otlp, const char *url)
{
	const char *proxy = proxy_for(url, otlp->options->http.proxy);
	_cleanup_(freep) char *public = url_public(url);

	otlp->report.port = url_place(url).port;
	otlp->proxy = proxy ? proxy_public(proxy) : NULL;
	otlp->exporter->proxy = otlp->proxy;
	if (!public || (proxy && !otlp->proxy))
		return -ENOMEM;
	if (!proxy)
		otlp->report.url = TAKE_PTR(public);
	else if (asprintf(&otlp->report.url, "%s through the proxy %s", public, otlp->proxy) < 0)
		otlp->report.url = NULL;
	return otlp->report.url ? 0 : -ENOMEM;
}

static int open_client(struct otlp *otlp, enum signals signal)
{
	const struct otlp_options *options = otlp->options;
	const char *version = otlp->exporter->context->version;
	_cleanup_(freep) char *url = NULL;
	char user_agent[128];
	struct http_options http = options->http;
	int err = otlp_url(options, signal, &url);

	if (err)
		return err;
	otlp_options_warn(options, otlp->exporter, url);
	err = describe_place(otlp, url);
	if (err)
		return err;
	http.url = url;
	http.user_agent = user_agent;
	http.lifetime_s = CONNECTION_LIFETIME_S;
	snprintf(user_agent, sizeof(user_agent), "bpfpush/%s OTel-OTLP-Exporter-C/%s", version, version);
	return http_client_new(otlp->exporter->context->event, &http, &otlp->client);
}

/* To the list of the first that makes the same bodies. */
static void join_leader(struct otlp *otlp)
{
	struct exporter *const *at = otlp->exporter->context->opened;
	struct otlp *last = NULL;

	for (; at && *at; at++)
		if ((*at)->ops == otlp->exporter->ops &&
		    otlp_options_encode_alike((*at)->options, otlp->options))
			last = (*at)->state;
	otlp->is_led = last;
	if (last)
		last->next_led = otlp;
}

int otlp_open_signal(struct exporter *exporter, const struct otlp_options *options,
		     enum signals signal)
{
	bool is_of_totals = signal == SIGNAL_METRICS && options->encoding.temporality != OTLP_DELTA;
	struct otlp *otlp = exporter->state;
	int err;

	*otlp = (struct otlp){ .exporter = exporter, .options = options,
			       .encoding = options->encoding, .backoff = options->retry,
			       .limit_points = options->encoding.limit_points };
	otlp->report.exporter = exporter;
	otlp->report.is_delta = !is_of_totals;
	otlp->report.is_of_events = signal != SIGNAL_METRICS;
	otlp->retry = (struct timer){ exporter->context->event, otlp_wake, otlp, NULL };
	queue_init(&exporter->queue, options->queue_requests,
		   otlp->report.is_of_events ? exporter->context->events_budget :
					       exporter->context->queue_budget);
	if (is_of_totals)
		exporter->queue.slot_ns = options->backlog_ns ?: UINT64_MAX;
	exporter->format = (uint64_t)(otlp->report.is_delta | options->is_uncompressed << 1 |
				      (int)signal >> 1 << 2);
	otlp->encoding.resource = exporter->context->resource;
	otlp->encoding.n_resource = exporter->context->n_resource;
	otlp->encoding.version = exporter->context->version;
	otlp->encoding.room = mmap(NULL, otlp->encoding.limit_bytes, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	err = otlp->encoding.room == MAP_FAILED ? -ENOMEM : open_client(otlp, signal);
	if (err)
		otlp_close(exporter);
	return err;
}

static int otlp_open(struct exporter *exporter, const void *untyped)
{
	const struct otlp_options *options = untyped;
	int err = otlp_open_signal(exporter, options, SIGNAL_METRICS);

	if (err)
		return err;
	exporter_set_spool(exporter, options->spool_bytes, (uint32_t)exporter->format);
	exporter->queue.age_ns = exporter->queue.spool ? options->spool_age_ns : 0;
	join_leader(exporter->state);
	return 0;
}

const struct exporter_ops otlp_exporter = {
	.type = "otlp",
	.component = "otlp_http_metric_exporter",
	.settings = &otlp_settings,
	.signals = otlp_signals,
	.others = { &otlp_events_exporter, &otlp_traces_exporter },
	.environment = otlp_options_environment,
	.check = otlp_options_check,
	.state_bytes = sizeof(struct otlp),
	.open = otlp_open,
	.push = otlp_push,
	.merge = merge_requests,
	.send = otlp_send,
	.probe = otlp_probe,
	.close = otlp_close,
};

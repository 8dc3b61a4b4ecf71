/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP over HTTP. A batch is encoded, compressed and queued when it is pushed. Requests are sent one
 * at a time and in order. Each is tried until the receiver takes or refuses it, or a full queue drops
 * it. Then cumulative totals lose only resolution, but the increases of delta are lost, and counted.
 *
 * A request without an answer is sent again, as the protocol asks. The receiver may have accepted it;
 * then delta counts twice. That is logged, and this is the only way in which it can happen.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "export/exporter.h"
#include "export/otlp/answer.h"
#include "export/otlp/encode.h"
#include "export/otlp/gzip.h"
#include "export/otlp/options.h"
#include "export/transport/http.h"
#include "export/transport/timer.h"
#include "util/buf.h"

struct otlp {
	struct exporter *exporter;
	const struct otlp_options *options;
	struct http_client *client;
	struct backoff backoff;
	struct timer retry;
	bool is_waiting; /* for retry */
	struct otlp_report report;
	struct otlp_encoding encoding; /* of whose room only pages that bodies fill are touched */
};

#define CONNECTION_LIFETIME_S 600 /* in the manual */

/* Pages of the room beyond this are given back after a push. */
#define ROOM_KEPT_BYTES ((size_t)1 << 20)

static void send_next(struct otlp *otlp);

static void on_wake(void *user)
{
	struct otlp *otlp = user;

	otlp->is_waiting = false;
	send_next(otlp);
}

static void wait_and_retry(struct otlp *otlp, uint64_t retry_after_ns)
{
	/* Without memory for the timer, the next push tries again. */
	otlp->is_waiting = timer_arm_backoff(&otlp->retry, &otlp->backoff, retry_after_ns) >= 0;
}

/* Counts the points of the oldest request if their fate is known. */
static enum points settle(struct otlp *otlp, const struct otlp_answer *answer)
{
	struct exporter *exporter = otlp->exporter;
	const struct queue_item *item = TAILQ_FIRST(&exporter->queue.items);
	uint64_t limit_ns = otlp->options->retry_give_up_ns;

	if (answer->verdict == OTLP_ACCEPTED)
		exporter_works(exporter, "delivers again");
	if (answer->verdict == OTLP_AGAIN) {
		if (!limit_ns || timer_now_ns(otlp->retry.event) - item->first_sent_ns < limit_ns)
			return POINTS_PUSHED;
		exporter_account(exporter, POINTS_NOT_SENT, item->n_points);
		return POINTS_NOT_SENT;
	}
	exporter_account(exporter, POINTS_DELIVERED, item->n_points - answer->n_rejected);
	exporter_account(exporter, POINTS_REJECTED, answer->n_rejected);
	return answer->n_rejected < item->n_points ? POINTS_DELIVERED : POINTS_REJECTED;
}

static void on_answer(void *user, const struct http_answer *http)
{
	struct otlp *otlp = user;
	struct otlp_answer answer;

	exporter_asks(otlp->exporter, false);
	otlp_answer_read(http, TAILQ_FIRST(&otlp->exporter->queue.items)->n_points, &answer);
	otlp_report_answer(&otlp->report, http, &answer);
	queue_end(&otlp->exporter->queue, settle(otlp, &answer));
	if (answer.verdict == OTLP_AGAIN) {
		wait_and_retry(otlp, answer.retry_after_ns);
		return;
	}
	otlp->backoff.limit_ns = 0;
	send_next(otlp);
}

static int add_header(struct otlp *otlp, const char *text)
{
	_cleanup_(freep) char *header = NULL;
	const char *complaint;
	int err;

	if (!otlp_header_file(text))
		return http_client_add_header(otlp->client, text);
	err = otlp_header_resolve(text, &header, &complaint);
	if (!err)
		return http_client_add_header(otlp->client, header);
	otlp_report_header(&otlp->report, text, complaint);
	return err;
}

/* For each request, since the value of one may be in a file and change. */
static int set_headers(struct otlp *otlp)
{
	const struct setting_list *list = &otlp->options->headers;
	int err = http_client_reset_headers(otlp->client);

	if (!err)
		err = http_client_add_header(otlp->client, "Content-Type: application/x-protobuf");
	if (!err && !otlp->options->is_uncompressed)
		err = http_client_add_header(otlp->client, "Content-Encoding: gzip");
	for (size_t i = 0; i < list->n_items && !err; i++)
		err = add_header(otlp, list->items[i]);
	return err;
}

static void send_next(struct otlp *otlp)
{
	struct exporter_stats *stats = &otlp->exporter->stats;
	struct queue_item *item;
	int err;

	if (otlp->is_waiting)
		return;
	item = queue_begin(&otlp->exporter->queue);
	if (!item)
		return;
	err = set_headers(otlp);
	if (!err)
		err = http_client_post(otlp->client, item->data, item->size, on_answer, otlp);
	if (err) {
		if (!stats->is_failing)
			exporter_fail(otlp->exporter, LOG_LEVEL_ERROR, LOG_ID_EXPORT_FAILING, "the request cannot be made: %s",
				      strerror(-err));
		queue_end(&otlp->exporter->queue, POINTS_PUSHED);
		wait_and_retry(otlp, 0);
		return;
	}
	if (!item->n_sent)
		item->first_sent_ns = timer_now_ns(otlp->retry.event);
	exporter_asks(otlp->exporter, true);
	stats->requests++;
	stats->retries += item->n_sent++ != 0;
	stats->bytes_sent += item->size;
}

/* One encoded body into the queue. */
static int enqueue(void *user, const uint8_t *data, size_t size, size_t n_points)
{
	struct otlp *otlp = user;
	_cleanup_(buf_done) struct buf body = BUF_INIT;
	int err = 0;

	if (otlp->options->is_uncompressed)
		buf_append(&body, data, size);
	else
		err = gzip_append(&body, data, size);
	err = err ?: buf_error(&body);
	if (!err)
		return exporter_enqueue(otlp->exporter, TAKE_PTR(body.data), body.size, n_points);
	exporter_account(otlp->exporter, POINTS_NOT_SENT, n_points);
	return err;
}

static int otlp_push(struct exporter *exporter, const struct batch *batch)
{
	struct otlp *otlp = exporter->state;
	const struct otlp_encoding *encoding = &otlp->encoding;
	struct otlp_encoded encoded;
	int err = otlp_encode(encoding, batch, enqueue, otlp, &encoded);

	exporter_account(exporter, POINTS_PUSHED, encoded.n_points);
	exporter_account(exporter, POINTS_TOO_LARGE, encoded.n_too_large);
	exporter_account(exporter, POINTS_NOT_SENT, encoded.n_failed);
	if (err)
		exporter_log(exporter, LOG_LEVEL_ERROR, NULL, "could not encode all points: %s", strerror(-err));
	if (encoding->limit_bytes > ROOM_KEPT_BYTES)
		(void)madvise(encoding->room + ROOM_KEPT_BYTES, encoding->limit_bytes - ROOM_KEPT_BYTES,
			      MADV_DONTNEED);
	return err;
}

/* An empty request is whole: the receiver checks the headers, decodes it and answers. */
static int otlp_probe(struct exporter *exporter)
{
	struct otlp *otlp = exporter->state;
	int err = 0;

	if (!exporter->stats.requests && !exporter->queue.n_items) {
		err = enqueue(otlp, NULL, 0, 0);
		send_next(otlp);
	}
	if (err || exporter->stats.is_failing)
		return err ?: -EIO;
	return exporter_is_idle(exporter) ? otlp_report_last(&otlp->report) : 0;
}

static void otlp_send(struct exporter *exporter, const struct batch *batch)
{
	send_next(exporter->state);
}

static void otlp_close(struct exporter *exporter)
{
	struct otlp *otlp = exporter->state;

	timer_done(&otlp->retry);
	http_client_free(otlp->client);
	if (otlp->encoding.room != MAP_FAILED)
		munmap(otlp->encoding.room, otlp->encoding.limit_bytes);
}

/* Secrets that would go over a network in clear text. */
static void warn_of_bare_secrets(const struct otlp *otlp, const char *url)
{
	const struct setting_list *headers = &otlp->options->headers;
	struct url_place place = url_place(url);
	const char *what = place.has_password ? "password in the URL" : NULL, *name = "";

	for (size_t i = headers->n_items; i--;) {
		if (!otlp_header_is_secret(headers->items[i]))
			continue;
		what = "header ";
		name = headers->items[i];
	}
	if (what && !url_is_encrypted(url) && !place.is_local)
		exporter_log(otlp->exporter, LOG_LEVEL_WARNING, NULL,
			     "the %s%.*s is sent unencrypted over the network: use https://", what,
			     (int)strcspn(name, ":"), name);
}

/* path: NULL without a file, or if systemd hands it over. */
static void warn_of_readers(const struct otlp *otlp, const char *path)
{
	struct stat status;

	if (path && !stat(path, &status) && S_ISREG(status.st_mode) && status.st_mode & S_IROTH)
		exporter_log(otlp->exporter, LOG_LEVEL_WARNING, NULL, "all users can read the secret in %s: run chmod o-r %s",
			     path, path);
}

static int open_client(struct otlp *otlp)
{
	const struct otlp_options *options = otlp->options;
	const char *version = otlp->exporter->context->version;
	_cleanup_(freep) char *url = NULL;
	char user_agent[128];
	struct http_options http = options->http;
	int err = otlp_url(options, &url);

	if (err)
		return err;
	warn_of_bare_secrets(otlp, url);
	warn_of_readers(otlp, options->http.key_file);
	for (size_t i = 0; i < options->headers.n_items; i++)
		warn_of_readers(otlp, otlp_header_file(options->headers.items[i]));
	otlp->report.port = url_place(url).port;
	http.url = url;
	http.user_agent = user_agent;
	http.lifetime_s = CONNECTION_LIFETIME_S;
	snprintf(user_agent, sizeof(user_agent), "bpfpush/%s OTel-OTLP-Exporter-C/%s", version, version);
	return http_client_new(otlp->exporter->context->event, &http, &otlp->client);
}

static int otlp_open(struct exporter *exporter, const void *untyped)
{
	const struct otlp_options *options = untyped;
	struct otlp *otlp = exporter->state;
	int err;

	*otlp = (struct otlp){ .exporter = exporter, .options = options, .encoding = options->encoding,
			       .backoff = options->retry };
	otlp->report.exporter = exporter;
	otlp->report.is_delta = options->encoding.temporality == OTLP_DELTA;
	otlp->retry = (struct timer){ exporter->context->event, on_wake, otlp, NULL };
	queue_init(&exporter->queue, options->queue_requests, options->queue_bytes);
	otlp->encoding.resource = exporter->context->resource;
	otlp->encoding.n_resource = exporter->context->n_resource;
	otlp->encoding.version = exporter->context->version;
	otlp->encoding.room = mmap(NULL, otlp->encoding.limit_bytes, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	err = otlp->encoding.room == MAP_FAILED ? -ENOMEM : open_client(otlp);
	if (err)
		otlp_close(exporter);
	return err;
}

const struct exporter_ops otlp_exporter = {
	.type = "otlp",
	.settings = &otlp_settings,
	.environment = otlp_options_environment,
	.check = otlp_options_check,
	.state_bytes = sizeof(struct otlp),
	.open = otlp_open,
	.push = otlp_push,
	.send = otlp_send,
	.probe = otlp_probe,
	.close = otlp_close,
};

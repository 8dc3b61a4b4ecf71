/* SPDX-License-Identifier: Apache-2.0 */
#include "export/otlp/answer.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "export/otlp/options.h"
#include "otlp-metrics.pb-c.h"
#include "util/utf8.h"

/* Unknown fields take many times their size when decoded; a true answer is short. */
#define DECODED_BYTES_MAX (64 * 1024)

static bool is_type(const char *content_type, const char *type)
{
	size_t size = strlen(type);

	return !strncasecmp(content_type, type, size) && strchr("; \t", content_type[size]);
}

/* Text from outside may end up in a log. */
static void set_message(struct otlp_answer *answer, const char *text)
{
	snprintf(answer->message, sizeof(answer->message), "%s", text);
	utf8_clean(answer->message);
}

static void read_success(const struct http_answer *http, size_t n_points, struct otlp_answer *answer)
{
	Otlp__ExportMetricsServiceResponse *response =
		otlp__export_metrics_service_response__unpack(NULL, http->body_size, http->body);
	const Otlp__ExportMetricsPartialSuccess *partial = response ? response->partial_success : NULL;

	if (partial) {
		if (partial->rejected_data_points > 0)
			answer->n_rejected = (uint64_t)partial->rejected_data_points;
		if (answer->n_rejected > n_points)
			answer->n_rejected = n_points;
		set_message(answer, partial->error_message);
	}
	otlp__export_metrics_service_response__free_unpacked(response, NULL);
}

static void read_failure(const struct http_answer *http, struct otlp_answer *answer)
{
	Otlp__Status *status = otlp__status__unpack(NULL, http->body_size, http->body);

	if (status)
		set_message(answer, status->message);
	otlp__status__free_unpacked(status, NULL);
}

void otlp_answer_read(const struct http_answer *http, size_t n_points, struct otlp_answer *answer)
{
	bool is_protobuf = is_type(http->content_type, "application/x-protobuf");
	bool is_decodable = http->body_size && http->body_size <= DECODED_BYTES_MAX && is_protobuf;

	*answer = (struct otlp_answer){ .verdict = OTLP_REFUSED };
	if (http->failure == HTTP_UNREACHED || http->failure == HTTP_UNANSWERED) {
		answer->verdict = OTLP_AGAIN;
	} else if (http->failure == HTTP_OK && http->status >= 200 && http->status < 300) {
		answer->verdict = OTLP_ACCEPTED;
		/* A captive portal, or a web server on that port. Some receivers always answer in JSON. */
		answer->is_foreign = http->body_size && !is_protobuf && !is_type(http->content_type, "application/json");
		if (is_decodable)
			read_success(http, n_points, answer);
	} else if (http->failure == HTTP_OK) {
		if (is_decodable)
			read_failure(http, answer);
		if (http->status == 429 || (http->status >= 502 && http->status <= 504)) {
			answer->verdict = OTLP_AGAIN;
			answer->retry_after_ns = http->retry_after_ns;
		}
	}
	if (answer->verdict == OTLP_REFUSED)
		answer->n_rejected = n_points;
}

/* Messages */

/* What came back, in one number. */
static int outcome(const struct http_answer *http, const struct otlp_answer *answer)
{
	if (http->failure != HTTP_OK)
		return -(int)http->failure;
	return http->status * 4 + answer->is_foreign * 2 + (answer->n_rejected || answer->message[0]);
}

static void report_accepted(const struct exporter *exporter, const struct http_answer *http,
			    const struct otlp_answer *answer)
{
	if (answer->n_rejected)
		exporter_log(exporter, LOG_LEVEL_WARNING, LOG_ID_DATA_DROPPED, "the receiver rejected %zu point%s: %s",
			     (size_t)answer->n_rejected, plural(answer->n_rejected), answer->message);
	else if (answer->message[0])
		exporter_log(exporter, LOG_LEVEL_WARNING, NULL, "the receiver warns: %s", answer->message);
	else if (answer->is_foreign)
		exporter_log(exporter, LOG_LEVEL_WARNING, NULL,
			     "%.64s answered with status %d. This is not an OTLP receiver: check the endpoint",
			     http->content_type[0] ? http->content_type : "a body without a content type", http->status);
}

/* What whoever set this up may have overlooked, to be put after what went wrong. */
static const char *hint(const struct otlp_report *report, int status)
{
	if (report->port == 4317)
		return " (port 4317 is for OTLP/gRPC, bpfpush sends OTLP/HTTP: try port 4318)";
	if (status == 401 || status == 403)
		return " (check the setting headers)";
	if (status == 404 || status == 405)
		return " (is the path of the URL right? Most receivers take /v1/metrics)";
	return "";
}

static void report_failure(const struct otlp_report *report, const struct http_answer *http,
			   const struct otlp_answer *answer)
{
	const char *hinted = hint(report, http->status), *colon = answer->message[0] ? ": " : "";
	bool may_count_twice = http->failure == HTTP_UNANSWERED && report->is_delta;
	char what[512];

	if (http->failure == HTTP_OK)
		snprintf(what, sizeof(what), "HTTP %d%s%s", http->status, colon, answer->message);
	else
		snprintf(what, sizeof(what), "%s", http->problem);
	if (answer->verdict == OTLP_AGAIN)
		exporter_fail(report->exporter, LOG_LEVEL_WARNING, LOG_ID_EXPORT_FAILING,
			      "%s%s; kept for another attempt%s", what, hinted,
			      may_count_twice ? ", although the receiver may have counted it" : "");
	else
		exporter_fail(report->exporter, LOG_LEVEL_ERROR, LOG_ID_DATA_DROPPED,
			      "refused for good: %s%s; its points are dropped", what, hinted);
}

void otlp_report_answer(struct otlp_report *report, const struct http_answer *http,
			const struct otlp_answer *answer)
{
	int last = report->outcome;

	report->outcome = outcome(http, answer);
	if (report->outcome == last)
		return;
	if (answer->verdict == OTLP_ACCEPTED)
		report_accepted(report->exporter, http, answer);
	else
		report_failure(report, http, answer);
}

int otlp_report_last(const struct otlp_report *report)
{
	struct exporter_stats *stats = &report->exporter->stats;
	bool is_foreign = report->outcome & 2;

	snprintf(stats->problem, sizeof(stats->problem), "HTTP %d%s", report->outcome / 4,
		 is_foreign ? ", but this is not an OTLP receiver: check the endpoint" : "");
	return is_foreign ? -EPROTO : 1;
}

void otlp_report_header(struct otlp_report *report, const char *header, const char *complaint)
{
	report->outcome = 0; /* whatever is answered next is news */
	exporter_fail(report->exporter, LOG_LEVEL_ERROR, NULL, "headers: %.*s: the file %s cannot be used: %s",
		      (int)strcspn(header, ":"), header, otlp_header_file(header), complaint);
}

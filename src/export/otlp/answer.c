/* SPDX-License-Identifier: Apache-2.0 */
#include "export/otlp/answer.h"

#include <string.h>
#include <strings.h>

#include "otlp-metrics.pb-c.h"
#include "util/utf8.h"

/* Unknown fields take many times their size when decoded; a true answer is short. */
#define DECODED_BYTES_MAX (64 * 1024)

static bool is_type(const char *content_type, const char *type)
{
	size_t size = strlen(type);

	return !strncasecmp(content_type, type, size) && strchr("; \t", content_type[size]);
}

/* A captive portal, or a web server on that port. Some receivers always answer in JSON. */
static bool is_foreign(const struct http_answer *http)
{
	return http->body_size && !is_type(http->content_type, "application/x-protobuf") &&
	       !is_type(http->content_type, "application/json");
}

/* Text from outside may end up in a log. */
static void set_message(struct otlp_answer *answer, const char *text)
{
	snprintf(answer->message, sizeof(answer->message), "%s", text);
	utf8_clean(answer->message);
}

static bool is_decodable(const struct http_answer *http)
{
	return http->body_size && http->body_size <= DECODED_BYTES_MAX &&
	       is_type(http->content_type, "application/x-protobuf");
}

static void read_success(const struct http_answer *http, size_t n_points, struct otlp_answer *answer)
{
	Otlp__ExportMetricsServiceResponse *response;
	const Otlp__ExportMetricsPartialSuccess *partial;

	if (!is_decodable(http))
		return;
	response = otlp__export_metrics_service_response__unpack(NULL, http->body_size, http->body);
	if (!response)
		return;
	partial = response->partial_success;
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
	Otlp__Status *status;

	if (!is_decodable(http))
		return;
	status = otlp__status__unpack(NULL, http->body_size, http->body);
	if (!status)
		return;
	set_message(answer, status->message);
	otlp__status__free_unpacked(status, NULL);
}

static bool is_retryable(int status)
{
	return status == 429 || status == 502 || status == 503 || status == 504;
}

void otlp_answer_read(const struct http_answer *http, size_t n_points, struct otlp_answer *ret_answer)
{
	struct otlp_answer answer = { .verdict = OTLP_REFUSED };

	if (http->failure == HTTP_UNREACHED || http->failure == HTTP_UNANSWERED) {
		answer.verdict = OTLP_AGAIN;
	} else if (http->failure == HTTP_OK && http->status >= 200 && http->status < 300) {
		answer.verdict = OTLP_ACCEPTED;
		answer.is_foreign = is_foreign(http);
		read_success(http, n_points, &answer);
	} else if (http->failure == HTTP_OK) {
		read_failure(http, &answer);
		if (is_retryable(http->status)) {
			answer.verdict = OTLP_AGAIN;
			answer.retry_after_ns = http->retry_after_ns;
		}
	}
	if (answer.verdict == OTLP_REFUSED)
		answer.n_rejected = n_points;
	*ret_answer = answer;
}

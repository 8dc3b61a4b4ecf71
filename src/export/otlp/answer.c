/* SPDX-License-Identifier: Apache-2.0 */
#include "export/otlp/answer.h"

#include <string.h>
#include <strings.h>

#include "metric/attribute.h"
#include "otlp-metrics.pb-c.h"

/* Unknown fields take many times their size when decoded; a true answer is short. */
#define DECODED_BYTES_MAX (64 * 1024)

static bool is_type(const char *content_type, const char *type)
{
	size_t size = strlen(type);

	return !strncasecmp(content_type, type, size) && strchr("; \t", content_type[size]);
}

static bool is_protobuf(const char *content_type)
{
	return is_type(content_type, "application/x-protobuf");
}

/* A captive portal, or a web server on that port. Some receivers always answer in JSON. */
static bool is_foreign(const struct http_answer *http)
{
	return http->body_size && !is_protobuf(http->content_type) &&
	       !is_type(http->content_type, "application/json");
}

static void set_message(struct otlp_answer *answer, const char *text)
{
	struct attributes attributes;

	/* Text from outside may end up in a log: it is cleaned as attributes are. */
	attributes_init(&attributes);
	if (!text || attributes_add_text(&attributes, "", text, strlen(text)) < 0)
		return;
	snprintf(answer->message, sizeof(answer->message), "%s", attributes.items[0].text);
}

static bool is_decodable(const struct http_answer *http)
{
	return http->body_size && http->body_size <= DECODED_BYTES_MAX && is_protobuf(http->content_type);
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

	switch (http->failure) {
	case HTTP_UNREACHED:
	case HTTP_UNANSWERED:
		answer.verdict = OTLP_AGAIN;
		break;
	case HTTP_TOO_LARGE:
	case HTTP_BROKEN:
		break;
	case HTTP_OK:
		if (http->status >= 200 && http->status < 300) {
			answer.verdict = OTLP_ACCEPTED;
			answer.is_foreign = is_foreign(http);
			read_success(http, n_points, &answer);
			break;
		}
		read_failure(http, &answer);
		if (!is_retryable(http->status))
			break;
		answer.verdict = OTLP_AGAIN;
		answer.retry_after_ns = http->retry_after_ns;
	}
	*ret_answer = answer;
}

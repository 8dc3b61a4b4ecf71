/* SPDX-License-Identifier: Apache-2.0 */
#include "export/otlp/report.h"

#include <string.h>

#include "util/log.h"

#define OUTCOME_NOT_POSTED (-1000) /* and the error added */

/* What came back, in one number. */
static int outcome(const struct http_answer *http, const struct otlp_answer *answer)
{
	if (http->failure != HTTP_OK)
		return -(int)http->failure;
	return http->status * 4 + answer->is_foreign * 2 + (answer->n_rejected || answer->message[0]);
}

static void report_accepted(const struct otlp_report *report, const struct http_answer *http,
			    const struct otlp_answer *answer, const struct log_field *fields)
{
	const char *name = report->exporter->name;

	if (answer->n_rejected)
		log_event(LOG_LEVEL_WARNING, LOG_ID_DATA_DROPPED, fields,
			  "exporter %s: the receiver rejected %zu point%s: %s", name, (size_t)answer->n_rejected,
			  answer->n_rejected == 1 ? "" : "s", answer->message);
	else if (answer->message[0])
		log_event(LOG_LEVEL_WARNING, NULL, fields, "exporter %s: the receiver warns: %s", name,
			  answer->message);
	else if (answer->is_foreign)
		log_event(LOG_LEVEL_WARNING, NULL, fields,
			  "exporter %s: %.64s answered with status %d. This is not an OTLP receiver: check the endpoint",
			  name, http->content_type[0] ? http->content_type : "a body without a content type",
			  http->status);
	else if (report->exporter->stats.is_failing)
		log_event(LOG_LEVEL_INFO, LOG_ID_EXPORT_RECOVERED, fields, "exporter %s: delivers again", name);
}

/* What whoever set this up may have overlooked, to be put after what went wrong. */
static const char *hint(const struct otlp_report *report, int status)
{
	if (report->port == 4317)
		return " (port 4317 is for OTLP/gRPC, bpfpush sends OTLP/HTTP: try port 4318)";
	switch (status) {
	case 401:
	case 403:
		return " (check the setting headers)";
	case 404:
	case 405:
		return " (is the path of the URL right? Most receivers take /v1/metrics)";
	default:
		return "";
	}
}

static void report_failure(const struct otlp_report *report, const struct http_answer *http,
			   const struct otlp_answer *answer, const struct log_field *fields)
{
	const char *name = report->exporter->name, *hinted = hint(report, http->status);
	const char *colon = answer->message[0] ? ": " : "";
	char what[512];

	if (http->failure == HTTP_OK)
		snprintf(what, sizeof(what), "HTTP %d%s%s", http->status, colon, answer->message);
	else
		snprintf(what, sizeof(what), "%s", http->problem);
	if (answer->verdict == OTLP_AGAIN)
		log_event(LOG_LEVEL_WARNING, LOG_ID_EXPORT_FAILING, fields,
			  "exporter %s: %s%s; kept for another attempt%s", name, what, hinted,
			  http->failure == HTTP_UNANSWERED && report->is_delta ?
				  ", although the receiver may have counted it" :
				  "");
	else
		log_event(LOG_LEVEL_ERROR, LOG_ID_DATA_DROPPED, fields,
			  "exporter %s: refused for good: %s%s; its points are dropped", name, what, hinted);
}

void otlp_report_answer(struct otlp_report *report, const struct http_answer *http,
			const struct otlp_answer *answer)
{
	const struct log_field fields[] = { { "BPFPUSH_EXPORTER", report->exporter->name }, { NULL, NULL } };
	int last = report->outcome;

	report->outcome = outcome(http, answer);
	if (report->outcome == last)
		return;
	if (answer->verdict == OTLP_ACCEPTED)
		report_accepted(report, http, answer, fields);
	else
		report_failure(report, http, answer, fields);
}

void otlp_report_header(struct otlp_report *report, const char *header, int err, const char *complaint)
{
	int last = report->outcome;

	report->outcome = OUTCOME_NOT_POSTED + err;
	if (report->outcome != last)
		log_error("exporter %s: headers: %.*s: the file cannot be used: %s", report->exporter->name,
			  (int)strcspn(header, ":"), header, complaint);
}

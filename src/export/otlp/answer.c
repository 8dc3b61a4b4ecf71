/* SPDX-License-Identifier: Apache-2.0 */
#include "export/otlp/answer.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "export/otlp/json.h"
#include "export/transport/timer.h"
#include "export/transport/url.h"
#include "otlp-metrics.pb-c.h"
#include "util/duration.h"
#include "util/hash.h"
#include "util/utf8.h"

/* Unknown fields take many times their size when decoded; a true answer is short. */
#define BODY_BYTES_MAX (64 * 1024)

#define JSON "application/json"
#define GRPC "application/grpc"

/*
 * Any other status is a refusal. OTLP names 429, 502, 503 and 504; the others come from what stands
 * before the receiver and mean the same. A test compares these with the table in docs/operate.md.
 */
static const struct {
	int first, last;
	enum otlp_verdict verdict;
} verdicts[] = {
	{ 200, 299, OTLP_ACCEPTED }, /* if the rest of the answer is OTLP's */
	{ 300, 399, OTLP_AGAIN },    /* the receiver was not reached, only what stands before it */
	{ 407, 408, OTLP_AGAIN },
	{ 425, 425, OTLP_AGAIN },
	{ 429, 429, OTLP_AGAIN },
	{ 499, 499, OTLP_AGAIN },
	{ 502, 504, OTLP_AGAIN },
	{ 520, 524, OTLP_AGAIN },
};

static enum otlp_verdict find_verdict(int status)
{
	for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++)
		if (status >= verdicts[i].first && status <= verdicts[i].last)
			return verdicts[i].verdict;
	return OTLP_REFUSED;
}

static bool is_type(const char *content_type, const char *type)
{
	size_t size = strlen(type);

	return !strncasecmp(content_type, type, size) && strchr("; \t", content_type[size]);
}

static bool is_protobuf(const char *content_type)
{
	return is_type(content_type, "application/x-protobuf") ||
	       is_type(content_type, "application/protobuf");
}

/*
 * Words: what the body says. It comes from outside, so it need not be what its content type
 * promises: whatever makes no sense is skipped, and texts may still hold bytes that cannot be
 * printed.
 */

/* Text from outside may end up in a log: one line, with its blanks folded. */
static void set_message(struct otlp_answer *answer, const char *text)
{
	size_t n = 0;

	for (; *text && n < sizeof(answer->message) - 1; text++) {
		bool is_blank = isspace((unsigned char)*text);

		if (!is_blank || (n && answer->message[n - 1] != ' '))
			answer->message[n++] = is_blank ? ' ' : *text;
	}
	answer->message[n - (n && answer->message[n - 1] == ' ')] = '\0';
	utf8_clean(answer->message);
}

/*
 * The message, or else the error, of JSON; the title of HTML, or else its first words; all of other
 * JSON, the first line of other text; "": there is not any, or it is not text.
 */
static void read_text(const char *body, char ret_text[JSON_WORD_BYTES])
{
	const char *end = "\r\n", *title;

	body += strspn(body, " \t\r\n");
	if (*body == '{') {
		if (json_find(body, "message", ret_text) || json_find(body, "error", ret_text))
			return;
		end = "";
	} else if (*body == '<') {
		title = strcasestr(body, "<title");
		body = title ?: body;
		while (*body == '<') {
			body += strcspn(body, ">");
			body += *body == '>';
			body += strspn(body, " \t\r\n");
		}
		end = "<";
	}
	snprintf(ret_text, JSON_WORD_BYTES, "%.*s", (int)strcspn(body, end), body);
	if (!utf8_printable_bytes(ret_text, strlen(ret_text)))
		ret_text[0] = '\0';
}

/* The body as text, cut, for free(). NULL: there is none, or no memory. */
static char *copy_body(const struct http_answer *http)
{
	size_t size = http->body_size < BODY_BYTES_MAX ? http->body_size : BODY_BYTES_MAX;

	return size ? strndup((const char *)http->body, size) : NULL;
}

static void read_words(const struct http_answer *http, struct otlp_answer *answer)
{
	_cleanup_(freep) char *body = http->location ? url_public(http->location) : copy_body(http);
	char text[JSON_WORD_BYTES];

	if (!body)
		return;
	if (http->location)
		snprintf(text, sizeof(text), "Location: %s", body);
	else
		read_text(body, text);
	set_message(answer, text);
}

/* false: it cannot be decoded */
static bool read_status(const struct http_answer *http, struct otlp_answer *answer)
{
	Otlp__Status *status = otlp__status__unpack(NULL, http->body_size, http->body);

	if (status)
		set_message(answer, status->message);
	otlp__status__free_unpacked(status, NULL);
	return status != NULL;
}

static bool is_answered(const struct http_answer *http)
{
	return http->failure != HTTP_UNREACHED && http->failure != HTTP_UNANSWERED;
}

static void read_failure(const struct http_answer *http, struct otlp_answer *answer)
{
	bool is_unread = http->failure == HTTP_TOO_LARGE ||
			 (http->failure == HTTP_CUT && http->status < 300);
	bool may_be_status = http->body_size && http->body_size <= BODY_BYTES_MAX &&
			     is_protobuf(http->content_type);

	if (is_unread)
		set_message(answer, http->problem);
	else if (!may_be_status || !read_status(http, answer))
		read_words(http, answer);
}

/* What is left of a success. */

/*
 * false: it is not a response in protobuf. Some texts can be decoded as well, as fields that nobody
 * knows: these count only if the answer is called protobuf.
 */
static bool read_response(const struct http_answer *http, size_t n_points,
			  struct otlp_answer *answer)
{
	Otlp__ExportMetricsServiceResponse *response =
		otlp__export_metrics_service_response__unpack(NULL, http->body_size, http->body);
	bool is_right = response && (!response->base.n_unknown_fields ||
				     is_protobuf(http->content_type));
	const Otlp__ExportMetricsPartialSuccess *partial = is_right ?
							   response->partial_success : NULL;

	if (partial) {
		if (partial->rejected_data_points > 0)
			answer->n_rejected = (uint64_t)partial->rejected_data_points;
		if (answer->n_rejected > n_points)
			answer->n_rejected = n_points;
		set_message(answer, partial->error_message);
	}
	otlp__export_metrics_service_response__free_unpacked(response, NULL);
	return is_right;
}

static bool find_rejected(const char *body, char text[JSON_WORD_BYTES])
{
	static const char *const members[] = { "rejectedDataPoints", "rejected_data_points",
					       "rejectedLogRecords", "rejected_log_records",
					       "rejectedSpans",	     "rejected_spans" };

	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		if (json_find(body, members[i], text))
			return true;
	return false;
}

/* false: it is not a response in JSON */
static bool read_json_response(const struct http_answer *http, size_t n_points,
			       struct otlp_answer *answer)
{
	static const char *const members[] = { "partialSuccess", "partial_success", NULL };
	_cleanup_(freep) char *body = copy_body(http);
	char text[JSON_WORD_BYTES];
	double n;

	if (!body || strlen(body) != http->body_size || !json_has_only(body, members))
		return false;
	n = find_rejected(body, text) ? strtod(text, NULL) : 0;
	if (n > 0)
		answer->n_rejected = n < (double)n_points ? (uint64_t)n : n_points;
	if (json_find(body, "errorMessage", text) || json_find(body, "error_message", text))
		set_message(answer, text);
	return true;
}

/* false: not even the status is from an OTLP receiver */
static bool read_success(const struct http_answer *http, size_t n_points,
			 struct otlp_answer *answer)
{
	const char *type = http->content_type;

	if (http->failure == HTTP_TOO_LARGE || http->body_size > BODY_BYTES_MAX)
		return false;
	if (http->failure == HTTP_CUT)
		return !*type || is_protobuf(type) || is_type(type, JSON);
	if (!http->body_size)
		return strncasecmp(type, GRPC, strlen(GRPC)) != 0;
	return read_response(http, n_points, answer) || read_json_response(http, n_points, answer);
}

void otlp_answer_read(const struct http_answer *http, size_t n_points, struct otlp_answer *answer)
{
	*answer = (struct otlp_answer){ .verdict = OTLP_AGAIN,
					.is_in_doubt = http->failure == HTTP_UNANSWERED };
	if (!is_answered(http))
		return;
	answer->verdict = find_verdict(http->status);
	if (answer->verdict == OTLP_ACCEPTED) {
		if (read_success(http, n_points, answer))
			return;
		answer->verdict = OTLP_AGAIN;
		/* Something took it, unless that is a page for people. */
		answer->is_in_doubt = !is_type(http->content_type, "text/html");
	}
	read_failure(http, answer);
	if (answer->verdict == OTLP_AGAIN)
		answer->retry_after_ns = http->retry_after_ns;
	else
		answer->n_rejected = n_points;
}

/* Messages */

/*
 * What came back, in one number: the receiver's words, but not libcurl's, which hold times. Words
 * with digits are left out, since requests and times have numbers.
 */
static uint64_t encode_outcome(const struct http_answer *http, const struct otlp_answer *answer)
{
	const int what[] = { http->status, (int)answer->verdict, answer->n_rejected != 0 };
	uint64_t hash = hash_stable(HASH_STABLE_START, what, sizeof(what));

	return is_answered(http) ? hash_words(hash, answer->message) : http->failure;
}

/*
 * What the user may have overlooked at the set-up. The first that fits is put after what went
 * wrong.
 */
static const struct {
	int first, last;   /* status; 0: any, or none */
	unsigned int port; /* 0: any */
	const char *url;   /* how it begins; NULL: any */
	const char *word;  /* in what went wrong, or in the content type; NULL: any */
	enum signals takes; /* only for an exporter of that; 0: any */
	const char *hint;
} hints[] = {
	{ .port = 4317, .hint = "port 4317 is for OTLP/gRPC, bpfpush sends OTLP/HTTP: try port 4318" },
	{ .word = GRPC, .hint = "this is OTLP/gRPC, bpfpush sends OTLP/HTTP: try port 4318" },
	{ .word = "sent to HTTPS port", .hint = "the port speaks TLS: try https://" },
	{ .word = "to an HTTPS server", .hint = "the port speaks TLS: try https://" },
	{ .word = "wrong version number", .hint = "the port speaks plain HTTP: try http://" },
	{ .word = "getpeername() failed", .hint = "it ended the connection: if it wants a certificate, set certificate_file and key_file" },
	{ .word = "HTTP/0.9", .hint = "something else than HTTP listens there" },
	{ .word = "signed certificate", .hint = "set ca_file to the certificate of its CA" },
	{ .word = "local issuer certificate", .hint = "set ca_file to the certificate of its CA" },
	{ .word = "proxy answered HTTP 407", .hint = "it wants credentials: https_proxy=http://USER:PASSWORD@HOST:PORT" },
	{ 407, 407, .hint = "the proxy wants credentials: http_proxy=http://USER:PASSWORD@HOST:PORT" },
	{ 200, 299, .hint = "this is not an OTLP receiver: check the endpoint" },
	{ 300, 399, .url = "http:", .word = "Location: https:",
	  .hint = "redirects are not followed: if that is the receiver, use https://" },
	{ 300, 399, .hint = "redirects are not followed: if that is the receiver, set the URL to it" },
	{ 401, 401, .hint = "check the setting headers" },
	{ 403, 403, .hint = "check the setting headers" },
	{ 404, 405, .takes = SIGNAL_EVENTS, .hint = "does it take logs? Set logs_endpoint, or leave events out of signals" },
	{ 404, 405, .takes = SIGNAL_TRACES,
	  .hint = "does it take traces? Set traces_endpoint, or leave traces out of signals" },
	{ 404, 405, .port = 9090, .hint = "Prometheus takes http://HOST:9090/api/v1/otlp" },
	{ 404, 405, .hint = "is the path of the URL right? Most receivers take /v1/metrics" },
	{ 413, 413, .hint = "lower max_request_size" },
	{ 415, 415, .hint = "try compression = none" },
	{ 429, 429, .hint = "it limits how much it takes: a longer interval helps" },
};

static void append_hint(const struct otlp_report *report, const struct http_answer *http,
			char *what, size_t size)
{
	size_t length = strlen(what);

	for (size_t i = 0; i < ARRAY_SIZE(hints); i++) {
		const char *word = hints[i].word, *url = hints[i].url;

		if ((hints[i].first &&
		     (http->status < hints[i].first || http->status > hints[i].last)) ||
		    (hints[i].port && report->port != hints[i].port) ||
		    (url && strncasecmp(report->url, url, strlen(url))) ||
		    (hints[i].takes && hints[i].takes != report->exporter->ops->takes) ||
		    (word && !strcasestr(what, word) && !strcasestr(http->content_type, word)))
			continue;
		snprintf(what + length, size - length, " (%s)", hints[i].hint);
		return;
	}
}

static void report_accepted(struct otlp_report *report, const struct otlp_answer *answer)
{
	if (!answer->n_rejected && !answer->message[0])
		return;
	if (!exporter_may_log(report->exporter)) {
		report->outcome = 0; /* next time */
		return;
	}
	if (answer->n_rejected)
		exporter_log(report->exporter, LOG_LEVEL_WARNING, LOG_ID_DATA_DROPPED,
			     "the receiver rejected %zu %s%s%s%s", (size_t)answer->n_rejected,
			     exporter_item(report->exporter), plural(answer->n_rejected),
			     answer->message[0] ? ": " : "", answer->message);
	else
		exporter_log(report->exporter, LOG_LEVEL_WARNING, NULL, "the receiver warns: %s",
			     answer->message);
}

static void report_refusal(const struct otlp_report *report, const char *what)
{
	if (report->is_delta && !report->is_of_events)
		exporter_fail(report->exporter, LOG_LEVEL_ERROR, LOG_ID_DATA_DROPPED,
			      "%.160s: refused: %s; its counts are in the next request", report->url, what);
	else
		exporter_fail(report->exporter, LOG_LEVEL_ERROR, LOG_ID_DATA_DROPPED,
			      "%.160s: refused for good: %s; its %ss are dropped", report->url, what,
			      exporter_item(report->exporter));
}

static void report_failure(const struct otlp_report *report, const struct http_answer *http,
			   const struct otlp_answer *answer, uint64_t delay_ns)
{
	bool may_count_twice = answer->is_in_doubt && report->is_delta;
	char what[512];

	if (is_answered(http))
		snprintf(what, sizeof(what), "HTTP %d%s%s", http->status, answer->message[0] ? ": " : "",
			 answer->message);
	else
		snprintf(what, sizeof(what), "%s", http->problem);
	append_hint(report, http, what, sizeof(what));
	if (answer->verdict == OTLP_AGAIN)
		exporter_fail_until(report->exporter, LOG_LEVEL_WARNING,
				    LOG_ID_EXPORT_FAILING, delay_ns,
				    "%.160s: %s%s; kept for another attempt", report->url, what,
				    may_count_twice ? ", but the receiver may have counted it" : "");
	else
		report_refusal(report, what);
}

void otlp_report_answer(struct otlp_report *report, const struct http_answer *http,
			const struct otlp_answer *answer, uint64_t delay_ns)
{
	uint64_t now_ns = timer_boottime_ns(report->exporter->context->event);
	uint64_t last = report->outcome;

	report->outcome = encode_outcome(http, answer);
	report->status = http->status;
	/* Points that are rejected are lost: that is said again each hour, as of other losses. */
	if (report->outcome == last &&
	    (!answer->n_rejected || now_ns - report->reported_ns < NS_PER_HOUR))
		return;
	report->reported_ns = now_ns;
	if (answer->verdict == OTLP_ACCEPTED)
		report_accepted(report, answer);
	else
		report_failure(report, http, answer, delay_ns);
}

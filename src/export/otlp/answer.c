/* SPDX-License-Identifier: Apache-2.0 */
#include "export/otlp/answer.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "export/transport/url.h"
#include "otlp-metrics.pb-c.h"
#include "util/utf8.h"

/* Unknown fields take many times their size when decoded; a true answer is short. */
#define BODY_BYTES_MAX (64 * 1024)

#define PROTOBUF "application/x-protobuf"
#define JSON	 "application/json"
#define HTML	 "text/html"
#define GRPC	 "application/grpc"

#define WORDS_BYTES 1024
#define NUMBER	    "+-.0123456789eE"

/*
 * Words: what the body says. It comes from outside, so it need not be what its content type
 * promises: whatever makes no sense is skipped, and texts may still hold bytes that cannot be
 * printed.
 */

static bool is_type(const char *content_type, const char *type)
{
	size_t size = strlen(type);

	return !strncasecmp(content_type, type, size) && strchr("; \t", content_type[size]);
}

/* at: after a backslash; moved to what comes after the escape. */
static char read_escape(const char **at)
{
	char c = **at, digits[5] = "";
	unsigned long code;

	*at += c != '\0';
	if (c != 'u')
		return strchr("bfnrt", c) ? ' ' : c;
	for (size_t i = 0; i < 4 && isxdigit((unsigned char)**at); i++)
		digits[i] = *(*at)++;
	code = strtoul(digits, NULL, 16);
	return code && code < 0x80 ? (char)code : '?';
}

/* at: after the first quote; moved to what comes after the last. */
static void read_string(const char **at, char text[WORDS_BYTES])
{
	size_t n = 0;

	while (**at && **at != '"') {
		char c = *(*at)++;

		if (c == '\\')
			c = read_escape(at);
		if (n < WORDS_BYTES - 1)
			text[n++] = c;
	}
	*at += **at == '"';
	text[n] = '\0';
}

/*
 * The string, with its escapes resolved, or the number that belongs to the first such key, at any
 * depth; cut. Characters above ASCII that are written as escapes become '?'. false: there is none.
 */
static bool find_word(const char *json, const char *key, char ret_text[WORDS_BYTES])
{
	bool is_key = false, is_value = false;
	char text[WORDS_BYTES];

	while (*json) {
		char c = *json++;

		if (c == '"') {
			read_string(&json, text);
			if (is_value) {
				memcpy(ret_text, text, sizeof(text));
				return true;
			}
			is_key = !strcmp(text, key);
		} else if (is_value && strchr(NUMBER, c)) {
			snprintf(ret_text, WORDS_BYTES, "%.*s",
				 (int)strspn(json - 1, NUMBER), json - 1);
			return true;
		} else if (!isspace((unsigned char)c)) {
			is_value = is_key && c == ':';
			is_key = false;
		}
	}
	return false;
}

/*
 * The message, or else the error, of JSON, the title of HTML, the first line of plain text or of no
 * type; "": none.
 */
static void read_text(const char *content_type, const char *body, char ret_text[WORDS_BYTES])
{
	const char *title;

	ret_text[0] = '\0';
	if (is_type(content_type, JSON)) {
		(void)(find_word(body, "message", ret_text) || find_word(body, "error", ret_text));
	} else if (is_type(content_type, HTML)) {
		title = strcasestr(body, "<title");
		title = title ? strchr(title, '>') : NULL;
		if (title)
			snprintf(ret_text, WORDS_BYTES, "%.*s", (int)strcspn(title + 1, "<"), title + 1);
	} else if (!content_type[0] || is_type(content_type, "text/plain")) {
		body += strspn(body, " \t\r\n");
		snprintf(ret_text, WORDS_BYTES, "%.*s", (int)strcspn(body, "\r\n"), body);
	}
}

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

/* The body as text, cut, for free(). NULL: there is none, or no memory. */
static char *copy_body(const struct http_answer *http)
{
	size_t size = http->body_size < BODY_BYTES_MAX ? http->body_size : BODY_BYTES_MAX;

	return size ? strndup((const char *)http->body, size) : NULL;
}

/* false: it cannot be decoded */
static bool read_success(const struct http_answer *http, size_t n_points,
			 struct otlp_answer *answer)
{
	Otlp__ExportMetricsServiceResponse *response =
		otlp__export_metrics_service_response__unpack(NULL, http->body_size, http->body);
	const Otlp__ExportMetricsPartialSuccess *partial = response ?
							   response->partial_success : NULL;

	if (partial) {
		if (partial->rejected_data_points > 0)
			answer->n_rejected = (uint64_t)partial->rejected_data_points;
		if (answer->n_rejected > n_points)
			answer->n_rejected = n_points;
		set_message(answer, partial->error_message);
	}
	otlp__export_metrics_service_response__free_unpacked(response, NULL);
	return response != NULL;
}

static void read_json_success(const struct http_answer *http, size_t n_points,
			      struct otlp_answer *answer)
{
	_cleanup_(freep) char *body = copy_body(http);
	char text[WORDS_BYTES];
	double n;

	if (!body)
		return;
	n = find_word(body, "rejectedDataPoints", text) ? strtod(text, NULL) : 0;
	if (n > 0)
		answer->n_rejected = n < (double)n_points ? (uint64_t)n : n_points;
	if (find_word(body, "errorMessage", text))
		set_message(answer, text);
}

static void read_failure(const struct http_answer *http, struct otlp_answer *answer)
{
	Otlp__Status *status = otlp__status__unpack(NULL, http->body_size, http->body);

	if (status)
		set_message(answer, status->message);
	otlp__status__free_unpacked(status, NULL);
}

static void read_words(const struct http_answer *http, struct otlp_answer *answer)
{
	_cleanup_(freep) char *body = http->location ? url_public(http->location) : copy_body(http);
	char text[WORDS_BYTES];

	if (!body)
		return;
	if (http->location)
		snprintf(text, sizeof(text), "Location: %s", body);
	else
		read_text(http->content_type, body, text);
	set_message(answer, text);
}

void otlp_answer_read(const struct http_answer *http, size_t n_points, struct otlp_answer *answer)
{
	bool is_protobuf = is_type(http->content_type, PROTOBUF);
	bool is_json = is_type(http->content_type, JSON);
	bool is_decodable = http->body_size && http->body_size <= BODY_BYTES_MAX && is_protobuf;
	/* of a portal or another server */
	bool is_page = http->body_size && is_type(http->content_type, HTML);

	*answer = (struct otlp_answer){ .verdict = OTLP_REFUSED };
	if (http->failure == HTTP_TOO_LARGE)
		set_message(answer, http->problem);
	if (http->failure == HTTP_UNREACHED || http->failure == HTTP_UNANSWERED) {
		answer->verdict = OTLP_AGAIN;
	} else if (http->status >= 200 && http->status < 300 && !is_page) {
		answer->verdict = OTLP_ACCEPTED;
		/* Something else on that port. Some receivers always answer in JSON. */
		answer->is_foreign = http->body_size ? !is_protobuf && !is_json :
						       !strncasecmp(http->content_type, GRPC,
								    strlen(GRPC));
		if (is_decodable)
			answer->is_foreign = !read_success(http, n_points, answer);
		else if (is_json)
			read_json_success(http, n_points, answer);
	} else {
		if (is_decodable)
			read_failure(http, answer);
		else if (http->failure == HTTP_OK)
			read_words(http, answer);
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
static int encode_outcome(const struct http_answer *http, const struct otlp_answer *answer)
{
	if (http->failure == HTTP_UNREACHED || http->failure == HTTP_UNANSWERED)
		return -(int)http->failure;
	return http->status * 4 + answer->is_foreign * 2 +
	       (answer->n_rejected || answer->message[0]);
}

/*
 * What the user may have overlooked at the set-up. The first that fits is put after what went
 * wrong.
 */
static const struct {
	int first, last;   /* status; 0: any, or none */
	unsigned int port; /* 0: any */
	const char *word;  /* in what went wrong, or in the content type; NULL: any */
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
	{ 300, 399, .hint = "redirects are not followed: set the URL to where this one leads" },
	{ 401, 401, .hint = "check the setting headers" },
	{ 403, 403, .hint = "check the setting headers" },
	{ 404, 405, .port = 9090, .hint = "Prometheus takes http://HOST:9090/api/v1/otlp" },
	{ 404, 405, .hint = "is the path of the URL right? Most receivers take /v1/metrics" },
	{ 413, 413, .hint = "lower max_request_size" },
	{ 415, 415, .hint = "try compression = none" },
};

static void append_hint(const struct otlp_report *report, const struct http_answer *http,
			char *what, size_t size)
{
	size_t length = strlen(what);

	for (size_t i = 0; i < ARRAY_SIZE(hints); i++) {
		const char *word = hints[i].word;

		if ((hints[i].first &&
		     (http->status < hints[i].first || http->status > hints[i].last)) ||
		    (hints[i].port && report->port != hints[i].port) ||
		    (word && !strcasestr(what, word) && !strcasestr(http->content_type, word)))
			continue;
		snprintf(what + length, size - length, " (%s)", hints[i].hint);
		return;
	}
}

static void report_accepted(const struct otlp_report *report, const struct http_answer *http,
			    const struct otlp_answer *answer)
{
	const char *body = http->content_type[0] ? http->content_type : "a body without a content type";
	char what[512];

	if (is_type(http->content_type, PROTOBUF))
		body = "a body that cannot be decoded";
	snprintf(what, sizeof(what), "%.64s answered with status %d", body, http->status);
	if (answer->n_rejected)
		exporter_log(report->exporter, LOG_LEVEL_WARNING, LOG_ID_DATA_DROPPED,
			     "the receiver rejected %zu point%s: %s", (size_t)answer->n_rejected,
			     plural(answer->n_rejected), answer->message);
	else if (answer->message[0])
		exporter_log(report->exporter, LOG_LEVEL_WARNING, NULL, "%s%s",
			     http->failure == HTTP_OK ? "the receiver warns: " : "", answer->message);
	else if (answer->is_foreign) {
		append_hint(report, http, what, sizeof(what));
		exporter_log(report->exporter, LOG_LEVEL_WARNING, NULL, "%.160s: %s", report->url, what);
	}
}

static void report_failure(const struct otlp_report *report, const struct http_answer *http,
			   const struct otlp_answer *answer, uint64_t delay_ns)
{
	bool is_answer = http->failure == HTTP_OK || http->failure == HTTP_TOO_LARGE;
	bool may_count_twice = http->failure == HTTP_UNANSWERED && report->is_delta;
	char what[512];

	if (is_answer)
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
		exporter_fail(report->exporter, LOG_LEVEL_ERROR, LOG_ID_DATA_DROPPED,
			      report->is_delta ? "%.160s: refused: %s; its counts are in the next request" :
						 "%.160s: refused for good: %s; its points are dropped", report->url, what);
}

void otlp_report_answer(struct otlp_report *report, const struct http_answer *http,
			const struct otlp_answer *answer, uint64_t delay_ns)
{
	int last = report->outcome;

	report->outcome = encode_outcome(http, answer);
	if (report->outcome == last)
		return;
	if (answer->verdict == OTLP_ACCEPTED)
		report_accepted(report, http, answer);
	else
		report_failure(report, http, answer, delay_ns);
}

int otlp_report_last(const struct otlp_report *report)
{
	struct exporter_stats *stats = &report->exporter->stats;
	bool is_foreign = report->outcome & 2;

	snprintf(stats->problem, sizeof(stats->problem), "HTTP %d%s", report->outcome / 4,
		 is_foreign ? ", but this is not an OTLP receiver: check the endpoint" : "");
	return is_foreign ? -EPROTO : 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdlib.h>

#include "export/otlp/answer.h"
#include "logged.h"
#include "otlp-metrics.pb-c.h"
#include "util/cleanup.h"

#define PROTOBUF "application/x-protobuf"
#define JSON	 "application/json"

static struct otlp_answer read_answer(struct http_answer http)
{
	struct otlp_answer answer;

	if (!http.content_type)
		http.content_type = "";
	otlp_answer_read(&http, 10, &answer);
	return answer;
}

static void each_status_has_its_verdict(void **state)
{
	static const struct {
		int first, last;
		enum otlp_verdict verdict;
	} ranges[] = {
		{ 200, 299, OTLP_ACCEPTED }, { 300, 428, OTLP_REFUSED }, { 429, 429, OTLP_AGAIN },
		{ 430, 501, OTLP_REFUSED },  { 502, 504, OTLP_AGAIN },	 { 505, 999, OTLP_REFUSED },
	};

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		for (int status = ranges[i].first; status <= ranges[i].last; status++)
			assert_int_equal(read_answer((struct http_answer){ .status = status }).verdict,
					 ranges[i].verdict);
}

static void without_an_answer_it_is_tried_again(void **state)
{
	assert_int_equal(read_answer((struct http_answer){ .failure = HTTP_UNREACHED }).verdict, OTLP_AGAIN);
	assert_int_equal(read_answer((struct http_answer){ .failure = HTTP_UNANSWERED, .status = 200 }).verdict,
			 OTLP_AGAIN);
}

static void the_status_of_an_answer_that_is_too_large_holds(void **state)
{
	static const struct {
		int status;
		enum otlp_verdict verdict;
	} cases[] = { { 200, OTLP_ACCEPTED }, { 400, OTLP_REFUSED }, { 429, OTLP_AGAIN },
		      { 500, OTLP_REFUSED },  { 502, OTLP_AGAIN },   { 503, OTLP_AGAIN }, { 504, OTLP_AGAIN } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct otlp_answer answer = read_answer((struct http_answer){
			.failure = HTTP_TOO_LARGE, .status = cases[i].status, .problem = "too large", .retry_after_ns = 5,
			.content_type = "text/html" });

		assert_int_equal(answer.verdict, cases[i].verdict);
		assert_int_equal(answer.n_rejected, answer.verdict == OTLP_REFUSED ? 10 : 0);
		assert_int_equal(answer.retry_after_ns, answer.verdict == OTLP_AGAIN ? 5 : 0);
		assert_string_equal(answer.message, "too large");
		assert_false(answer.is_foreign);
	}
}

static struct otlp_answer partial(int64_t rejected, const char *message, const char *type)
{
	Otlp__ExportMetricsServiceResponse response = OTLP__EXPORT_METRICS_SERVICE_RESPONSE__INIT;
	Otlp__ExportMetricsPartialSuccess success = OTLP__EXPORT_METRICS_PARTIAL_SUCCESS__INIT;
	uint8_t body[2048];

	success.rejected_data_points = rejected;
	success.error_message = (char *)message;
	response.partial_success = &success;
	return read_answer((struct http_answer){
		.status = 200, .body = body, .content_type = type,
		.body_size = otlp__export_metrics_service_response__pack(&response, body) });
}

static void a_partial_success_is_counted(void **state)
{
	struct otlp_answer answer = partial(3, "too old", PROTOBUF);

	assert_int_equal(answer.verdict, OTLP_ACCEPTED);
	assert_int_equal(answer.n_rejected, 3);
	assert_string_equal(answer.message, "too old");
	assert_int_equal(partial(3, "x", "Application/X-Protobuf; charset=x").n_rejected, 3);
	assert_int_equal(partial(3, "x", "application/x-protobufs").n_rejected, 0);
	assert_int_equal(partial(3, "x", "text/plain").n_rejected, 0);
	assert_int_equal(partial(11, "x", PROTOBUF).n_rejected, 10);
	assert_int_equal(partial(INT64_MIN, "x", PROTOBUF).n_rejected, 0);
	assert_string_equal(partial(0, "", PROTOBUF).message, "");
}

/* A body of its own size, so that a sanitizer sees who reads on. */
static struct otlp_answer read_text(int status, const char *type, const char *text, size_t size)
{
	_cleanup_(freep) uint8_t *body = malloc(size);

	memcpy(body, text, size);
	return read_answer(
		(struct http_answer){ .status = status, .content_type = type, .body = body, .body_size = size });
}

static void a_partial_success_in_json_is_counted(void **state)
{
	static const struct {
		const char *body;
		unsigned int n_rejected;
		const char *message;
	} cases[] = {
		{ "{\"partialSuccess\":{\"rejectedDataPoints\":\"3\",\"errorMessage\":\"too old\"}}", 3, "too old" },
		{ "{ \"partialSuccess\" : {\n\"errorMessage\" : \"a\\u0022\\nb\\/\\u00e9\", \"rejectedDataPoints\" :\t4 } }", 4,
		  "a\" b/?" },
		{ "{\"partialSuccess\":{\"rejectedDataPoints\":\"9223372036854775807\"}}", 10, "" },
		{ "{\"partialSuccess\":{\"rejectedDataPoints\":1e400}}", 10, "" },
		{ "{\"partialSuccess\":{\"rejectedDataPoints\":\"nan\"}}", 0, "" },
		{ "{\"partialSuccess\":{\"rejectedDataPoints\":-3}}", 0, "" },
		{ "{\"partialSuccess\":{\"rejectedDataPoints\":null}}", 0, "" },
		{ "{\"partialSuccess\":{\"rejectedDataPoints\":[3]}}", 0, "" },
		{ "{\"errorMessage\":\"\\\"rejectedDataPoints\\\":7\"}", 0, "\"rejectedDataPoints\":7" },
		{ "[\"rejectedDataPoints\",7]", 0, "" },
		{ "{\"partialSuccess\":{}}", 0, "" },
		{ "{\"rejectedDataPoints\":", 0, "" },
		{ "{\"errorMessage\":\"cut\\", 0, "cut" },
		{ "{\"errorMessage\":\"\\u00", 0, "?" },
		{ "\"", 0, "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct otlp_answer answer = read_text(200, JSON "; charset=utf-8", cases[i].body, strlen(cases[i].body));

		assert_int_equal(answer.verdict, OTLP_ACCEPTED);
		assert_int_equal(answer.n_rejected, cases[i].n_rejected);
		assert_string_equal(answer.message, cases[i].message);
		assert_false(answer.is_foreign);
	}
}

static void the_reason_of_a_refusal_is_read_by_its_type(void **state)
{
	static const struct {
		const char *type, *body, *want;
	} cases[] = {
		{ "text/plain; charset=utf-8", "\r\n  out  of\torder \r\nsecond line", "out of order" },
		{ "", "Client sent an HTTP request to an HTTPS server.\n", "Client sent an HTTP request to an HTTPS server." },
		{ JSON, "{\"code\":3,\"message\":\"bad \\\"data\\\"\",\"details\":[]}", "bad \"data\"" },
		{ JSON, "{\"error\":\"why\",\"message\":\"because\"}", "because" },
		{ JSON, "{\"status\":\"error\",\"error\":\"invalid temporality\"}", "invalid temporality" },
		{ JSON, "{\"error\":{\"message\":\"inside\"}}", "inside" },
		{ JSON, "\"message\"", "" },
		{ "text/html", "<html><HEAD><Title lang=en>\n 404 Not\n Found</title>", "404 Not Found" },
		{ "text/html", "<title>open", "open" },
		{ "text/html", "<title", "" },
		{ "text/html", "<h1>x", "" },
		{ "text/plain", "\n \n", "" },
		{ "text/plain", "\x1b[31mred\x7f \xff\xc3", "?[31mred? ??" },
		{ "image/png", "png", "" },
	};
	struct otlp_answer answer;
	char text[2000];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		answer = read_text(400, cases[i].type, cases[i].body, strlen(cases[i].body));
		assert_string_equal(answer.message, cases[i].want);
	}
	assert_string_equal(read_text(400, "text/plain", "a\0b", 3).message, "a");
	memset(text, 'x', sizeof(text));
	answer = read_text(400, "text/plain", text, sizeof(text));
	assert_int_equal(strlen(answer.message), OTLP_MESSAGE_BYTES - 1);
	answer = read_answer((struct http_answer){ .status = 301, .location = "https://me:secret@h/new?token=1" });
	assert_string_equal(answer.message, "Location: https://h/new");
	assert_int_equal(answer.verdict, OTLP_REFUSED);
}

static void success_in_the_words_of_something_else_is_noticed(void **state)
{
	static const struct {
		int status;
		size_t body_size;
		const char *type;
		bool want;
	} cases[] = {
		{ 200, 0, "text/html", false },	       { 200, 5, "text/plain; charset=utf-8", true },
		{ 200, 5, "", true },		       { 200, 5, "Application/JSON; charset=utf-8", false },
		{ 200, 5, "application/jsonp", true }, { 200, 5, PROTOBUF, true },
		{ 200, 0, "application/grpc+proto", true }, { 200, 0, PROTOBUF, false },
		{ 404, 5, "text/html", false },	       { 204, 5, "text/html; charset=utf-8", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct otlp_answer answer = read_answer((struct http_answer){ .status = cases[i].status,
									      .body = (const uint8_t *)"<htm>",
									      .body_size = cases[i].body_size,
									      .content_type = cases[i].type });

		assert_int_equal(answer.is_foreign, cases[i].want);
		assert_int_equal(answer.verdict, cases[i].status == 200 ? OTLP_ACCEPTED : OTLP_REFUSED);
		assert_int_equal(answer.n_rejected, cases[i].status == 200 ? 0 : 10);
	}
}

static void a_message_is_made_one_harmless_line(void **state)
{
	char text[1000];
	struct otlp_answer answer;

	assert_string_equal(partial(0, "a\nb\x1b[31m", PROTOBUF).message, "a b?[31m");
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	answer = partial(0, text, PROTOBUF);
	assert_true(strlen(answer.message) >= 200);
	assert_true(strlen(answer.message) < OTLP_MESSAGE_BYTES);
}

static void a_status_is_read_from_a_refusal(void **state)
{
	Otlp__Status status = OTLP__STATUS__INIT;
	uint8_t body[64];
	struct http_answer http = { .status = 503, .body = body, .content_type = PROTOBUF,
				    .retry_after_ns = 2000000000 };
	struct otlp_answer answer;

	status.code = 3; /* must not matter */
	status.message = (char *)"overloaded";
	http.body_size = otlp__status__pack(&status, body);
	answer = read_answer(http);
	assert_int_equal(answer.verdict, OTLP_AGAIN);
	assert_int_equal(answer.retry_after_ns, 2000000000);
	assert_string_equal(answer.message, "overloaded");
	http.status = 400;
	answer = read_answer(http);
	assert_int_equal(answer.verdict, OTLP_REFUSED);
	assert_int_equal(answer.retry_after_ns, 0);
	http.content_type = "application/octet-stream";
	assert_string_equal(read_answer(http).message, "");
}

static void a_huge_body_is_not_decoded(void **state)
{
	size_t size = 1 << 20;
	uint8_t *body = malloc(size);

	for (size_t i = 0; i < size; i += 2)
		body[i] = 0x18, body[i + 1] = 0; /* an unknown field each, some fifty bytes of memory decoded */
	assert_int_equal(read_answer((struct http_answer){ .status = 200, .body = body, .body_size = size,
							   .content_type = PROTOBUF })
				 .verdict,
			 OTLP_ACCEPTED);
	free(body);
}

/* What is said of an answer with that; in the log if it was accepted, else as the exporter's problem. */
static const char *said(unsigned int port, struct http_answer http)
{
	static struct exporter exporter;
	static char text[8192];
	const struct exporter_context context = { .is_trial = true };
	struct otlp_report report = { .exporter = &exporter, .url = (char *)"http://h/v1/metrics", .port = port };
	struct otlp_answer answer = read_answer(http);

	exporter = (struct exporter){ .name = "x", .context = &context };
	http.content_type = http.content_type ?: "";
	log_catch();
	otlp_report_answer(&report, &http, &answer, 1);
	snprintf(text, sizeof(text), "%s%s", log_caught(), exporter.stats.problem);
	return text;
}

#define REFUSED(words) "http://h/v1/metrics: refused for good: " words "; its points are dropped"
#define AGAIN(words) "http://h/v1/metrics: " words "; kept for another attempt"
#define BODY(text) .body = (const uint8_t *)(text), .body_size = sizeof(text) - 1
#define UNREACHED .failure = HTTP_UNREACHED, .problem

struct said {
	unsigned int port;
	struct http_answer http;
	const char *want;
};

static void a_failure_is_said_with_the_url_the_reason_and_a_hint(void **state)
{
	static const struct said cases[] = {
		{ 80, { .status = 400, .content_type = "text/plain", BODY("a\nb") }, REFUSED("HTTP 400: a") },
		{ 80, { .status = 503 }, AGAIN("HTTP 503") },
		{ 80, { .status = 503, .failure = HTTP_TOO_LARGE, .problem = "big" }, AGAIN("HTTP 503: big") },
		{ 80, { UNREACHED = "no route" }, AGAIN("no route") },
		{ 4317, { UNREACHED = "no" }, AGAIN("no (port 4317 is for OTLP/gRPC, bpfpush sends OTLP/HTTP: try port 4318)") },
		{ 80, { .status = 415, .content_type = "application/grpc" },
		  REFUSED("HTTP 415 (this is OTLP/gRPC, bpfpush sends OTLP/HTTP: try port 4318)") },
		{ 80, { .status = 400, .content_type = "text/html", BODY("<title>400 The plain HTTP request was sent to HTTPS port</title>") },
		  REFUSED("HTTP 400: 400 The plain HTTP request was sent to HTTPS port (the port speaks TLS: try https://)") },
		{ 80, { .status = 400, BODY("Client sent an HTTP request to an HTTPS server.\n") },
		  REFUSED("HTTP 400: Client sent an HTTP request to an HTTPS server. (the port speaks TLS: try https://)") },
		{ 443, { UNREACHED = "error:0A00010B:SSL routines::wrong version number" },
		  AGAIN("error:0A00010B:SSL routines::wrong version number (the port speaks plain HTTP: try http://)") },
		{ 80, { UNREACHED = "Received HTTP/0.9 when not allowed" },
		  AGAIN("Received HTTP/0.9 when not allowed (something else than HTTP listens there)") },
		{ 443, { UNREACHED = "SSL certificate problem: self-signed certificate" },
		  AGAIN("SSL certificate problem: self-signed certificate (set ca_file to the certificate of its CA)") },
		{ 443, { UNREACHED = "SSL certificate problem: unable to get local issuer certificate" },
		  AGAIN("SSL certificate problem: unable to get local issuer certificate (set ca_file to the certificate of its CA)") },
		{ 443, { UNREACHED = "SSL certificate problem: certificate has expired" },
		  AGAIN("SSL certificate problem: certificate has expired") },
		{ 443, { UNREACHED = "the proxy answered HTTP 407" },
		  AGAIN("the proxy answered HTTP 407 (it wants credentials: https_proxy=http://USER:PASSWORD@HOST:PORT)") },
		{ 80, { .status = 407 }, REFUSED("HTTP 407 (the proxy wants credentials: http_proxy=http://USER:PASSWORD@HOST:PORT)") },
		{ 80, { .status = 302, .location = "http://me:x@o/y?z" },
		  REFUSED("HTTP 302: Location: http://o/y (redirects are not followed: set the URL to where this one leads)") },
		{ 80, { .status = 401 }, REFUSED("HTTP 401 (check the setting headers)") },
		{ 80, { .status = 402 }, REFUSED("HTTP 402") },
		{ 9090, { .status = 404 }, REFUSED("HTTP 404 (Prometheus takes http://HOST:9090/api/v1/otlp)") },
		{ 9091, { .status = 405 }, REFUSED("HTTP 405 (is the path of the URL right? Most receivers take /v1/metrics)") },
		{ 80, { .status = 413 }, REFUSED("HTTP 413 (lower max_request_size)") },
		{ 80, { .status = 415 }, REFUSED("HTTP 415 (try compression = none)") },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(said(cases[i].port, cases[i].http), cases[i].want);
}

static void what_is_odd_about_an_accepted_request_is_said(void **state)
{
	static const struct said cases[] = {
		{ 80, { .status = 200 }, "" },
		{ 80, { .status = 200, .failure = HTTP_TOO_LARGE, .problem = "big" }, "<4>exporter x: big\n" },
		{ 80, { .status = 200, .content_type = JSON, BODY("{\"errorMessage\":\"hm\"}") }, "<4>exporter x: the receiver warns: hm\n" },
		{ 80, { .status = 200, .content_type = PROTOBUF, BODY("\xff") },
		  "<4>exporter x: http://h/v1/metrics: a body that cannot be decoded answered with status 200 "
		  "(this is not an OTLP receiver: check the endpoint)\n" },
		{ 80, { .status = 200, .content_type = "application/grpc" },
		  "<4>exporter x: http://h/v1/metrics: application/grpc answered with status 200 "
		  "(this is OTLP/gRPC, bpfpush sends OTLP/HTTP: try port 4318)\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(said(cases[i].port, cases[i].http), cases[i].want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_status_has_its_verdict),
		cmocka_unit_test(without_an_answer_it_is_tried_again),
		cmocka_unit_test(the_status_of_an_answer_that_is_too_large_holds),
		cmocka_unit_test(a_partial_success_in_json_is_counted),
		cmocka_unit_test(the_reason_of_a_refusal_is_read_by_its_type),
		cmocka_unit_test(a_failure_is_said_with_the_url_the_reason_and_a_hint),
		cmocka_unit_test(what_is_odd_about_an_accepted_request_is_said),
		cmocka_unit_test(a_partial_success_is_counted),
		cmocka_unit_test(success_in_the_words_of_something_else_is_noticed),
		cmocka_unit_test(a_message_is_made_one_harmless_line),
		cmocka_unit_test(a_status_is_read_from_a_refusal),
		cmocka_unit_test(a_huge_body_is_not_decoded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

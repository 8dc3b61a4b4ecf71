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
		{ 200, 299, OTLP_ACCEPTED }, { 300, 399, OTLP_AGAIN },	 { 400, 406, OTLP_REFUSED },
		{ 407, 408, OTLP_AGAIN },    { 409, 424, OTLP_REFUSED }, { 425, 425, OTLP_AGAIN },
		{ 426, 428, OTLP_REFUSED },  { 429, 429, OTLP_AGAIN },	 { 430, 498, OTLP_REFUSED },
		{ 499, 499, OTLP_AGAIN },    { 500, 501, OTLP_REFUSED }, { 502, 504, OTLP_AGAIN },
		{ 505, 519, OTLP_REFUSED },  { 520, 524, OTLP_AGAIN },	 { 525, 999, OTLP_REFUSED },
	};

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		for (int status = ranges[i].first; status <= ranges[i].last; status++)
			assert_int_equal(read_answer((struct http_answer){ .status = status }).verdict,
					 ranges[i].verdict);
}

/* Is it in a list such as "400, 402–406, 500"? Its ranges have a dash that is three bytes long. */
static bool is_listed(const char *list, int status)
{
	while (*list) {
		char *end;
		long first = strtol(list, &end, 10), last = first;

		assert_true(end > list && first >= 100);
		if (!strncmp(end, "\xe2\x80\x93", 3))
			last = strtol(end + 3, &end, 10);
		assert_true(last >= first);
		if (status >= first && status <= last)
			return true;
		list = end + strspn(end, ", ");
	}
	return false;
}

/* The table of docs/operate.md: its first row with a status says what becomes of it. */
static void each_status_does_what_the_manual_says(void **state)
{
	static const char *const words[] = { "delivered", "tries again", "refused" };
	_cleanup_(fclosep) FILE *page = fopen(SOURCE_ROOT "/docs/operate.md", "re");
	char rows[40][2][256], line[1024];
	size_t n_rows = 0, n_used = 0;
	bool is_used[40] = { false };

	assert_non_null(page);
	while (fgets(line, sizeof(line), page))
		if (n_rows < ARRAY_SIZE(rows) &&
		    sscanf(line, "| %255[0-9, \xe2\x80\x93]| %255[^|]|", rows[n_rows][0], rows[n_rows][1]) == 2)
			n_rows++;
	assert_in_range(n_rows, 10, ARRAY_SIZE(rows) - 1);
	for (int status = 200; status <= 999; status++) {
		const char *word = words[read_answer((struct http_answer){ .status = status }).verdict];
		size_t i = 0;

		while (i < n_rows && !is_listed(rows[i][0], status))
			i++;
		assert_true(i < n_rows);
		if (strncmp(rows[i][1], word, strlen(word)))
			fail_msg("%d is %s, and the page says: %s", status, word, rows[i][1]);
		is_used[i] = true;
	}
	for (size_t i = 0; i < n_rows; i++)
		n_used += is_used[i];
	assert_int_equal(n_used, n_rows);
}

static void without_an_answer_it_is_tried_again(void **state)
{
	assert_int_equal(read_answer((struct http_answer){ .failure = HTTP_UNREACHED }).verdict, OTLP_AGAIN);
	assert_int_equal(read_answer((struct http_answer){ .failure = HTTP_UNANSWERED, .status = 200 }).verdict,
			 OTLP_AGAIN);
}

static void an_answer_that_is_too_large_is_no_success(void **state)
{
	static const struct {
		int status;
		enum otlp_verdict verdict;
	} cases[] = { { 200, OTLP_AGAIN },    { 400, OTLP_REFUSED }, { 429, OTLP_AGAIN },
		      { 500, OTLP_REFUSED },  { 502, OTLP_AGAIN },   { 503, OTLP_AGAIN }, { 504, OTLP_AGAIN } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct otlp_answer answer = read_answer((struct http_answer){
			.failure = HTTP_TOO_LARGE, .status = cases[i].status, .problem = "too large", .retry_after_ns = 5,
			.content_type = "text/html" });

		assert_int_equal(answer.verdict, cases[i].verdict);
		assert_int_equal(answer.n_rejected, answer.verdict == OTLP_REFUSED ? 10 : 0);
		assert_int_equal(answer.retry_after_ns, answer.verdict == OTLP_AGAIN ? 5 : 0);
		assert_string_equal(answer.message, "too large");
	}
}

static void a_success_that_breaks_off_counts_by_its_type(void **state)
{
	static const struct {
		const char *type;
		bool is_accepted;
	} cases[] = { { "", true }, { PROTOBUF, true }, { "application/protobuf", true }, { JSON "; charset=utf-8", true },
		      { "text/html", false }, { "text/plain", false }, { "application/grpc", false } };
	struct otlp_answer answer;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		answer = read_answer((struct http_answer){
			.failure = HTTP_CUT, .status = 200, .problem = "cut", .content_type = cases[i].type });
		assert_int_equal(answer.verdict, cases[i].is_accepted ? OTLP_ACCEPTED : OTLP_AGAIN);
		assert_string_equal(answer.message, cases[i].is_accepted ? "" : "cut");
	}
	answer = read_answer((struct http_answer){ .failure = HTTP_CUT, .status = 400, .problem = "cut" });
	assert_int_equal(answer.verdict, OTLP_REFUSED);
	assert_string_equal(answer.message, "");
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
	assert_int_equal(partial(3, "x", "application/protobuf").n_rejected, 3);
	assert_int_equal(partial(3, "x", "application/octet-stream").n_rejected, 3);
	assert_int_equal(partial(3, "x", "").n_rejected, 3);
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
		{ "{\"partial_success\":{\"rejected_data_points\":\"3\",\"error_message\":\"too old\"}}", 3, "too old" },
		{ "{ \"partialSuccess\" : {\n\"errorMessage\" : \"a\\u0022\\nb\\/\\u00e9\", \"rejectedDataPoints\" :\t4 } }\n",
		  4, "a\" b/?" },
		{ "{\"partialSuccess\":{\"rejectedDataPoints\":\"9223372036854775807\"}}", 10, "" },
		{ "{\"partialSuccess\":{\"rejectedDataPoints\":1e400}}", 10, "" },
		{ "{\"partialSuccess\":{\"rejectedLogRecords\":\"2\",\"errorMessage\":\"no name\"}}", 2, "no name" },
		{ "{\"partialSuccess\":{\"rejectedDataPoints\":\"nan\"}}", 0, "" },
		{ "{\"partialSuccess\":{\"rejectedDataPoints\":-3}}", 0, "" },
		{ "{\"partialSuccess\":{\"rejectedDataPoints\":null}}", 0, "" },
		{ "{\"partialSuccess\":{\"rejectedDataPoints\":[3]}}", 0, "" },
		{ "{\"partialSuccess\":{\"errorMessage\":\"\\\"rejectedDataPoints\\\":7}\"}}",
		  0, "\"rejectedDataPoints\":7}" },
		{ "{\"partialSuccess\":{}}", 0, "" },
		{ "{\"partialSuccess\":null}", 0, "" },
		{ "{\"partialSuccess\":{\"x\":{\"y\":{}}}}", 0, "" },
		{ " {\r\n}\t", 0, "" },
	};
	static const char *const types[] = { JSON "; charset=utf-8", PROTOBUF, "text/plain", "text/html", "" };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *body = cases[i].body, *type = types[i % ARRAY_SIZE(types)];
		struct otlp_answer answer = read_text(200, type, body, strlen(body));

		assert_int_equal(answer.verdict, OTLP_ACCEPTED);
		assert_int_equal(answer.n_rejected, cases[i].n_rejected);
		assert_string_equal(answer.message, cases[i].message);
	}
}

static void json_that_is_not_of_otlp_is_no_success(void **state)
{
	static const char *const bodies[] = {
		"{\"status\":\"ok\"}", "{\"errorMessage\":\"x\"}", "{\"partialSuccess\":{},\"code\":200}", "{\"rejectedDataPoints\":1}",
		"{\"partialSuccess\":3}", "{\"partialSuccess\":[]}", "{\"partialSuccess\":{}", "{\"partialSuccess\":{\"", "{\"partialSuccess\"",
		"{\"partialSuccess", "{\"\\", "{\"\\u00", "{\"partialSuccess\":", "{\"partialSuccess\":nul", "{\"partialSuccess\" {}}",
		"{\"partialSuccess\":{},}", "{\"partialSuccess\":{} \"partialSuccess\":{}}", "{,}", "{}}", "{} x", "{", "[]", "[{}]", "null",
		"\"\"", "\"", "0", " ", "\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++)
		if (read_text(200, JSON, bodies[i], strlen(bodies[i])).verdict != OTLP_AGAIN)
			fail_msg("%s", bodies[i]);
	assert_int_equal(read_text(200, JSON, "{}\0x", 4).verdict, OTLP_AGAIN);
}

static void the_reason_of_a_refusal_is_read_by_its_form(void **state)
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
		{ JSON, "{\"status\":\n \"failed\"}", "{\"status\": \"failed\"}" },
		{ "text/plain", "{\"message\":\"a\"}", "a" },
		{ "text/html", "<html><HEAD><Title lang=en>\n 404 Not\n Found</title>", "404 Not Found" },
		{ "text/html", "<title>open", "open" },
		{ PROTOBUF, "<!doctype html>\n<title>Sign in</title>", "Sign in" },
		{ "text/html", "<title", "" },
		{ "text/html", "<html> <body><h1>Bad\nGateway</h1>", "Bad Gateway" },
		{ "text/plain", "\n \n", "" },
		{ "text/plain", "a\x1b[31mred\x7f \xff\xc3", "a?[31mred? ??" },
		{ "image/png", "\x89PNG", "" },
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
}

static void a_success_counts_by_its_body(void **state)
{
	static const struct {
		const char *type, *body;
		size_t body_size;
		bool is_accepted;
		const char *message;
	} cases[] = {
		{ "", "", 0, true, "" },
		{ "text/html", "", 0, true, "" },
		{ PROTOBUF, "", 0, true, "" },
		{ JSON, "", 0, true, "" },
		{ "application/grpc+proto", "", 0, false, "" },
		{ PROTOBUF, "\x0a\x00", 2, true, "" },
		{ PROTOBUF, "\x78\x05", 2, true, "" }, /* a field that a later version may have */
		{ "application/protobuf", "\x78\x05", 2, true, "" },
		{ "application/x-protobufs", "\x78\x05", 2, false, "x?" },
		{ "text/plain", "Hi", 2, false, "Hi" }, /* field 9 is 105 */
		{ "text/plain; charset=utf-8", "OK\n", 3, false, "OK" },
		{ "", "welcome", 7, false, "welcome" },
		{ PROTOBUF, "\xff\x00garbage", 9, false, "" },
		{ PROTOBUF, "<title>Log in</title>", 21, false, "Log in" },
		{ "text/html", "<title>Log in</title>", 21, false, "Log in" },
		{ "text/html", "<p>welcome</p>", 14, false, "welcome" },
		{ JSON, "{\"status\":\"ok\"}", 15, false, "{\"status\":\"ok\"}" },
	};

	for (int status = 200; status < 300; status += 33)
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			struct otlp_answer answer = read_text(status, cases[i].type, cases[i].body, cases[i].body_size);

			assert_int_equal(answer.verdict, cases[i].is_accepted ? OTLP_ACCEPTED : OTLP_AGAIN);
			assert_string_equal(answer.message, cases[i].message);
			assert_int_equal(answer.n_rejected, 0);
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
			 OTLP_AGAIN);
	free(body);
}

static const struct exporter_ops ops = { .type = "otlp" };

/* What is said of an answer with that; in the log if it was accepted, else as the exporter's problem. */
static const char *said(unsigned int port, struct http_answer http)
{
	static struct exporter exporter;
	static char text[8192];
	const struct exporter_context context = { .is_trial = true };
	struct otlp_report report = { .exporter = &exporter, .url = (char *)"http://h/v1/metrics", .port = port };
	struct otlp_answer answer = read_answer(http);

	exporter = (struct exporter){ .name = "x", .ops = &ops, .context = &context };
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
		{ 80, { .status = 407 }, AGAIN("HTTP 407 (the proxy wants credentials: http_proxy=http://USER:PASSWORD@HOST:PORT)") },
		{ 80, { .status = 302, .location = "http://me:x@o/y?z" },
		  AGAIN("HTTP 302: Location: http://o/y (redirects are not followed: if that is the receiver, set the URL to it)") },
		{ 80, { .status = 308, .location = "https://h/v1/metrics" },
		  AGAIN("HTTP 308: Location: https://h/v1/metrics (redirects are not followed: if that is the receiver, use https://)") },
		{ 80, { .status = 200, .content_type = "text/html", BODY("<title>Log in</title>") },
		  AGAIN("HTTP 200: Log in (this is not an OTLP receiver: check the endpoint)") },
		{ 80, { .status = 200, .content_type = PROTOBUF, BODY("\xff") },
		  AGAIN("HTTP 200 (this is not an OTLP receiver: check the endpoint)") },
		{ 80, { .status = 200, .failure = HTTP_TOO_LARGE, .problem = "big" },
		  AGAIN("HTTP 200: big (this is not an OTLP receiver: check the endpoint)") },
		{ 80, { .status = 200, .content_type = "application/grpc" },
		  AGAIN("HTTP 200 (this is OTLP/gRPC, bpfpush sends OTLP/HTTP: try port 4318)") },
		{ 80, { .status = 401 }, REFUSED("HTTP 401 (check the setting headers)") },
		{ 80, { .status = 402 }, REFUSED("HTTP 402") },
		{ 9090, { .status = 404 }, REFUSED("HTTP 404 (Prometheus takes http://HOST:9090/api/v1/otlp)") },
		{ 9091, { .status = 405 }, REFUSED("HTTP 405 (is the path of the URL right? Most receivers take /v1/metrics)") },
		{ 80, { .status = 413 }, REFUSED("HTTP 413 (lower max_request_size)") },
		{ 80, { .status = 415 }, REFUSED("HTTP 415 (try compression = none)") },
		{ 80, { .status = 429 }, AGAIN("HTTP 429 (it limits how much it takes: a longer interval helps)") },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(said(cases[i].port, cases[i].http), cases[i].want);
}

static void what_is_odd_about_an_accepted_request_is_said(void **state)
{
	static const struct said cases[] = {
		{ 80, { .status = 200 }, "" },
		{ 80, { .status = 200, .content_type = JSON, BODY("{\"partialSuccess\":{\"errorMessage\":\"hm\"}}") },
		  "<4>exporter x: the receiver warns: hm\n" },
		{ 80, { .status = 200, .content_type = JSON, BODY("{\"partialSuccess\":{\"rejectedDataPoints\":1}}") },
		  "<4>exporter x: the receiver rejected 1 point\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(said(cases[i].port, cases[i].http), cases[i].want);
}

/* Each of the answers, as one exporter gets them one after the other; how many lines are logged. */
static unsigned int count_lines(const struct http_answer *answers, size_t n)
{
	const struct exporter_context context = { 0 };
	struct exporter exporter = { .name = "x", .ops = &ops, .context = &context };
	struct otlp_report report = { .exporter = &exporter, .url = (char *)"http://h" };
	unsigned int n_lines = 0;

	log_catch();
	for (size_t i = 0; i < n; i++) {
		struct http_answer http = answers[i];
		struct otlp_answer answer = read_answer(http);

		http.content_type = http.content_type ?: "";
		otlp_report_answer(&report, &http, &answer, 0);
	}
	for (const char *text = log_caught(); (text = strchr(text, '\n')); text++)
		n_lines++;
	return n_lines;
}

static void other_words_are_news_and_the_same_are_not(void **state)
{
	const struct http_answer a = { .status = 503, BODY("a") }, b = { .status = 503, BODY("b") };
	const struct http_answer partial_a = { .status = 200, BODY("{\"partialSuccess\":{\"errorMessage\":\"a\"}}") };
	const struct http_answer partial_b = { .status = 200, BODY("{\"partialSuccess\":{\"errorMessage\":\"b\"}}") };
	const struct http_answer late = { UNREACHED = "after 100 ms" }, later = { UNREACHED = "after 101 ms" };
	const struct http_answer same[] = { a, a, a }, words[] = { a, b, b, a }, times[] = { late, later, late };
	const struct http_answer warnings[] = { partial_a, partial_a, partial_b, { .status = 200 } };
	const struct http_answer many[] = { partial_a, partial_b, partial_a, partial_b,
					    partial_a, partial_b, partial_a, partial_b };

	assert_int_equal(count_lines(same, ARRAY_SIZE(same)), 1);
	assert_int_equal(count_lines(words, ARRAY_SIZE(words)), 3);
	assert_int_equal(count_lines(times, ARRAY_SIZE(times)), 1);
	assert_int_equal(count_lines(warnings, ARRAY_SIZE(warnings)), 2);
	assert_int_equal(count_lines(many, ARRAY_SIZE(many)), 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_status_has_its_verdict),
		cmocka_unit_test(each_status_does_what_the_manual_says),
		cmocka_unit_test(without_an_answer_it_is_tried_again),
		cmocka_unit_test(an_answer_that_is_too_large_is_no_success),
		cmocka_unit_test(a_success_that_breaks_off_counts_by_its_type),
		cmocka_unit_test(a_partial_success_in_json_is_counted),
		cmocka_unit_test(json_that_is_not_of_otlp_is_no_success),
		cmocka_unit_test(the_reason_of_a_refusal_is_read_by_its_form),
		cmocka_unit_test(a_failure_is_said_with_the_url_the_reason_and_a_hint),
		cmocka_unit_test(what_is_odd_about_an_accepted_request_is_said),
		cmocka_unit_test(a_partial_success_is_counted),
		cmocka_unit_test(a_success_counts_by_its_body),
		cmocka_unit_test(a_message_is_made_one_harmless_line),
		cmocka_unit_test(other_words_are_news_and_the_same_are_not),
		cmocka_unit_test(a_status_is_read_from_a_refusal),
		cmocka_unit_test(a_huge_body_is_not_decoded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

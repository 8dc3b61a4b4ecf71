/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdlib.h>

#include "export/otlp/answer.h"
#include "otlp-metrics.pb-c.h"
#include "util/cleanup.h"

#define PROTOBUF "application/x-protobuf"

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

static void without_an_answer_it_is_tried_again_unless_it_was_too_large(void **state)
{
	assert_int_equal(read_answer((struct http_answer){ .failure = HTTP_UNREACHED }).verdict, OTLP_AGAIN);
	assert_int_equal(read_answer((struct http_answer){ .failure = HTTP_UNANSWERED }).verdict, OTLP_AGAIN);
	assert_int_equal(read_answer((struct http_answer){ .failure = HTTP_TOO_LARGE, .status = 200 }).verdict,
			 OTLP_REFUSED);
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

static void success_in_the_words_of_something_else_is_noticed(void **state)
{
	static const struct {
		int status;
		size_t body_size;
		const char *type;
		bool want;
	} cases[] = {
		{ 200, 0, "text/html", false },	       { 200, 5, "text/html; charset=utf-8", true },
		{ 200, 5, "", true },		       { 200, 5, "Application/JSON; charset=utf-8", false },
		{ 200, 5, "application/jsonp", true }, { 200, 5, PROTOBUF, false },
		{ 404, 5, "text/html", false },
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

	assert_string_equal(partial(0, "a\nb\x1b[31m", PROTOBUF).message, "a?b?[31m");
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
	http.content_type = "text/plain";
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_status_has_its_verdict),
		cmocka_unit_test(without_an_answer_it_is_tried_again_unless_it_was_too_large),
		cmocka_unit_test(a_partial_success_is_counted),
		cmocka_unit_test(success_in_the_words_of_something_else_is_noticed),
		cmocka_unit_test(a_message_is_made_one_harmless_line),
		cmocka_unit_test(a_status_is_read_from_a_refusal),
		cmocka_unit_test(a_huge_body_is_not_decoded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a receiver answers. Two bytes of status, one that chooses the content type and the wait that was
 * asked for, then the body. The last type stands for a redirect, and the body for where it leads.
 */
#include <stdlib.h>
#include <string.h>

#include "export/otlp/answer.h"
#include "util/cleanup.h"
#include "util/utf8.h"

#define N_POINTS 1000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool is_right)
{
	if (!is_right)
		abort();
}

static void check_message(const char *text)
{
	size_t left = strnlen(text, OTLP_MESSAGE_BYTES);

	check(left < OTLP_MESSAGE_BYTES);
	while (left) {
		size_t bytes = utf8_bytes(text, left);

		check(bytes && !utf8_is_control(text));
		text += bytes;
		left -= bytes;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const types[] = { "application/x-protobuf", "text/plain", "application/protobuf", "text/html",
					     "application/json", "", "application/grpc", "text/plain" };
	_cleanup_(freep) char *location = NULL;
	struct http_answer http = { 0 };
	struct otlp_answer answer;

	if (size < 3)
		return 0;
	http.status = data[0] << 8 | data[1];
	http.content_type = types[data[2] & 7];
	http.retry_after_ns = data[2] >> 1;
	if ((data[2] & 7) == 7)
		http.location = location = strndup((const char *)data + 3, size - 3);
	http.body = data + 3;
	http.body_size = size - 3;

	otlp_answer_read(&http, N_POINTS, &answer);
	check(answer.n_rejected <= N_POINTS);
	check(!answer.n_rejected || answer.verdict != OTLP_AGAIN);
	check(answer.n_rejected == N_POINTS || answer.verdict != OTLP_REFUSED);
	check(answer.retry_after_ns <= http.retry_after_ns);
	check(!answer.retry_after_ns || answer.verdict == OTLP_AGAIN);
	check(answer.verdict != OTLP_ACCEPTED || (http.status >= 200 && http.status < 300));
	/* What did not come to an OTLP receiver is not refused by one. */
	check(answer.verdict != OTLP_REFUSED || http.status < 200 || http.status >= 400);
	/* A web page is no OTLP, whatever its type. */
	check(answer.verdict != OTLP_ACCEPTED || !http.body_size || http.body[0] != '<');
	check_message(answer.message);
	return 0;
}

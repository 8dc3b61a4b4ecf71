/* SPDX-License-Identifier: Apache-2.0 */
#include "export/transport/doubt.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

/*
 * HTTP/2: REFUSED_STREAM, or GOAWAY with an earlier stream. libcurl says it only in words, and of a
 * stream that is refused on a kept connection it may say nothing.
 */
static void read_words(struct doubt *doubt, const char *words)
{
	const char *goaway = strstr(words, "GOAWAY, error=");
	int last;

	(void)(sscanf(words, "Using Stream ID: %d", &doubt->stream) == 1 ||
	       sscanf(words, "[HTTP/2] [%d] OPENED", &doubt->stream) == 1);
	doubt->is_refused |= strstr(words, "REFUSED_STREAM") != NULL;
	if (goaway && sscanf(goaway, "GOAWAY, error=%*d, last_stream=%d", &last) == 1)
		doubt->is_refused |= last < doubt->stream;
}

static int on_debug(CURL *easy, curl_infotype type, char *data, size_t size, void *user)
{
	struct doubt *doubt = user;
	char words[256];

	doubt->is_written |= type == CURLINFO_DATA_OUT;
	if (type != CURLINFO_TEXT)
		return 0;
	snprintf(words, sizeof(words), "%.*s", (int)size, data);
	read_words(doubt, words);
	return 0;
}

void doubt_watch(struct doubt *doubt, void *easy)
{
	curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, on_debug);
	curl_easy_setopt(easy, CURLOPT_DEBUGDATA, doubt);
	curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L);
}

bool doubt_remains(const struct doubt *doubt, int code)
{
	bool is_cut = code == CURLE_SEND_ERROR || code == CURLE_ABORTED_BY_CALLBACK;

	return !doubt->is_refused && (doubt->is_written || !is_cut);
}

bool doubt_is_stale(void *easy, int code)
{
	long n_connections = 0, header_bytes = 0;
	curl_off_t ready_us = 0;

	/* After the end of a kept connection libcurl goes on alone, and meets that it cannot. */
	if (code == CURLE_ABORTED_BY_CALLBACK || code == CURLE_SEND_FAIL_REWIND)
		return true;
	curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &n_connections);
	curl_easy_getinfo(easy, CURLINFO_HEADER_SIZE, &header_bytes);
	curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &ready_us);
	return code != CURLE_OK && code != CURLE_OPERATION_TIMEDOUT && ready_us && !n_connections &&
	       !header_bytes;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What became of a request that was not answered, as far as libcurl knows. For http.c. */

#include <stdbool.h>

struct doubt {
	bool is_written; /* a part of the body */
	bool is_refused; /* HTTP/2: the receiver said that it does not process it */
	int stream;	 /* its number in HTTP/2 */
};

/* For all transfers of easy, a CURL; doubt outlives it, and is to be zero when one begins. */
void doubt_watch(struct doubt *doubt, void *easy);
/* The transfer has ended with a CURLcode, without an answer: may the receiver have all of it? */
bool doubt_remains(const struct doubt *doubt, int code);
/* As http_answer.is_stale. */
bool doubt_is_stale(void *easy, int code);

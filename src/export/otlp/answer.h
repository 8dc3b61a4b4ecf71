/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a receiver's answer means for the points of a request (OTLP specification, "OTLP/HTTP
 * Response"). Pure. The answer comes from outside, so every length and number in it is checked.
 *
 *     2xx                   accepted, except the rejected_data_points of a partial success
 *                           (a body that is neither protobuf nor JSON is foreign)
 *     429 502 503 504       again later, and not before Retry-After
 *     no answer             again later
 *     anything else         refused for good
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/transport/http.h"

enum otlp_verdict { OTLP_ACCEPTED,
		    OTLP_AGAIN,
		    OTLP_REFUSED };

#define OTLP_MESSAGE_BYTES 257

struct otlp_answer {
	enum otlp_verdict verdict;
	uint64_t n_rejected;		  /* points; at most all, and all of a refused request */
	uint64_t retry_after_ns;	  /* 0: the receiver did not ask for a delay */
	bool is_foreign;		  /* accepted by something that is not an OTLP receiver */
	char message[OTLP_MESSAGE_BYTES]; /* from the receiver: printable, cut; "" if none */
};

void otlp_answer_read(const struct http_answer *http, size_t n_points,
		      struct otlp_answer *ret_answer);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a receiver's answer means for the points of a request (OTLP/HTTP Response). Pure. The answer
 * comes from outside: nothing in it is believed further than its own length.
 *
 *     2xx                   accepted, but for rejected_data_points of a partial success
 *                           (whatever its body is: one that is neither protobuf nor JSON is foreign)
 *     429 502 503 504       again later, not before what Retry-After asks for
 *     no answer             again later
 *     anything else         refused, for good
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/transport/http.h"
#include "metric/attribute.h"

enum otlp_verdict { OTLP_ACCEPTED,
		    OTLP_AGAIN,
		    OTLP_REFUSED };

#define OTLP_MESSAGE_BYTES (ATTRIBUTE_TEXT_BYTES + 1)

struct otlp_answer {
	enum otlp_verdict verdict;
	uint64_t n_rejected;		  /* points, of an accepted request; never more than it had */
	uint64_t retry_after_ns;	  /* 0 where nothing was asked for */
	bool is_foreign;		  /* accepted in words that no receiver of OTLP uses */
	char message[OTLP_MESSAGE_BYTES]; /* the receiver's own words, printable, cut; "" if none */
};

void otlp_answer_read(const struct http_answer *http, size_t n_points, struct otlp_answer *ret_answer);

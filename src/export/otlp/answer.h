/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a receiver's answer means for the points of a request (OTLP specification, "OTLP/HTTP
 * Response"). The answer comes from outside, so every length and number in it is checked.
 *
 *     2xx, and the body is empty, an    accepted, except the rejected_data_points of a partial
 *     ExportMetricsServiceResponse, or  success
 *     the same in JSON
 *     2xx with another body             again later: the answer is not the receiver's
 *     3xx 407                           likewise
 *     408 425 429 499 502-504 520-524   again later, and not before Retry-After
 *     no answer                         again later
 *     anything else                     refused for good
 *
 * The specification calls an answer over the limit a failure that is not to be retried. Here it
 * only has no body: what its status says holds, so the limit makes no loss of what may be tried
 * again. A success with such a body is not OTLP's. One whose body broke off is, unless it was of
 * another type: the receiver has answered.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/exporter.h"
#include "export/transport/http.h"

enum otlp_verdict { OTLP_ACCEPTED,
		    OTLP_AGAIN,
		    OTLP_REFUSED };

#define OTLP_MESSAGE_BYTES 257

struct otlp_answer {
	enum otlp_verdict verdict;
	uint64_t n_rejected;		  /* points; at most all, and all of a refused request */
	uint64_t retry_after_ns;	  /* 0: the receiver did not ask for a delay */
	/* it was not accepted, but who was asked may have all of it */
	bool is_in_doubt;
	/* from the receiver: one printable line, cut; "" if none */
	char message[OTLP_MESSAGE_BYTES];
};

void otlp_answer_read(const struct http_answer *http, size_t n_points,
		      struct otlp_answer *ret_answer);

/*
 * Log messages about requests. A change of the status or of the receiver's words is logged; a
 * repetition is not.
 */

struct otlp_report {
	struct exporter *exporter;
	/* that is asked, as url_public(), and the proxy on the way; the exporter frees it */
	char *url;
	unsigned int port; /* of the URL; the log hints at a port of another protocol */
	bool is_delta;	   /* a request that is sent twice may count twice */
	bool is_of_events; /* or of spans: likewise; and what is refused is lost */
	int status;	   /* of the last answer */
	/* of the last request, for answer.c; 0: whatever is answered next is news */
	uint64_t outcome;
	uint64_t reported_ns; /* when it was, CLOCK_BOOTTIME; for answer.c */
};

/* delay_ns: until the next attempt, of OTLP_AGAIN. */
void otlp_report_answer(struct otlp_report *report, const struct http_answer *http,
			const struct otlp_answer *answer, uint64_t delay_ns);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a receiver's answer means for the points of a request (OTLP specification, "OTLP/HTTP
 * Response"). The answer comes from outside, so every length and number in it is checked.
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
	bool is_foreign;		  /* accepted by something that is not an OTLP receiver */
	char message[OTLP_MESSAGE_BYTES]; /* from the receiver: printable, cut; "" if none */
};

void otlp_answer_read(const struct http_answer *http, size_t n_points,
		      struct otlp_answer *ret_answer);

/* Log messages about requests. A change of the outcome is logged; a repetition is not. */

struct otlp_report {
	struct exporter *exporter;
	unsigned int port; /* of the URL; the log hints at a port of another protocol */
	bool is_delta;	   /* a request that is sent twice may count twice */
	int outcome;	   /* of the last request; for answer.c only */
};

void otlp_report_answer(struct otlp_report *report, const struct http_answer *http,
			const struct otlp_answer *answer);
/* The last answer, which was accepted, as the words of exporter_ops.probe(). 1; -EPROTO if it was foreign. */
int otlp_report_last(const struct otlp_report *report);
/* A request was not posted because of a header. complaint: from otlp_header_resolve(). */
void otlp_report_header(struct otlp_report *report, const char *header, const char *complaint);

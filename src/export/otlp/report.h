/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the log says about requests. A change of the outcome is news; a repetition is not logged. */

#include "export/exporter.h"
#include "export/otlp/answer.h"

struct otlp_report {
	const struct exporter *exporter;
	unsigned int port; /* of the URL; one that is known for something else is hinted at */
	bool is_delta;	   /* a request that is sent twice may count twice */
	int outcome;	   /* report.c's: of the last request */
};

/* To be called before the answer changes the exporter's is_failing. */
void otlp_report_answer(struct otlp_report *report, const struct http_answer *http, const struct otlp_answer *answer);
/* A request was not posted because its header ("Name: file:PATH") cannot be made: err and why, as otlp_header_resolve(). */
void otlp_report_header(struct otlp_report *report, const char *header, int err, const char *complaint);

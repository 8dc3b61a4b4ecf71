/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Log messages about requests. A change of the outcome is logged; a repetition is not. */

#include "export/exporter.h"
#include "export/otlp/answer.h"

struct otlp_report {
	struct exporter *exporter;
	unsigned int port; /* of the URL; the log hints at a port of another protocol */
	bool is_delta;	   /* a request that is sent twice may count twice */
	int outcome;	   /* of the last request; for report.c only */
};

void otlp_report_answer(struct otlp_report *report, const struct http_answer *http,
			const struct otlp_answer *answer);
/* A request was not posted because of a header. err, complaint: from otlp_header_resolve(). */
/* The last answer, which was accepted, as the words of exporter_ops.probe(). 1; -EPROTO if it was foreign. */
int otlp_report_last(const struct otlp_report *report);
void otlp_report_header(struct otlp_report *report, const char *header, int err,
			const char *complaint);

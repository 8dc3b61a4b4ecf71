/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the files of the exporter. */

#include "export/otlp/answer.h"
#include "export/otlp/options.h"

struct otlp {
	struct exporter *exporter;
	const struct otlp_options *options;
	struct http_client *client;
	struct backoff backoff;
	struct timer retry;
	bool is_waiting, is_last; /* for retry; is the newest batch the last one? */
	/* the first exporter that makes the same bodies makes them for this one, too … */
	bool is_led;
	struct otlp *next_led; /* … and goes through this list, which begins with itself */
	struct otlp_report report;
	struct otlp_encoding encoding; /* of whose room only pages that bodies fill are touched */
};

/* Sends what is next, unless a request is on its way or it is to wait. */
void otlp_send_next(struct otlp *otlp);
/* The function of the timer retry; user: a struct otlp. */
void otlp_wake(void *user);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the files of the exporter. */

#include "export/otlp/answer.h"
#include "export/otlp/options.h"

struct records;

struct otlp {
	struct exporter *exporter;
	const struct otlp_options *options;
	struct http_client *client;
	struct backoff backoff;
	struct timer retry;
	bool is_waiting, is_last; /* for retry; is the newest batch the last one? */
	bool is_behind; /* an attempt has failed, and all that waited since is not sent yet */
	/* an empty request is next, or on its way: see aside.h */
	bool is_to_ask, is_asking;
	/* the first exporter that makes the same bodies makes them for this one, too … */
	bool is_led;
	struct otlp *next_led; /* … and goes through this list, which begins with itself */
	struct records *records; /* of events.c; NULL: they are metrics */
	struct otlp_report report;
	char *proxy; /* in words, without its password; NULL: none */
	struct otlp_encoding encoding; /* of whose room only pages that bodies fill are touched */

	/* for cut.c */
	uint64_t limit_points, cut_points; /* of a request; of a part, while one is cut; 0: none */
	uint64_t learned_ns, told_ns; /* when the limit was learned, that one is cut was said */
	uint64_t told_points; /* the limit that was said last */
	uint64_t cut_again_ns, cut_pause_ns; /* before that, none is cut; and the last pause */
	unsigned int n_accepted_in_turn; /* whole requests */
	/* of the request that was cut last: how often it may still be refused, also in turn */
	unsigned int n_refusals, n_refused_in_turn, max_refused_in_turn;
	bool is_size_refused; /* likewise: with 413 */
	bool has_accepted_part; /* likewise: one part of it was accepted */
	/* requests of which both parts were accepted, since one was that had not been cut */
	unsigned int n_good_twins;
	char refusal[OTLP_MESSAGE_BYTES + 16]; /* what the receiver said last time */
};

extern const struct exporter_ops otlp_events_exporter, otlp_traces_exporter;

/* As of struct exporter_ops, for one of the signals. */
int otlp_open_signal(struct exporter *exporter, const struct otlp_options *options,
		     enum signals signal);
void otlp_send(struct exporter *exporter, const struct batch *batch);
void otlp_close(struct exporter *exporter);
/* One encoded body into the queue; its points have been counted as pushed. -errno. */
int otlp_enqueue(struct otlp *otlp, const uint8_t *data, size_t size, size_t n_points);
/* As of struct exporter_ops. An empty request is whole: the receiver decodes it and answers. */
int otlp_probe(struct exporter *exporter);
/* Memory of encoding.room that a large body has filled. */
void otlp_give_room_back(const struct otlp_encoding *encoding);
/* Sends what is next, unless a request is on its way or it is to wait. */
void otlp_send_next(struct otlp *otlp);
/* The newest batch is the last: nothing waits, and an older request of totals not for long. */
void otlp_send_last(struct otlp *otlp);
/* A request with the headers of all of them. data stays valid until it was answered. -errno. */
int otlp_post(struct otlp *otlp, const uint8_t *data, size_t size, http_answer_fn *answered);
/* The function of the timer retry; user: a struct otlp. */
void otlp_wake(void *user);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The settings of an exporter of type otlp, and the environment variables that may give them. */

#include <stdbool.h>
#include <stdio.h>

#include "export/exporter.h"
#include "export/otlp/encode.h"
#include "export/transport/timer.h"
#include "export/transport/http.h"
#include "util/setting-table.h"

/* What becomes of deltas that the receiver may have, but has not answered. */
enum otlp_doubt { OTLP_REPEAT, OTLP_SKIP };

struct otlp_options {
	/* the base of a receiver; /v1/metrics and the like are added, before a query */
	char *endpoint;
	/* the whole URLs, used as they are; NULL: from endpoint */
	char *metrics_endpoint, *logs_endpoint, *traces_endpoint;
	struct setting_list signals; /* words; none: see otlp_signals() */
	struct setting_list headers; /* "Name: value" or "Name: file:PATH" */
	bool are_headers_texts;	     /* they are from the environment: "file:" is text, too */
	int is_uncompressed;
	struct http_options http;      /* files, proxy, timeout_ns and limit_response_bytes */
	struct otlp_encoding encoding; /* what the settings say of it */
	uint64_t queue_requests;
	struct backoff retry;
	uint64_t backlog_ns; /* of totals: one window stays for each such time; 0: none */
	uint64_t spool_bytes, spool_age_ns;
	int when_in_doubt;   /* of deltas: enum otlp_doubt */
	uint64_t retry_give_up_ns;
};

extern const struct setting_table otlp_settings;

/* Do both make the same bodies of a batch? */
bool otlp_options_encode_alike(const struct otlp_options *a, const struct otlp_options *b);
/* Does one of its signals go to https? */
bool otlp_is_encrypted(const struct otlp_options *options);
/* The URL that requests of a signal go to, for free(). -ENOMEM. */
int otlp_url(const struct otlp_options *options, enum signals signal, char **ret_url);
/* The signals that the settings name; without any, all those for which there is a URL. */
enum signals otlp_signals(const void *options);
/* The two below are those of struct exporter_ops. */
void otlp_options_check(const void *options, const struct assignments *given, struct diag *diag);
int otlp_options_environment(void *options, const struct assignments *given, struct diag *diag);

/* Warns of secrets that others can read: on the network, whose url it is, or in files. */
void otlp_options_warn(const struct otlp_options *options, const struct exporter *exporter,
		       const char *url);
/* May text be given as a header? If not, *ret_complaint says why. 0 or -EINVAL. */
int otlp_header_check(const char *text, const char **ret_complaint);
/* Is it the name of one? Or a value, which ends neither its line nor the text? */
bool otlp_header_is_name(const char *text);
bool otlp_header_is_value(const char *text);
/* The path of one of the headers that was given as "Name: file:PATH", or NULL. */
const char *otlp_header_file(const struct otlp_options *options, const char *text);
/* Opens a regular file. -errno and why not. */
int otlp_file_open(const char *path, FILE **ret_file, const char **ret_complaint);
#define OTLP_HEADER_BYTES 8192 /* the longest value from a file, with its NUL */
/* The one line of a header's file. -errno and why it cannot be used. */
int otlp_header_read(const char *path, char value[OTLP_HEADER_BYTES], const char **ret_complaint);
/*
 * The header to send for one that was given with a file: its value is the one line of path. That is
 * read each time, so that a secret may change. For free(). -ENOMEM; the error of
 * opening the file; -EBADMSG if it is not a regular file or its content cannot be a header. Then
 * *ret_complaint says why, for a message that names the file; it never holds the content.
 */
int otlp_header_resolve(const char *text, const char *path, char **ret_header,
			const char **ret_complaint);

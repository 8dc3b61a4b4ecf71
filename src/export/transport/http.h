/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * POST over HTTP on the event loop, one request at a time over a connection that is kept. The only door to
 * libcurl; knows nothing of what it carries. HTTP/1.1, or 2 where TLS negotiates it; the proxies of
 * the environment (http_proxy, HTTPS_PROXY, NO_PROXY) are used as libcurl does.
 *
 * A request is sent at most once: libcurl would silently send it again where a connection that was kept
 * turns out dead, and a receiver might count it twice. Here that is a failure, for the caller to decide.
 * Redirects are not followed (they could carry credentials elsewhere); .netrc is not read.
 * The process must ignore SIGPIPE: TLS writes to connections that may be closed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/cleanup.h"

struct sd_event;
struct http_client;

/* Borrowed; outlives the client. NULL where not given. */
struct http_options {
	const char *url;
	const char *user_agent;
	const char *content_type;
	const char *content_encoding; /* NULL: none */
	const char *ca_file;	      /* PEM; NULL: the system's */
	const char *certificate_file; /* PEM, of the client */
	const char *key_file;	      /* PEM */
	uint64_t timeout_ns;	      /* of one request; 0: none */
	size_t limit_response_bytes;  /* of the decompressed body */
};

enum http_failure {
	HTTP_OK,	 /* there is an answer */
	HTTP_UNREACHED,	 /* not sent: no name, no connection, no TLS */
	HTTP_UNANSWERED, /* sent, or perhaps sent, and no answer: it may have been accepted */
	HTTP_TOO_LARGE,	 /* the answer is larger than allowed */
	HTTP_BROKEN,	 /* cannot be sent at all: a bad URL, no memory */
};

/* Valid during the call. */
struct http_answer {
	enum http_failure failure;
	const char *problem;	  /* in words, where failure is not HTTP_OK */
	int status;		  /* 0 without an answer */
	const char *content_type; /* "" where absent; so is the next */
	const char *retry_after;
	const uint8_t *body;
	size_t body_size;
	uint64_t now_ns; /* Unix time of the loop */
};

typedef void http_answer_fn(void *user, const struct http_answer *answer);

/* -ENOMEM, -EIO (libcurl will not start). */
int http_client_new(struct sd_event *event, const struct http_options *options, struct http_client **ret_client);
/*
 * Sends body, borrowed until answered. headers: "Name: value" each, copied. answered is called once from the
 * loop, never from here; it may post again. -EBUSY while a request is on its way.
 */
int http_client_post(struct http_client *client, const char *const *headers, size_t n_headers,
		     const uint8_t *body, size_t size, http_answer_fn *answered, void *user);
/* A request that is on its way is given up without a call. */
struct http_client *http_client_free(struct http_client *client);

/* Is it a URL that can be posted to? If not, *ret_complaint says why. 0 or -EINVAL. */
int http_url_check(const char *url, const char **ret_complaint);

/* Where a URL leads. Of one that http_url_check() refuses, all is zero. */
struct http_place {
	bool is_encrypted;
	bool is_local; /* this machine: localhost and below, 127.0.0.0/8, ::1 */
	bool has_password;
	unsigned int port;
};

struct http_place http_url_place(const char *url);

DEFINE_CLEANUP(struct http_client *, http_client_free);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * POST over HTTP on the event loop, one request at a time over a connection that is kept. HTTP/1.1,
 * or HTTP/2 if TLS negotiates it. Only this, doubt.c, multi.c, proxy.c, tls.c and url.c use
 * libcurl.
 *
 * The host's name is looked up outside the loop: for the first request, after a failure, and when a
 * connection reaches its lifetime. Of several addresses, the next is tried if one cannot be
 * reached, within the timeout of the request. A proxy looks the name up itself.
 *
 * Each request is sent at most once. When a connection that was kept turns out to be dead, libcurl
 * would silently send the request again, and a receiver might count it twice. Here this is a
 * failure, and the caller decides. Redirects are not followed, because they could carry credentials
 * elsewhere; .netrc is not read. The process must ignore SIGPIPE: TLS writes to connections that
 * may be closed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/transport/tls.h"
#include "util/cleanup.h"
#include "util/duration.h"

struct sd_event;
struct http_client;

/* Borrowed during the call. NULL: not given. */
struct http_options {
	const char *url;
	const char *proxy; /* as in proxy_for() */
	const char *user_agent;
	struct tls_files tls;
	uint64_t timeout_ns; /* of one request, in whole milliseconds; 0: none */
	/*
	 * A connection is not used for longer, so that changes of the files and of the name's
	 * addresses are taken up.
	 */
	long lifetime_s;
	uint64_t limit_response_bytes; /* of the decompressed body */
};

enum http_failure {
	HTTP_OK,	 /* there is an answer */
	/* not sent: no address, no connection, no TLS; or certainly not processed (HTTP/2) */
	HTTP_UNREACHED,
	HTTP_UNANSWERED, /* sent, at least in part, without an answer: it may have been accepted */
	HTTP_TOO_LARGE,	 /* there is an answer, but its body is larger than allowed, and left out */
	HTTP_CUT,	 /* likewise, but its body broke off, or its encoding is wrong */
};

/* Valid during the call. */
struct http_answer {
	enum http_failure failure;
	const char *problem;	  /* in words, unless failure is HTTP_OK */
	/*
	 * The connection had been kept, and ended before a byte of an answer came, as it does when
	 * the receiver ends it while a request begins. That says nothing about the receiver: the
	 * next request goes over a new connection.
	 */
	bool is_stale;
	int status;		  /* 0: no answer */
	const char *content_type; /* "": none */
	const char *location;	  /* the URL that a redirect leads to; NULL: none */
	uint64_t retry_after_ns; /* as in retry-after.h; 0: absent, in the past, or nonsense */
	const uint8_t *body;
	size_t body_size;
};

typedef void http_answer_fn(void *user, const struct http_answer *answer);

/* event outlives the client. -ENOMEM, -EIO (libcurl will not start). */
int http_client_new(struct sd_event *event, const struct http_options *options,
		    struct http_client **ret_client);
/*
 * The headers of all further requests, except those that HTTP itself needs. reset removes all, and
 * must come first; add copies one ("Name: value"). Not while a request is on its way. -ENOMEM.
 */
int http_client_reset_headers(struct http_client *client);
int http_client_add_header(struct http_client *client, const char *header);
/*
 * Sends body, borrowed until answered. answered is called once from the loop, never from here; it
 * may post again, or free the client. Not while a request is on its way. -ENOMEM.
 */
int http_client_post(struct http_client *client, const uint8_t *body, size_t size,
		     http_answer_fn *answered, void *user);
/*
 * The receiver failed: the next request goes over a new connection, to its next address. Not while
 * a request is on its way.
 */
void http_client_move_on(struct http_client *client);
/* The request that is on its way is given up without a call. The receiver may have it. */
void http_client_give_up(struct http_client *client);
/* A request that is on its way is given up without a call. */
struct http_client *http_client_free(struct http_client *client);

DEFINE_CLEANUP(struct http_client *, http_client_free);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl looks no name up, unless that of a proxy: it gets one address at a time (route.h). It
 * reuses a connection only for the address that the connection was made to.
 */
#include "export/transport/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/transport/doubt.h"
#include "export/transport/multi.h"
#include "export/transport/proxy.h"
#include "export/transport/retry-after.h"
#include "export/transport/route.h"
#include "export/transport/timer.h"
#include "export/transport/url.h"
#include "util/buf.h"
#include "util/duration.h"

#define UPLOAD_BUFFER_BYTES 16384L /* the least that libcurl takes; it is kept all the time */
/* for another lookup, before the addresses of before are used; at most half of the timeout */
#define LOOKUP_NS (5 * NS_PER_S)

struct http_client {
	struct sd_event *event;
	struct multi multi;
	CURL *easy;
	struct curl_slist *headers;
	uint64_t timeout_ns, lifetime_ns;

	/* To the host of the URL; all zero through a proxy, or if only libcurl can read it. */
	struct route route;
	struct curl_slist *connect_to;
	uint64_t connected_ns; /* of the connection that is kept */
	bool is_due;	       /* the name is to be looked up again */
	bool is_fresh;	       /* the connection that is kept is not to be used */

	/* The request on its way. */
	bool is_looking_up;
	struct timer patience; /* with a lookup */
	uint64_t deadline_ns;  /* 0: none */
	const uint8_t *body;
	size_t size, sent;
	struct buf response;
	struct retry_after retry_after;
	struct doubt doubt;
	char problem[TLS_PROBLEM_BYTES];
	http_answer_fn *answered;
	void *user;
};

/* Callbacks during a transfer */

static size_t on_read(char *out, size_t size, size_t n, void *user)
{
	struct http_client *client = user;
	size_t left = client->size - client->sent;

	/*
	 * libcurl asks for more than there is: it began to send the body again, without a function
	 * to rewind it.
	 */
	if (!left)
		return client->size ? CURL_READFUNC_ABORT : 0;
	if (left > size * n)
		left = size * n;
	memcpy(out, client->body + client->sent, left);
	client->sent += left;
	return left;
}

static size_t on_write(char *data, size_t size, size_t n, void *user)
{
	struct http_client *client = user;

	buf_append(&client->response, data, size * n);
	return buf_error(&client->response) ? 0 : size * n;
}

static const char *describe_failure(struct http_client *client, enum http_failure failure,
				    CURLcode code)
{
	long proxy_status = 0;

	if (failure == HTTP_TOO_LARGE)
		return "the answer is larger than max_response_size";
	curl_easy_getinfo(client->easy, CURLINFO_HTTP_CONNECTCODE, &proxy_status);
	if (failure == HTTP_UNREACHED && proxy_status >= 300)
		snprintf(client->problem, sizeof(client->problem), "the proxy answered HTTP %ld", proxy_status);
	if (code == CURLE_OK || code == CURLE_SEND_FAIL_REWIND || code == CURLE_ABORTED_BY_CALLBACK)
		return "the connection was closed without an answer";
	return client->problem[0] ? client->problem : curl_easy_strerror(code);
}

static void deliver_answer(struct http_client *client, CURLcode code, bool was_fresh)
{
	bool is_doubtful = client->sent && doubt_remains(&client->doubt, (int)code);
	struct http_answer answer = { .retry_after_ns = client->retry_after.delay_ns };
	char *type = NULL;
	long status = 0;

	curl_easy_getinfo(client->easy, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(client->easy, CURLINFO_CONTENT_TYPE, &type);
	curl_easy_getinfo(client->easy, CURLINFO_REDIRECT_URL, &answer.location);
	/*
	 * 100 Continue is not an answer, nor is 101, after which libcurl is content. It reads
	 * numbers of any length.
	 */
	if (status < 200 || status > 999)
		status = 0;
	/*
	 * How a body breaks off cannot change what the status says, but the exporter has not been
	 * answered in time.
	 */
	if (status && client->response.error == -EFBIG)
		answer.failure = HTTP_TOO_LARGE;
	else if (!status || code == CURLE_OPERATION_TIMEDOUT)
		answer.failure = is_doubtful ? HTTP_UNANSWERED : HTTP_UNREACHED;
	else if (code != CURLE_OK)
		answer.failure = HTTP_CUT;
	answer.is_stale = !was_fresh && doubt_is_stale(client->easy, (int)code);
	answer.problem = describe_failure(client, answer.failure, code);
	answer.status = (int)status;
	answer.content_type = type ? type : "";
	answer.body = client->response.data;
	answer.body_size = code == CURLE_OK ? client->response.size : 0;
	client->answered(client->user, &answer);
}

/* Addresses */

static void set_address(struct http_client *client, const struct address *address)
{
	char text[ADDRESS_TEXT_BYTES], target[ADDRESS_TEXT_BYTES + 2];

	curl_slist_free_all(client->connect_to);
	client->connect_to = NULL;
	if (client->route.has_name && address) {
		address_print(address, text);
		snprintf(target, sizeof(target), "::%s", text); /* for any host and port */
		client->connect_to = curl_slist_append(NULL, target);
	}
	curl_easy_setopt(client->easy, CURLOPT_CONNECT_TO, client->connect_to);
}

/* To the next address. -ENOMEM. */
static int begin_transfer(struct http_client *client)
{
	uint64_t connect_ns = route_connect_ns(&client->route, client->timeout_ns), left_ms = 0;
	uint64_t now_ns = timer_now_ns(client->event);

	set_address(client, route_try(&client->route));
	if (client->deadline_ns > now_ns)
		left_ms = (client->deadline_ns - now_ns) / NS_PER_MS;
	left_ms += client->deadline_ns && !left_ms; /* 0 would be no limit */
	curl_easy_setopt(client->easy, CURLOPT_TIMEOUT_MS, (long)left_ms);
	curl_easy_setopt(client->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)(connect_ns / NS_PER_MS));
	curl_easy_setopt(client->easy, CURLOPT_FRESH_CONNECT, (long)client->is_fresh);
	client->sent = 0;
	client->doubt = (struct doubt){ 0 };
	client->problem[0] = '\0';
	client->retry_after.delay_ns = 0;
	buf_reset(&client->response);
	return multi_begin(&client->multi, client->easy);
}

/* No connection was made, and another address has its turn. */
static bool try_elsewhere(struct http_client *client, CURLcode code)
{
	bool is_late = client->deadline_ns &&
		       timer_now_ns(client->event) >= client->deadline_ns;
	curl_off_t connected_us = 0, ready_us = 0; /* ready: also if the connection was kept */

	curl_easy_getinfo(client->easy, CURLINFO_CONNECT_TIME_T, &connected_us);
	curl_easy_getinfo(client->easy, CURLINFO_PRETRANSFER_TIME_T, &ready_us);
	if ((code != CURLE_COULDNT_CONNECT && code != CURLE_OPERATION_TIMEDOUT) || connected_us ||
	    ready_us || is_late || client->route.n_tried >= client->route.addresses.n)
		return false;
	return !begin_transfer(client);
}

static void on_ended(void *user, int code)
{
	struct http_client *client = user;
	bool was_fresh = client->is_fresh;
	long n_connections = 0;

	if (try_elsewhere(client, (CURLcode)code))
		return;
	curl_easy_getinfo(client->easy, CURLINFO_NUM_CONNECTS, &n_connections);
	if (n_connections)
		client->connected_ns = timer_now_ns(client->event);
	client->is_fresh = code != CURLE_OK;
	deliver_answer(client, (CURLcode)code, was_fresh);
}

/* problem: why the lookup failed, or NULL. After a failure, the old addresses are used, if any. */
static void end_lookup(struct http_client *client, const char *problem)
{
	const struct http_answer answer = { .failure = HTTP_UNREACHED,
					    .problem = client->problem, .content_type = "" };
	int err = 0;

	client->is_looking_up = false;
	timer_disarm(&client->patience);
	if (client->route.addresses.n) {
		err = begin_transfer(client);
		if (!err)
			return;
	}
	snprintf(client->problem, sizeof(client->problem), "cannot look up %.120s: %s",
		 client->route.endpoint.host, err ? strerror(-err) : problem);
	client->answered(client->user, &answer);
}

static void on_looked_up(void *user, const char *problem, bool has_moved)
{
	struct http_client *client = user;

	client->is_due = problem;
	client->is_fresh |= has_moved;
	if (client->is_looking_up)
		end_lookup(client, problem);
}

static void on_impatient(void *user)
{
	end_lookup(user, "no answer in time");
}

static int begin_lookup(struct http_client *client)
{
	uint64_t wait_ns = client->timeout_ns;
	int err = route_look_up(&client->route);

	if (client->route.addresses.n && (!wait_ns || wait_ns > 2 * LOOKUP_NS))
		wait_ns = 2 * LOOKUP_NS;
	if (client->route.addresses.n)
		wait_ns /= 2;
	if (!err && wait_ns)
		err = timer_arm(&client->patience, wait_ns);
	client->is_looking_up = !err;
	return err && client->route.addresses.n ? begin_transfer(client) : err;
}

static void set_request(struct http_client *client, const struct http_options *options)
{
	CURL *easy = client->easy;

	curl_easy_setopt(easy, CURLOPT_URL, options->url);
	curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
#if LIBCURL_VERSION_NUM >= 0x075500
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, options->user_agent);
	curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "gzip");
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	/* That of a proxy is kept for a minute by default, even if the proxy is gone. */
	curl_easy_setopt(easy, CURLOPT_DNS_CACHE_TIMEOUT, 0L);
	curl_easy_setopt(easy, CURLOPT_POST, 1L);
	curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, UPLOAD_BUFFER_BYTES);
	/*
	 * A connection that resumes an old TLS session would not check the CA that the file has
	 * now.
	 */
	curl_easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L);
	/* Whatever the machine's openssl.cnf allows. */
	curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	tls_set_files(easy, &options->tls);
#if LIBCURL_VERSION_NUM >= 0x075700
	/* By default CAs are cached for a day. For the system's that is right: they are many. */
	if (options->tls.ca_file)
		curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, 0L);
	/* By default, giving up a request waits for its name lookup, and the loop with it. */
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
	curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
	curl_easy_setopt(easy, CURLOPT_READDATA, client);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_write);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, client);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, retry_after_on_line);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, &client->retry_after);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, client->problem);
	doubt_watch(&client->doubt, easy);
}

static void set_route(struct http_client *client, const struct http_options *options)
{
	const char *proxy = proxy_for(options->url, options->proxy);

	curl_easy_setopt(client->easy, CURLOPT_PROXY, proxy ?: "");
	curl_easy_setopt(client->easy, CURLOPT_NOPROXY, "");
	client->route = (struct route){ .event = client->event, .type = SOCK_STREAM,
					.looked_up = on_looked_up, .user = client };
	if (!proxy && url_endpoint(options->url, &client->route.endpoint))
		route_init(&client->route);
}

int http_client_new(struct sd_event *event, const struct http_options *options,
		    struct http_client **ret_client)
{
	_cleanup_(http_client_freep) struct http_client *client = NULL;

	if (!tls_start())
		return -EIO;
	client = calloc(1, sizeof(*client));
	if (!client)
		return -ENOMEM;
	client->event = event;
	client->patience = (struct timer){ event, on_impatient, client, NULL };
	client->timeout_ns = options->timeout_ns;
	client->lifetime_ns = (uint64_t)options->lifetime_s * NS_PER_S;
	client->response.limit_bytes = options->limit_response_bytes;
	client->retry_after.event = event;
	client->easy = curl_easy_init();
	if (multi_init(&client->multi, event, on_ended, client) < 0 || !client->easy)
		return -ENOMEM;
	set_request(client, options);
	set_route(client, options);
	*ret_client = TAKE_PTR(client);
	return 0;
}

int http_client_reset_headers(struct http_client *client)
{
	curl_easy_setopt(client->easy, CURLOPT_HTTPHEADER, NULL);
	curl_slist_free_all(client->headers);
	client->headers = NULL;
	/* Without this, large bodies wait for a 100 Continue, which few receivers send. */
	return http_client_add_header(client, "Expect:");
}

int http_client_add_header(struct http_client *client, const char *header)
{
	struct curl_slist *longer = curl_slist_append(client->headers, header);

	if (!longer)
		return -ENOMEM;
	client->headers = longer;
	curl_easy_setopt(client->easy, CURLOPT_HTTPHEADER, longer);
	return 0;
}

int http_client_post(struct http_client *client, const uint8_t *body, size_t size,
		     http_answer_fn *answered, void *user)
{
	uint64_t now_ns = timer_now_ns(client->event);

	client->body = body;
	client->size = size;
	client->answered = answered;
	client->user = user;
	client->deadline_ns = client->timeout_ns ? now_ns + client->timeout_ns : 0;
	curl_easy_setopt(client->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
	if (now_ns - client->connected_ns >= client->lifetime_ns)
		client->is_fresh = client->is_due = true;
	route_begin(&client->route);
	if (client->route.has_name && (client->is_due || !client->route.addresses.n))
		return begin_lookup(client);
	return begin_transfer(client);
}

void http_client_move_on(struct http_client *client)
{
	route_skip(&client->route);
	client->is_fresh = client->is_due = true;
}

void http_client_give_up(struct http_client *client)
{
	multi_stop(&client->multi);
	timer_disarm(&client->patience);
	client->is_looking_up = false;
	http_client_move_on(client);
}

struct http_client *http_client_free(struct http_client *client)
{
	if (!client)
		return NULL;
	multi_stop(&client->multi);
	curl_easy_cleanup(client->easy);
	multi_done(&client->multi);
	curl_slist_free_all(client->headers);
	curl_slist_free_all(client->connect_to);
	route_done(&client->route);
	timer_done(&client->patience);
	buf_done(&client->response);
	free(client);
	return NULL;
}

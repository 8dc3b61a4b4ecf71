/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl's multi interface says what it waits for through two callbacks: its sockets become I/O
 * sources of sd-event, its one timeout becomes a timer. When one fires, curl_multi_socket_action()
 * goes on, and we ask for finished transfers. libcurl may not be called from its own callbacks, so
 * an answer is delivered after libcurl has returned, when the easy handle has left the multi
 * handle, and the caller is free to post again.
 */
#include "export/transport/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>

#include "export/transport/timer.h"
#include "util/buf.h"
#include "util/duration.h"

#define UPLOAD_BUFFER_BYTES 16384L /* the least that libcurl takes; it is kept all the time */

struct http_client {
	CURLM *multi;
	CURL *easy;
	struct timer timeout; /* for libcurl */
	struct curl_slist *headers;

	/* The request on its way. */
	const uint8_t *body;
	size_t size, sent;
	struct buf response;
	char problem[TLS_PROBLEM_BYTES];
	http_answer_fn *answered;
	void *user;
};

static void go_on(struct http_client *client, curl_socket_t fd, int action);

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *user)
{
	int events = revents & EPOLLIN ? CURL_CSELECT_IN : 0;

	if (revents & EPOLLOUT)
		events |= CURL_CSELECT_OUT;
	if (revents & (EPOLLERR | EPOLLHUP))
		events |= CURL_CSELECT_ERR;
	go_on(user, fd, events);
	return 0;
}

static void on_timeout(void *user)
{
	go_on(user, CURL_SOCKET_TIMEOUT, 0);
}

static int socket_changed(CURL *easy, curl_socket_t fd, int what, void *user, void *socket_user)
{
	static const uint32_t events[] = {
		[CURL_POLL_IN] = EPOLLIN, [CURL_POLL_OUT] = EPOLLOUT,
					   [CURL_POLL_INOUT] = EPOLLIN | EPOLLOUT
	};
	struct http_client *client = user;
	sd_event_source *source = socket_user;

	if (what == CURL_POLL_REMOVE) {
		sd_event_source_disable_unref(source);
		curl_multi_assign(client->multi, fd, NULL);
		return 0;
	}
	if (source)
		return sd_event_source_set_io_events(source, events[what]) < 0 ? -1 : 0;
	if (sd_event_add_io(client->timeout.event, &source, fd, events[what], on_io, client) < 0)
		return -1;
	curl_multi_assign(client->multi, fd, source);
	return 0;
}

static int timeout_changed(CURLM *multi, long timeout_ms, void *user)
{
	struct http_client *client = user;

	if (timeout_ms >= 0)
		return timer_arm(&client->timeout, (uint64_t)timeout_ms * NS_PER_MS) < 0 ? -1 : 0;
	timer_disarm(&client->timeout);
	return 0;
}

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

static void deliver_answer(struct http_client *client, CURLcode code)
{
	const curl_off_t max_s = HTTP_RETRY_AFTER_MAX_NS / NS_PER_S;
	struct http_answer answer = { 0 };
	curl_off_t delay_s = 0;
	char *type = NULL;
	long status = 0;

	/*
	 * libcurl reads seconds and dates; anything else is 0. Before 8.12, a date in the past is
	 * below 0.
	 */
	curl_easy_getinfo(client->easy, CURLINFO_RETRY_AFTER, &delay_s);
	if (delay_s > 0)
		answer.retry_after_ns = (uint64_t)(delay_s < max_s ? delay_s : max_s) * NS_PER_S;
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
		answer.failure = client->sent ? HTTP_UNANSWERED : HTTP_UNREACHED;
	answer.problem = describe_failure(client, answer.failure, code);
	answer.status = (int)status;
	answer.content_type = type ? type : "";
	answer.body = client->response.data;
	answer.body_size = code == CURLE_OK ? client->response.size : 0;
	client->answered(client->user, &answer);
}

static void go_on(struct http_client *client, curl_socket_t fd, int action)
{
	const CURLMsg *message;
	CURLcode code;
	int n;

	curl_multi_socket_action(client->multi, fd, action, &n);
	message = curl_multi_info_read(client->multi, &n);
	if (!message)
		return;
	code = message->data.result; /* there is only one transfer, and only its end is a message */
	curl_multi_remove_handle(client->multi, client->easy);
	deliver_answer(client, code);
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
#if LIBCURL_VERSION_NUM >= 0x075000
	curl_easy_setopt(easy, CURLOPT_MAXLIFETIME_CONN, options->lifetime_s);
#endif
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, options->user_agent);
	curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "gzip");
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	/*
	 * By default an address is kept for a minute, even if the receiver is gone. Connections
	 * live for longer.
	 */
	curl_easy_setopt(easy, CURLOPT_DNS_CACHE_TIMEOUT, 0L);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(options->timeout_ns / NS_PER_MS));
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
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, client->problem);
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
	client->timeout = (struct timer){ event, on_timeout, client, NULL };
	client->response.limit_bytes = options->limit_response_bytes;
	client->multi = curl_multi_init();
	client->easy = curl_easy_init();
	if (!client->multi || !client->easy)
		return -ENOMEM;
	curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, socket_changed);
	curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
	curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, timeout_changed);
	curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
	curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, 1L);
	set_request(client, options);
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
	client->body = body;
	client->size = size;
	client->sent = 0;
	client->answered = answered;
	client->user = user;
	client->problem[0] = '\0';
	buf_reset(&client->response);
	curl_easy_setopt(client->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
	return curl_multi_add_handle(client->multi, client->easy) == CURLM_OK ? 0 : -ENOMEM;
}

struct http_client *http_client_free(struct http_client *client)
{
	if (!client)
		return NULL;
	/* also takes one that is in none, or NULL */
	curl_multi_remove_handle(client->multi, client->easy);
	curl_easy_cleanup(client->easy);
	/* closes what it keeps, which takes the I/O sources away */
	curl_multi_cleanup(client->multi);
	curl_slist_free_all(client->headers);
	timer_done(&client->timeout);
	buf_done(&client->response);
	free(client);
	return NULL;
}

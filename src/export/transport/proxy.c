/* SPDX-License-Identifier: Apache-2.0 */
#include "export/transport/proxy.h"

#include <curl/curl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>

#include "export/transport/tls.h"
#include "export/transport/url.h"
#include "util/array.h"

#define PROXY_PORT  1
#define DIRECT_PORT 2

static curl_socket_t note_port(void *user, curlsocktype purpose, struct curl_sockaddr *address)
{
	*(in_port_t *)user = ntohs(((const struct sockaddr_in *)(void *)&address->addr)->sin_port);
	return CURL_SOCKET_BAD;
}

/*
 * NO_PROXY has many forms, which have changed. So libcurl is asked: it gets a proxy and an address
 * of the receiver, and opens a socket for one of the two. None is made.
 */
static bool is_exempt(const char *url)
{
	struct curl_slist *direct = tls_start() ? curl_slist_append(NULL, "::127.0.0.1:2") : NULL;
	in_port_t port = PROXY_PORT;
	CURL *easy = direct ? curl_easy_init() : NULL;

	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_PROXY, "http://127.0.0.1:1");
	curl_easy_setopt(easy, CURLOPT_CONNECT_TO, direct);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, note_port);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, &port);
	if (easy)
		(void)curl_easy_perform(easy);
	curl_easy_cleanup(easy);
	curl_slist_free_all(direct);
	return port == DIRECT_PORT;
}

const char *proxy_for(const char *url)
{
	/* HTTP_PROXY is not read: a CGI program's client could set it. */
	static const char *const names[] = { "https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy", "ALL_PROXY" };
	const char *proxy;

	for (size_t i = url_is_encrypted(url) ? 0 : 2; i < ARRAY_SIZE(names); i++) {
		proxy = getenv(names[i]);
		if (proxy && *proxy && (!url_is_encrypted(url) || i != 2))
			return is_exempt(url) ? NULL : proxy;
	}
	return NULL;
}

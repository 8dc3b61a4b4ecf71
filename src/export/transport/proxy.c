/* SPDX-License-Identifier: Apache-2.0 */
#include "export/transport/proxy.h"

#include <curl/curl.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static const char *proxy_of_environment(const char *url)
{
	/* HTTP_PROXY is not read: a CGI program's client could set it. */
	static const char *const names[][5] = {
		{ "http_proxy", "all_proxy", "ALL_PROXY", NULL },
		{ "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", NULL },
	};
	const char *proxy;

	for (const char *const *name = names[url_is_encrypted(url)]; *name; name++) {
		proxy = getenv(*name);
		if (proxy && *proxy)
			return is_exempt(url) ? NULL : proxy;
	}
	return NULL;
}

const char *proxy_for(const char *url, const char *setting)
{
	if (!setting)
		return proxy_of_environment(url);
	return strcmp(setting, "none") ? setting : NULL;
}

int proxy_check(const char *setting, const char **ret_complaint)
{
	static const char *const schemes[] = { "http", "https", "socks4", "socks4a", "socks5",
					       "socks5h" };
	CURLU *parts = curl_url();
	char *scheme = NULL;
	bool is_right = !strcmp(setting, "none");

	if (parts &&
	    curl_url_set(parts, CURLUPART_URL, setting, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK &&
	    curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK)
		is_right |= array_find(schemes, ARRAY_SIZE(schemes), scheme) != NULL;
	curl_free(scheme);
	curl_url_cleanup(parts);
	*ret_complaint = "neither none nor the URL of a proxy, write one like http://HOST:3128";
	return is_right ? 0 : -EINVAL;
}

char *proxy_public(const char *proxy)
{
	char *url = url_public(proxy), *text = NULL;

	/* Without a scheme, it is http. */
	if (url && !strstr(url, "://") && asprintf(&text, "http://%s", url) < 0)
		text = NULL;
	if (!url || strstr(url, "://"))
		return url;
	free(url);
	return text;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "export/transport/url.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool url_is_encrypted(const char *url)
{
	return !strncasecmp(url, "https://", 8);
}

char *url_public(const char *url)
{
	const char *host = strstr(url, "://"), *at;
	char *text;

	host = host ? host + 3 : url;
	at = memrchr(host, '@', strcspn(host, "/?#"));
	at = at ? at + 1 : host;
	return asprintf(&text, "%.*s%.*s", (int)(host - url), url, (int)strcspn(at, "?#"), at) < 0 ?
	       NULL : text;
}

int url_check(const char *url, const char **ret_complaint)
{
	CURLU *parts = curl_url();
	CURLUcode code = parts ? curl_url_set(parts, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME) :
			 CURLUE_OK;

	curl_url_cleanup(parts);
	if (!parts || code == CURLUE_OUT_OF_MEMORY)
		return -ENOMEM;
	if (code == CURLUE_BAD_PORT_NUMBER)
		*ret_complaint = "the port must be a number from 1 to 65535";
	else if (code != CURLUE_OK)
		*ret_complaint = "not a URL, write http://HOST:PORT or https://HOST";
	else if (!strncasecmp(url, "grpc://", 7) || !strncasecmp(url, "grpcs://", 8))
		*ret_complaint = "bpfpush sends OTLP/HTTP, not gRPC; write http://HOST:4318 or https://HOST:4318";
	else if (!url_is_encrypted(url) && strncasecmp(url, "http://", 7))
		*ret_complaint = "must begin with http:// or https://";
	else
		return 0;
	return -EINVAL;
}

struct url_place url_place(const char *url)
{
	char *host = NULL, *port = NULL, *password = NULL, *dot;
	struct url_place place = { 0 };
	CURLU *parts = curl_url();

	if (parts && curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK &&
	    curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
	    curl_url_get(parts, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK) {
		dot = strrchr(host, '.');
		place.is_local = (!strncmp(host, "127.", 4) && !host[strspn(host, "0123456789.")]) ||
				 !strcmp(host, "[::1]") || !strcasecmp(dot ? dot + 1 : host, "localhost");
		place.has_password = curl_url_get(parts, CURLUPART_PASSWORD, &password,
						  0) == CURLUE_OK;
		place.port = (unsigned int)strtoul(port, NULL, 10);
	}
	curl_free(host);
	curl_free(port);
	curl_free(password);
	curl_url_cleanup(parts);
	return place;
}

bool url_endpoint(const char *url, struct endpoint *ret_endpoint)
{
	struct url_place place = url_place(url);
	char *host = NULL, port[16];
	const char *complaint, *dot;
	CURLU *parts = curl_url();
	bool is_known;

	snprintf(port, sizeof(port), "%u", place.port);
	is_known = parts && curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK &&
		   curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
		   !endpoint_parse(host, port, false, ret_endpoint, &complaint);
	dot = is_known ? strrchr(host, '.') : NULL;
	/* No name server knows NAME.localhost. */
	if (dot && place.is_local && !strcasecmp(dot, ".localhost"))
		snprintf(ret_endpoint->host, sizeof(ret_endpoint->host), "localhost");
	curl_free(host);
	curl_url_cleanup(parts);
	return is_known;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "export/transport/endpoint.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "util/parse.h"

#define NAME_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_"

static bool is_name(const char *text)
{
	return text[0] && !text[strspn(text, NAME_BYTES)];
}

/* An address of IPv6, perhaps with a zone: fe80::1%eth0. */
static bool is_ipv6(const char *text)
{
	char address[INET6_ADDRSTRLEN];
	struct in6_addr parsed;
	size_t size = strcspn(text, "%");

	if (size >= sizeof(address) || (text[size] && !is_name(text + size + 1)))
		return false;
	memcpy(address, text, size);
	address[size] = '\0';
	return inet_pton(AF_INET6, address, &parsed) == 1;
}

static const char *parse_unix(const char *text, struct endpoint *endpoint)
{
	size_t size = strlen(text);

	if ((text[0] != '/' && text[0] != '@') || size < 2)
		return "after unix:, write an absolute path, or @ and a name";
	if (size >= sizeof(endpoint->path))
		return "the path of a unix socket is longer than 107 bytes";
	memcpy(endpoint->path, text, size + 1);
	return NULL;
}

static const char *parse_port(const char *text, struct endpoint *endpoint)
{
	uint64_t port;

	if (text[strspn(text, "0123456789")] || parse_u64(text, &port) || !port || port > 65535)
		return "the port must be a number from 1 to 65535";
	snprintf(endpoint->service, sizeof(endpoint->service), "%" PRIu64, port);
	return NULL;
}

static const char *parse_host(const char *text, const char *default_port, struct endpoint *endpoint)
{
	bool has_brackets = text[0] == '[';
	const char *host = text + has_brackets;
	size_t size = strcspn(host, has_brackets ? "]" : ":");
	const char *end = host + size, *rest = end + (has_brackets && *end); /* "" or ":PORT" */

	if (strstr(text, "://"))
		return "write HOST:PORT, not a URL";
	if (size >= sizeof(endpoint->host))
		return "the host name is too long";
	memcpy(endpoint->host, host, size);
	if (has_brackets && (rest == end || (*rest && *rest != ':') || !is_ipv6(endpoint->host)))
		return "write an IPv6 address as [ADDRESS] or [ADDRESS]:PORT";
	/* Whether the last group of "::1:2003" is a port, nobody could say. */
	if (!has_brackets && *rest && strchr(rest + 1, ':'))
		return "write HOST:PORT, or [ADDRESS]:PORT for an IPv6 address";
	if (!size)
		return "the host before the port is missing";
	if (!has_brackets && !is_name(endpoint->host))
		return "a host name has only letters, digits, \"-\", \"_\" and \".\"";
	return parse_port(*rest ? rest + 1 : default_port, endpoint);
}

int endpoint_parse(const char *text, const char *default_port, bool allows_unix, struct endpoint *ret_endpoint,
		   const char **ret_complaint)
{
	struct endpoint endpoint = { 0 };
	const char *complaint;

	if (strncmp(text, "unix:", 5))
		complaint = parse_host(text, default_port, &endpoint);
	else if (allows_unix)
		complaint = parse_unix(text + 5, &endpoint);
	else
		complaint = "write HOST:PORT; a unix socket cannot be used here";
	if (complaint) {
		*ret_complaint = complaint;
		return -EINVAL;
	}
	*ret_endpoint = endpoint;
	return 0;
}

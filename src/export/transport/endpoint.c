/* SPDX-License-Identifier: Apache-2.0 */
#include "export/transport/endpoint.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/parse.h"

/* An address of IPv6, perhaps with a zone: fe80::1%eth0. */
static bool is_ipv6(const char *text, size_t size)
{
	char address[INET6_ADDRSTRLEN];
	struct in6_addr parsed;
	const char *zone = memchr(text, '%', size);
	size_t length = zone ? (size_t)(zone - text) : size;

	if (zone && length + 1 == size)
		return false;
	for (size_t i = length + 1; i < size; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr(".-_", text[i]))
			return false;
	if (length >= sizeof(address))
		return false;
	memcpy(address, text, length);
	address[length] = '\0';
	return inet_pton(AF_INET6, address, &parsed) == 1;
}

static const char *check_name(const char *text, size_t size)
{
	if (!size)
		return "the host before the port is missing";
	if (size >= sizeof(((struct endpoint *)NULL)->host))
		return "the host name is too long";
	for (size_t i = 0; i < size; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr(".-_", text[i]))
			return "a host name has only letters, digits, \"-\", \"_\" and \".\"";
	return NULL;
}

static const char *check_port(const char *text)
{
	uint64_t port;

	if (text[strspn(text, "0123456789")] || parse_u64(text, &port) || !port || port > 65535)
		return "the port must be a number from 1 to 65535";
	return NULL;
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

/* Where the host is and where the port begins, which may be nowhere (NULL). */
static const char *split(const char *text, const char **ret_host, size_t *ret_size, const char **ret_port)
{
	const char *colon = strchr(text, ':'), *end = strchr(text, ']');

	*ret_host = text;
	if (text[0] == '[') {
		if (!end || (end[1] && end[1] != ':') || !is_ipv6(text + 1, (size_t)(end - text - 1)))
			return "write an IPv6 address as [ADDRESS] or [ADDRESS]:PORT";
		*ret_host = text + 1;
		*ret_size = (size_t)(end - text - 1);
		*ret_port = end[1] ? end + 2 : NULL;
		return NULL;
	}
	/* Whether the last group of "::1:2003" is a port, nobody could say. */
	if (colon && strchr(colon + 1, ':'))
		return "write HOST:PORT, or [ADDRESS]:PORT for an IPv6 address";
	*ret_size = colon ? (size_t)(colon - text) : strlen(text);
	*ret_port = colon ? colon + 1 : NULL;
	return check_name(text, *ret_size);
}

static const char *parse_host(const char *text, const char *default_port, struct endpoint *endpoint)
{
	const char *host, *port, *complaint;
	size_t size;

	if (strstr(text, "://"))
		return "write HOST:PORT, not a URL";
	complaint = split(text, &host, &size, &port);
	if (complaint)
		return complaint;
	if (!port)
		port = default_port;
	complaint = check_port(port);
	if (complaint)
		return complaint;
	if (size >= sizeof(endpoint->host))
		return "the host name is too long";
	memcpy(endpoint->host, host, size);
	while (port[0] == '0')
		port++;
	snprintf(endpoint->service, sizeof(endpoint->service), "%s", port);
	return NULL;
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

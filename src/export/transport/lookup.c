/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lookup is owned by its thread, which writes the answer into a pipe and touches nothing else,
 * whether or not it is read. All signals are blocked in it: those that the loop takes by signalfd
 * must not find a thread that would die of them, nor may the pipe's.
 */
#include "export/transport/lookup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/parse.h"
#include "util/rights.h"

#define NAME_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_"

struct lookup {
	struct endpoint endpoint;
	int type, fd;
};

/* Endpoints */

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
	/* The last group of "::1:2003" may be a port or a part of the address. */
	if (!has_brackets && *rest && strchr(rest + 1, ':'))
		return "write HOST:PORT, or [ADDRESS]:PORT for an IPv6 address";
	if (!size)
		return "the host before the port is missing";
	if (!has_brackets && !is_name(endpoint->host))
		return "a host name has only letters, digits, \"-\", \"_\" and \".\"";
	return parse_port(*rest ? rest + 1 : default_port, endpoint);
}

int endpoint_parse(const char *text, const char *default_port, bool allows_unix,
		   struct endpoint *ret_endpoint, const char **ret_complaint)
{
	struct endpoint endpoint = { 0 };

	if (strncmp(text, "unix:", 5))
		*ret_complaint = parse_host(text, default_port, &endpoint);
	else if (allows_unix)
		*ret_complaint = parse_unix(text + 5, &endpoint);
	else
		*ret_complaint = "write HOST:PORT; a unix socket cannot be used here";
	if (*ret_complaint)
		return -EINVAL;
	*ret_endpoint = endpoint;
	return 0;
}

/* Addresses */

void address_print(const struct address *address, char text[ADDRESS_TEXT_BYTES])
{
	char host[INET6_ADDRSTRLEN + 32] = "?", service[8] = "?";
	bool is_ipv6 = address->socket.ss_family == AF_INET6;

	(void)getnameinfo((const struct sockaddr *)&address->socket, address->size, host,
			  sizeof(host), service, sizeof(service), NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(text, ADDRESS_TEXT_BYTES, is_ipv6 ? "[%s]:%s" : "%s:%s", host, service);
}

static int find_addresses(const struct endpoint *endpoint, int type, int flags,
			  struct addresses *ret_addresses)
{
	const struct addrinfo hints = { .ai_socktype = type, .ai_flags = flags | AI_NUMERICSERV };
	struct addrinfo *found = NULL;
	int error = getaddrinfo(endpoint->host, endpoint->service, &hints, &found);

	if (error)
		return error;
	*ret_addresses = (struct addresses){ 0 };
	for (struct addrinfo *info = found; info && ret_addresses->n < ADDRESSES_MAX;
	     info = info->ai_next) {
		struct address *address = &ret_addresses->items[ret_addresses->n++];

		memcpy(&address->socket, info->ai_addr, info->ai_addrlen);
		address->size = info->ai_addrlen;
	}
	freeaddrinfo(found);
	return 0;
}

int addresses_of(const struct endpoint *endpoint, int type, struct addresses *ret_addresses)
{
	const char *path = endpoint->path;
	size_t size = strlen(path);
	struct sockaddr_un *local = (struct sockaddr_un *)&ret_addresses->items[0].socket;

	if (!size)
		return find_addresses(endpoint, type, AI_NUMERICHOST, ret_addresses) ? -EAGAIN : 0;
	*ret_addresses = (struct addresses){ .n = 1, .items[0].socket.ss_family = AF_UNIX };
	memcpy(local->sun_path, path, size);
	if (path[0] == '@')
		local->sun_path[0] = '\0';
	ret_addresses->items[0].size =
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + size + (path[0] != '@'));
	return 0;
}

static void *run_lookup(void *user)
{
	_cleanup_(freep) struct lookup *lookup = user;
	struct lookup_answer answer = { 0 };
	char room[96];

	(void)rights_set(0, 0);
	answer.error = find_addresses(&lookup->endpoint, lookup->type, 0, &answer.addresses);
	if (answer.error)
		snprintf(answer.problem, sizeof(answer.problem), "%s",
			 answer.error == EAI_SYSTEM ? strerror_r(errno, room, sizeof(room)) :
						      gai_strerror(answer.error));
	/* at once: it is smaller than PIPE_BUF */
	(void)!write(lookup->fd, &answer, sizeof(answer));
	close(lookup->fd);
	return NULL;
}

int lookup_start(const struct endpoint *endpoint, int type)
{
	_cleanup_(freep) struct lookup *lookup = malloc(sizeof(*lookup));
	sigset_t all, before;
	pthread_t thread;
	int ends[2], err;

	if (!lookup || pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	*lookup = (struct lookup){ *endpoint, type, ends[1] };
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, NULL, run_lookup, lookup);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!err) {
		(void)pthread_detach(thread);
		(void)TAKE_PTR(lookup);
		return ends[0];
	}
	close(ends[0]);
	close(ends[1]);
	return -err;
}

struct lookup_answer lookup_read(int fd)
{
	struct lookup_answer answer = { .error = EAI_SYSTEM };

	(void)!read(fd, &answer, sizeof(answer)); /* as it was written */
	return answer;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lookup is owned by its caller and by its thread; the last one to let go frees it. The thread
 * writes its answer into the lookup, then to an eventfd that the loop watches, and touches nothing
 * else. All signals are blocked in it: those that the loop takes by signalfd must not find a thread
 * that would die of them.
 */
#include "export/transport/lookup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/un.h>
#include <systemd/sd-event.h>

#include "util/parse.h"
#include "util/rights.h"

#define NAME_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_"
#define STACK_BYTES ((size_t)512 << 10) /* the C library and what nsswitch.conf loads into it */

struct lookup {
	unsigned int n_owners;
	struct endpoint endpoint;
	int type;
	int done_fd;
	sd_event_source *done;
	lookup_answer_fn *answered;
	void *user;

	struct addresses addresses;
	int error;
	char problem[128];
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

/* Addresses */

void address_print(const struct address *address, char text[ADDRESS_TEXT_BYTES])
{
	char host[INET6_ADDRSTRLEN + 32] = "?", service[8] = "?";
	bool is_ipv6 = address->socket.ss_family == AF_INET6;

	(void)getnameinfo((const struct sockaddr *)&address->socket, address->size, host, sizeof(host), service,
			  sizeof(service), NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(text, ADDRESS_TEXT_BYTES, "%s%s%s:%s", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", service);
}

bool address_is_equal(const struct address *a, const struct address *b)
{
	return a->size == b->size && !memcmp(&a->socket, &b->socket, a->size);
}

static void unix_address(const char *path, struct addresses *ret_addresses)
{
	struct address address = { .socket.ss_family = AF_UNIX };
	struct sockaddr_un *local = (struct sockaddr_un *)&address.socket;
	size_t size = strlen(path);

	memcpy(local->sun_path, path, size);
	if (path[0] == '@')
		local->sun_path[0] = '\0';
	address.size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size + (path[0] != '@'));
	*ret_addresses = (struct addresses){ .n = 1, .items[0] = address };
}

static int find(const struct endpoint *endpoint, int type, int flags, struct addresses *ret_addresses)
{
	const struct addrinfo hints = { .ai_socktype = type, .ai_flags = flags | AI_NUMERICSERV };
	struct addrinfo *found = NULL;
	struct addresses addresses = { 0 };
	int error = getaddrinfo(endpoint->host, endpoint->service, &hints, &found);

	if (error)
		return error;
	for (struct addrinfo *info = found; info && addresses.n < ADDRESSES_MAX; info = info->ai_next) {
		struct address *address = &addresses.items[addresses.n];

		memcpy(&address->socket, info->ai_addr, info->ai_addrlen);
		address->size = info->ai_addrlen;
		addresses.n++;
	}
	freeaddrinfo(found);
	*ret_addresses = addresses;
	return 0;
}

int addresses_of(const struct endpoint *endpoint, int type, struct addresses *ret_addresses)
{
	if (endpoint->path[0]) {
		unix_address(endpoint->path, ret_addresses);
		return 0;
	}
	return find(endpoint, type, AI_NUMERICHOST, ret_addresses) ? -EAGAIN : 0;
}

static void lookup_unref(struct lookup *lookup)
{
	if (__atomic_sub_fetch(&lookup->n_owners, 1, __ATOMIC_ACQ_REL))
		return;
	if (lookup->done_fd >= 0)
		close(lookup->done_fd);
	free(lookup);
}

void lookup_cancel(struct lookup *lookup)
{
	if (!lookup)
		return;
	lookup->done = sd_event_source_disable_unref(lookup->done);
	lookup_unref(lookup);
}

static void *run(void *user)
{
	struct lookup *lookup = user;
	char room[96];
	int error;

	(void)rights_set(0, 0);
	error = find(&lookup->endpoint, lookup->type, 0, &lookup->addresses);
	lookup->error = error;
	if (error == EAI_SYSTEM)
		snprintf(lookup->problem, sizeof(lookup->problem), "%s", strerror_r(errno, room, sizeof(room)));
	else if (error)
		snprintf(lookup->problem, sizeof(lookup->problem), "%s", gai_strerror(error));
	(void)eventfd_write(lookup->done_fd, 1); /* cannot fail: the counter is 0 */
	lookup_unref(lookup);
	return NULL;
}

static int spawn(struct lookup *lookup)
{
	sigset_t all, before;
	pthread_attr_t attributes;
	pthread_t thread;
	int err;

	if (pthread_attr_init(&attributes))
		return -ENOMEM;
	(void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	(void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, &attributes, run, lookup);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attributes);
	return -err;
}

static int on_done(sd_event_source *source, int fd, uint32_t revents, void *user)
{
	struct lookup *lookup = user;

	lookup->answered(lookup->user, &lookup->addresses, lookup->error, lookup->problem);
	lookup_cancel(lookup);
	return 0;
}

int lookup_start(struct sd_event *event, const struct endpoint *endpoint, int type, lookup_answer_fn *answered,
		 void *user, struct lookup **ret_lookup)
{
	struct lookup *lookup = calloc(1, sizeof(*lookup));
	int err;

	if (!lookup)
		return -ENOMEM;
	*lookup = (struct lookup){ .n_owners = 2, .endpoint = *endpoint, .type = type, .answered = answered,
				   .user = user, .done_fd = eventfd(0, EFD_CLOEXEC) };
	err = lookup->done_fd < 0 ? -errno :
				    sd_event_add_io(event, &lookup->done, lookup->done_fd, EPOLLIN, on_done, lookup);
	if (err >= 0)
		err = spawn(lookup);
	if (err < 0) {
		lookup->n_owners = 1;
		lookup_cancel(lookup);
		return err;
	}
	*ret_lookup = lookup;
	return 0;
}

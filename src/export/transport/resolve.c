/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request is owned by the resolver and by the thread; who lets go last frees it. The thread writes its
 * answer into the request, then to an eventfd that the loop watches, and touches nothing else. All signals
 * are blocked in it: those that the loop takes by signalfd must not find a thread that would die of them.
 */
#include "export/transport/resolve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/un.h>
#include <systemd/sd-event.h>

#define STACK_BYTES ((size_t)512 << 10) /* the C library and what nsswitch.conf loads into it */

struct request {
	unsigned int n_owners;
	int done_fd;
	int type;
	struct endpoint endpoint;
	int error;
	char problem[128];
	struct addresses addresses;
};

struct resolver {
	sd_event *event;
	struct endpoint endpoint;
	int type;
	resolver_answer_fn *answered;
	void *user;
	struct request *request; /* that runs */
	sd_event_source *done;
};

void address_print(const struct address *address, char text[ADDRESS_TEXT_BYTES])
{
	char host[INET6_ADDRSTRLEN + 32] = "?", service[8] = "?";
	bool is_ipv6 = address->socket.ss_family == AF_INET6;

	if (address->socket.ss_family == AF_UNIX) {
		const struct sockaddr_un *local = (const struct sockaddr_un *)&address->socket;
		bool is_abstract = !local->sun_path[0];

		snprintf(text, ADDRESS_TEXT_BYTES, "unix:%s%.*s", is_abstract ? "@" : "",
			 (int)(address->size - offsetof(struct sockaddr_un, sun_path) - is_abstract),
			 local->sun_path + is_abstract);
		return;
	}
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

static int look_up(const struct endpoint *endpoint, int type, int flags, struct addresses *ret_addresses)
{
	const struct addrinfo hints = { .ai_socktype = type, .ai_flags = flags | AI_NUMERICSERV };
	struct addrinfo *found = NULL;
	struct addresses addresses = { 0 };
	int error = getaddrinfo(endpoint->host, endpoint->service, &hints, &found);

	if (error)
		return error;
	for (struct addrinfo *info = found; info && addresses.n < ADDRESSES_MAX; info = info->ai_next) {
		struct address *address = &addresses.items[addresses.n];

		if (info->ai_family != AF_INET && info->ai_family != AF_INET6)
			continue;
		memcpy(&address->socket, info->ai_addr, info->ai_addrlen);
		address->size = info->ai_addrlen;
		addresses.n++;
	}
	freeaddrinfo(found);
	if (!addresses.n)
		return EAI_NONAME;
	*ret_addresses = addresses;
	return 0;
}

int addresses_of(const struct endpoint *endpoint, int type, struct addresses *ret_addresses)
{
	if (endpoint->path[0]) {
		unix_address(endpoint->path, ret_addresses);
		return 0;
	}
	return look_up(endpoint, type, AI_NUMERICHOST, ret_addresses) ? -EAGAIN : 0;
}

/* The request and its thread */

static void request_unref(struct request *request)
{
	if (!request || __atomic_sub_fetch(&request->n_owners, 1, __ATOMIC_ACQ_REL))
		return;
	close(request->done_fd);
	free(request);
}

static void *request_run(void *user)
{
	struct request *request = user;
	const uint64_t one = 1;
	char room[96];
	int error = look_up(&request->endpoint, request->type, 0, &request->addresses);

	request->error = error;
	if (error == EAI_SYSTEM)
		snprintf(request->problem, sizeof(request->problem), "%s", strerror_r(errno, room, sizeof(room)));
	else if (error)
		snprintf(request->problem, sizeof(request->problem), "%s", gai_strerror(error));
	/* It cannot fail: the counter is 0. */
	(void)!write(request->done_fd, &one, sizeof(one));
	request_unref(request);
	return NULL;
}

static int request_spawn(struct request *request)
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
	err = pthread_create(&thread, &attributes, request_run, request);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attributes);
	return -err;
}

/* The resolver */

static int on_done(sd_event_source *source, int fd, uint32_t revents, void *user)
{
	struct resolver *resolver = user;
	struct request *request = resolver->request;
	uint64_t count;

	if (read(fd, &count, sizeof(count)) < 0)
		return 0;
	resolver->request = NULL;
	resolver->done = sd_event_source_disable_unref(resolver->done);
	resolver->answered(resolver->user, &request->addresses, request->error, request->problem);
	request_unref(request);
	return 0;
}

int resolver_new(struct sd_event *event, const struct endpoint *endpoint, int type, resolver_answer_fn *answered,
		 void *user, struct resolver **ret_resolver)
{
	struct resolver *resolver = calloc(1, sizeof(*resolver));

	if (!resolver)
		return -ENOMEM;
	*resolver = (struct resolver){
		.event = sd_event_ref(event), .endpoint = *endpoint, .type = type, .answered = answered, .user = user
	};
	*ret_resolver = resolver;
	return 0;
}

static void resolver_cancel(struct resolver *resolver)
{
	resolver->done = sd_event_source_disable_unref(resolver->done);
	request_unref(TAKE_PTR(resolver->request));
}

int resolver_start(struct resolver *resolver)
{
	struct request *request;
	int err;

	if (resolver->request)
		return 0;
	request = calloc(1, sizeof(*request));
	if (!request)
		return -ENOMEM;
	*request = (struct request){ .n_owners = 1, .type = resolver->type, .endpoint = resolver->endpoint };
	request->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (request->done_fd < 0) {
		err = -errno;
		free(request);
		return err;
	}
	resolver->request = request;
	err = sd_event_add_io(resolver->event, &resolver->done, request->done_fd, EPOLLIN, on_done, resolver);
	if (err >= 0) {
		(void)sd_event_source_set_description(resolver->done, "resolve");
		request->n_owners = 2;
		err = request_spawn(request);
		if (err)
			request->n_owners = 1;
	}
	if (err < 0) {
		resolver_cancel(resolver);
		return err;
	}
	return 0;
}

struct resolver *resolver_free(struct resolver *resolver)
{
	if (!resolver)
		return NULL;
	resolver_cancel(resolver);
	sd_event_unref(resolver->event);
	free(resolver);
	return NULL;
}

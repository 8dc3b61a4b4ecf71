/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CLOSED ──socket_open()──▶ LOOKING_UP ──▶ CONNECTING ──▶ OPEN
 *    ▲                          ▲               │           │
 *    └──socket_close()          └────WAITING◀───┴───────────┘ socket_fail()
 *
 * A numeric address and a path are not looked up, and a datagram socket is open at once.
 */
#include "export/transport/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

#include "export/exporter.h"
#include "util/duration.h"

/* The answer of a lookup is used for this long by a socket that was closed in an orderly way. */
#define FRESH_NS NS_PER_S

/* Messages */

void socket_report(struct socket *sock, const char *problem)
{
	char where[ADDRESS_TEXT_BYTES];

	if (!strcmp(sock->problem, problem))
		return;
	snprintf(sock->problem, sizeof(sock->problem), "%s", problem);
	route_print(&sock->route, where);
	exporter_fail(sock->exporter, LOG_LEVEL_WARNING, LOG_ID_EXPORT_FAILING, "%s: %s", where, problem);
}

void socket_report_working(struct socket *sock)
{
	sock->backoff.limit_ns = 0;
	sock->problem[0] = '\0';
	exporter_delivers(sock->exporter);
}

/* Closing and opening */

void socket_close(struct socket *sock)
{
	/*
	 * A part of a request must not look like a whole one: no reader takes a reset for an end.
	 */
	const struct linger at_once = { .l_onoff = 1 };

	if (sock->queue->is_begun)
		(void)setsockopt(sock->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	sock->queue->is_begun = false;
	sock->io = sd_event_source_disable_unref(sock->io);
	timer_disarm(&sock->timer);
	if (sock->fd >= 0)
		close(sock->fd);
	sock->fd = -1;
	sock->state = SOCKET_CLOSED;
	exporter_asks(sock->exporter, false);
}

void socket_fail(struct socket *sock, const char *problem)
{
	socket_report(sock, problem);
	/* After a break, another address may be better. */
	if (sock->state == SOCKET_OPEN)
		route_skip(&sock->route);
	socket_close(sock);
	sock->looked_up_ns = 0; /* too long ago */
	/* Without memory for the timer, the next socket_open() tries again. */
	if (!timer_arm(&sock->timer, backoff_draw(&sock->backoff, 0)))
		sock->state = SOCKET_WAITING;
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *user);

/* Connects to an address, or begins to. The socket of before is closed if that succeeds. -errno. */
static int open_address(struct socket *sock, const struct address *address)
{
	const int on = 1;
	_cleanup_(closep) int fd =
		socket(address->socket.ss_family,
		       sock->ops->type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	sd_event_source *io = NULL;
	bool is_pending = false;
	int r;

	if (fd < 0)
		return -errno;
	/* before it connects: if another one comes meanwhile, it is opened once more */
	if (sock->is_unix && stat(sock->options.endpoint.path, &sock->opened) < 0)
		sock->opened.st_ino = 0;
	if (sock->ops->type == SOCK_STREAM)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(fd, (const struct sockaddr *)&address->socket, address->size) < 0) {
		if (errno != EINPROGRESS)
			return -errno;
		is_pending = true;
	}
	r = sd_event_add_io(sock->event, &io, fd, is_pending ? EPOLLOUT : 0, on_io, sock);
	if (r < 0)
		return r;
	socket_close(sock);
	sock->io = io;
	sock->fd = TAKE_FD(fd);
	sock->state = is_pending ? SOCKET_CONNECTING : SOCKET_OPEN;
	exporter_asks(sock->exporter, is_pending);
	if (!is_pending)
		return 0;
	return timer_arm(&sock->timer, route_connect_ns(&sock->route, sock->options.timeout_ns));
}

/*
 * Opens the next address that can be opened; if there is none, reports that and waits. err: why the
 * last one failed.
 */
static void try_addresses(struct socket *sock, int err)
{
	const struct address *address;

	while ((address = route_try(&sock->route))) {
		err = open_address(sock, address);
		if (!err)
			return;
	}
	socket_fail(sock, strerror(-err));
}

bool socket_open(struct socket *sock)
{
	uint64_t age_ns = timer_now_ns(sock->event) - sock->looked_up_ns;
	int err;

	if (sock->state != SOCKET_CLOSED)
		return sock->state == SOCKET_OPEN;
	route_begin(&sock->route);
	if (!sock->route.has_name || (sock->route.addresses.n && age_ns < FRESH_NS)) {
		try_addresses(sock, 0);
		return sock->state == SOCKET_OPEN;
	}
	err = route_look_up(&sock->route);
	if (err)
		socket_fail(sock, strerror(-err));
	else
		sock->state = SOCKET_LOOKING_UP;
	exporter_asks(sock->exporter, !err);
	return false;
}

/* err: of the address that was tried. */
static void connect_again(struct socket *sock, int err)
{
	socket_close(sock);
	try_addresses(sock, -err);
	if (sock->state == SOCKET_OPEN)
		sock->ops->opened(sock);
}

static void on_time(void *user)
{
	struct socket *sock = user;

	if (sock->state == SOCKET_CONNECTING) {
		connect_again(sock, ETIMEDOUT);
	} else if (sock->state == SOCKET_WAITING) {
		sock->state = SOCKET_CLOSED;
		if (socket_open(sock))
			sock->ops->opened(sock);
	}
}

static void on_connected(struct socket *sock)
{
	int err = socket_error(sock);

	if (err) {
		connect_again(sock, err);
		return;
	}
	timer_disarm(&sock->timer);
	sock->state = SOCKET_OPEN;
	exporter_asks(sock->exporter, false);
	socket_watch(sock, 0);
	sock->ops->opened(sock);
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *user)
{
	struct socket *sock = user;

	if (sock->state == SOCKET_CONNECTING)
		on_connected(sock);
	else
		sock->ops->ready(sock, revents);
	return 0;
}

bool socket_is_replaced(const struct socket *sock)
{
	const char *path = sock->options.endpoint.path;
	struct stat now;

	if (sock->state != SOCKET_OPEN || path[0] != '/')
		return false;
	if (stat(path, &now) < 0)
		return errno == ENOENT;
	return now.st_ino != sock->opened.st_ino || now.st_dev != sock->opened.st_dev;
}

bool socket_try_next_address(struct socket *sock)
{
	unsigned int old = sock->route.current;

	for (unsigned int i = 1; i < sock->route.addresses.n; i++) {
		route_skip(&sock->route);
		if (!open_address(sock, &sock->route.addresses.items[sock->route.current]))
			return true;
	}
	sock->route.current = old;
	return false;
}

/* Names */

static void on_resolve_time(void *user)
{
	struct socket *sock = user;

	/* Without a thread now, the next error asks again. */
	(void)route_look_up(&sock->route);
}

static void on_looked_up(void *user, const char *problem, bool has_moved)
{
	struct socket *sock = user;

	sock->looked_up_ns = timer_now_ns(sock->event);
	if (sock->options.resolve_every_ns)
		(void)timer_arm(&sock->resolve, sock->options.resolve_every_ns);
	if (sock->state != SOCKET_LOOKING_UP && (sock->state != SOCKET_OPEN || !has_moved))
		return;
	route_begin(&sock->route);
	/* Old addresses are better than none. */
	if (sock->route.addresses.n)
		connect_again(sock, 0);
	else
		socket_fail(sock, problem);
}

void socket_look_up_again(struct socket *sock)
{
	uint64_t now_ns = timer_now_ns(sock->event);

	if (!sock->route.has_name || now_ns - sock->looked_up_ns < sock->options.retry.max_ns)
		return;
	sock->looked_up_ns = now_ns;
	(void)route_look_up(&sock->route);
}

/* The rest */

int socket_error(const struct socket *sock)
{
	int err = 0;
	socklen_t size = sizeof(err);

	(void)getsockopt(sock->fd, SOL_SOCKET, SO_ERROR, &err, &size);
	return err;
}

void socket_watch(struct socket *sock, int events)
{
	if (!sock->io)
		return;
	(void)sd_event_source_set_enabled(sock->io,
					  events == SOCKET_IGNORE ? SD_EVENT_OFF : SD_EVENT_ON);
	(void)sd_event_source_set_io_events(sock->io, events & (EPOLLIN | EPOLLOUT));
}

int socket_new(const struct socket_ops *ops, struct exporter *exporter,
	       const struct sender_options *options, struct socket **ret_sock)
{
	struct socket *sock = calloc(1, ops->size_bytes);

	if (!sock)
		return -ENOMEM;
	*sock = (struct socket){ .event = exporter->context->event, .exporter = exporter,
				 .queue = &exporter->queue,
				 .options = *options, .ops = ops, .fd = -1,
				 .backoff = options->retry, .is_unix = options->endpoint.path[0] };
	queue_init(sock->queue, SIZE_MAX, exporter->context->queue_budget);
	sock->work = (struct timer){ sock->event, ops->expired, sock, NULL };
	sock->timer = (struct timer){ sock->event, on_time, sock, NULL };
	sock->resolve = (struct timer){ sock->event, on_resolve_time, sock, NULL };
	sock->route = (struct route){ .event = sock->event, .endpoint = options->endpoint,
				      .type = ops->type, .looked_up = on_looked_up, .user = sock };
	route_init(&sock->route);
	/* So that the first datagrams need not wait for the name. */
	if (ops->type == SOCK_DGRAM)
		(void)socket_open(sock);
	*ret_sock = sock;
	return 0;
}

int socket_probe(struct socket *sock)
{
	struct exporter_stats *stats = &sock->exporter->stats;
	const char *words = "connected";
	int result = 1;

	if (!socket_open(sock))
		return stats->is_failing ? -ENOTCONN : 0;
	if (sock->ops->probe)
		result = sock->ops->probe(sock, &words);
	if (result > 0)
		snprintf(stats->problem, sizeof(stats->problem), "%s", words);
	return result;
}

struct socket *socket_free(struct socket *sock)
{
	if (!sock)
		return NULL;
	socket_close(sock);
	route_done(&sock->route);
	timer_done(&sock->work);
	timer_done(&sock->timer);
	timer_done(&sock->resolve);
	free(sock);
	return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/status/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/log.h"

#define DIRECTORY "/run/bpfpush"

static int set_address(const char *directory, const char *name, struct sockaddr_un *ret_address)
{
	int size;

	*ret_address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	size = snprintf(ret_address->sun_path, sizeof(ret_address->sun_path), "%.*s/%s",
			(int)strcspn(directory, ":"), directory, name);
	return size < (int)sizeof(ret_address->sun_path) ? 0 : -ENAMETOOLONG;
}

/* -EADDRINUSE: another agent listens. */
static int begin_listening(struct listener *listener, mode_t mode, sd_event *event,
			   sd_event_io_handler_t on_connect, void *user)
{
	struct sockaddr_un *address = &listener->address;

	listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener->fd < 0)
		return -errno;
	if (!connect(listener->fd, (struct sockaddr *)address, sizeof(*address)) || errno == EAGAIN)
		return -EADDRINUSE; /* another agent's */
	(void)unlink(address->sun_path); /* of an agent that was killed */
	if (bind(listener->fd, (struct sockaddr *)address, sizeof(*address)) ||
	    chmod(address->sun_path, mode) || listen(listener->fd, 8))
		return -errno;
	return sd_event_add_io(event, &listener->source, listener->fd, EPOLLIN, on_connect, user);
}

bool listener_open(struct listener *listener, const char *name, mode_t mode, const char *loss,
		   sd_event *event, sd_event_io_handler_t on_connect, void *user)
{
	const char *directory = getenv("RUNTIME_DIRECTORY");
	bool is_wanted = directory && !set_address(directory, name, &listener->address);
	int r = is_wanted ? begin_listening(listener, mode, event, on_connect, user) : 0;

	if (r < 0)
		log_warning("%s: %s; %s", listener->address.sun_path, strerror(-r), loss);
	return r >= 0;
}

void listener_close(struct listener *listener)
{
	if (listener->source)
		(void)unlink(listener->address.sun_path);
	listener->source = sd_event_source_unref(listener->source);
	closep(&listener->fd);
	listener->fd = -1;
}

int socket_connect(const char *name, struct sockaddr_un *ret_address)
{
	const char *directory = getenv("RUNTIME_DIRECTORY") ?: DIRECTORY;
	_cleanup_(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || set_address(directory, name, ret_address))
		return fd < 0 ? -errno : -ENAMETOOLONG;
	/* A service that hangs does not take those who want to connect: they do not wait for it. */
	if (connect(fd, (const struct sockaddr *)ret_address, sizeof(*ret_address)) ||
	    fcntl(fd, F_SETFL, 0))
		return -errno;
	return TAKE_FD(fd);
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The sockets of a running service, in $RUNTIME_DIRECTORY (/run/bpfpush; of several, the first).
 * Root and the service's user may connect, and its group to all but the last.
 */

#include <stdbool.h>
#include <systemd/sd-event.h>
#include <sys/un.h>

#define SOCKET_STATUS	   "status"	 /* the answer is that of page.h */
#define SOCKET_COLLECTIONS "collections" /* each collection, see viewers.h */
/*
 * A process that connects asks for what SIGHUP does. The answer is a character: '0': the service
 * reloads, if the files are still right a moment later; '1': it does not, and its log says why. No
 * answer: it is stopping.
 */
#define SOCKET_RELOAD "reload"

struct listener {
	struct sockaddr_un address;
	int fd; /* -1: none */
	sd_event_source *source;
};

/*
 * on_connect is called with the listening descriptor, and user. mode: of the socket. Without a
 * $RUNTIME_DIRECTORY, nothing is opened. False, after a warning that ends with loss, which says
 * what cannot be done then: the agent goes on without it. listener_close() is safe after that, too,
 * with zeros and an fd of -1.
 */
bool listener_open(struct listener *listener, const char *name, mode_t mode, const char *loss,
		   sd_event *event, sd_event_io_handler_t on_connect, void *user);
void listener_close(struct listener *listener);

/*
 * Connects to one of them. The descriptor, or -errno; -EAGAIN: it does not answer. *ret_address:
 * for messages.
 */
int socket_connect(const char *name, struct sockaddr_un *ret_address);

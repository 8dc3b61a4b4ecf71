/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The part that UDP and TCP share: one connected, non-blocking socket to an endpoint. It looks up
 * the endpoint's name, opens, and opens again after errors, each time after a longer wait
 * (backoff.h). A name may have several addresses: if one refuses, the next is tried, and only after
 * the last one does the socket wait and look the name up again.
 *
 * The socket logs what is wrong with it and sets stats->is_failing, once for each change.
 */

#include <stdbool.h>
#include <stdint.h>

#include "export/transport/backoff.h"
#include "export/transport/endpoint.h"
#include "util/cleanup.h"

struct exporter;
struct socket;

/* The settings of a socket and of the sender that owns it. */
struct sender_options {
	struct endpoint endpoint;
	uint64_t queue_bytes; /* for what waits; over it the oldest is dropped */
	struct backoff retry; /* before the socket is opened again */
	/* UDP: */
	uint64_t burst;		   /* datagrams that leave at once; 0: all of them */
	uint64_t resolve_every_ns; /* an open socket stays only if its address still belongs to the name; 0: no check */
	/* TCP: */
	uint64_t timeout_ns;	   /* for connecting, and without progress before the connection is given up */
	uint64_t confirm_every_ns; /* 0: TCP's acknowledgement is enough, the connection stays */
};

/*
 * Called from the loop, never from within a function below. They may call all functions except
 * socket_free().
 */
struct socket_events {
	void (*opened)(void *user); /* also when it was opened again, perhaps to another address */
	void (*ready)(void *user, uint32_t events);
};

/*
 * type: SOCK_STREAM, SOCK_DGRAM. options are copied; events, exporter and its loop outlive the socket. Nothing is
 * opened yet. -ENOMEM.
 */
int socket_new(struct exporter *exporter, int type, const struct sender_options *options,
	       const struct socket_events *events, void *user, struct socket **ret_sock);
/*
 * true: it is open. false: it is being opened, now or after a wait, and opened() will be called
 * when that succeeds. A socket that waits after an error continues to wait.
 */
bool socket_open(struct socket *sock);
int socket_fd(const struct socket *sock); /* -1: not open */
/* Takes the error that the kernel has noted for it: an errno, or 0. */
int socket_error(const struct socket *sock);
bool socket_is_unix(const struct socket *sock);
/* EPOLLIN, EPOLLOUT for ready(); 0: only errors. */
void socket_watch(struct socket *sock, uint32_t events);
/* ready() is not called, not even for errors, until the next socket_watch(). */
void socket_ignore(struct socket *sock);
/* Closes without a message. The next socket_open() goes to the same address. */
void socket_close(struct socket *sock);
/* Closes, reports, and opens again by itself after a while. */
void socket_fail(struct socket *sock, const char *problem);
/* Logs the problem unless it is the one that was logged last. */
void socket_report(struct socket *sock, const char *problem);
/* Something was delivered: logs that if it failed before, and forgets the problem. */
void socket_report_working(struct socket *sock);
/* Goes on to the next address that can be opened at once. false: there is none, so all stays as it is. */
bool socket_try_next_address(struct socket *sock);
/* The name may have another address by now: looks it up, but not more often than every retry.max_ns. */
void socket_look_up_again(struct socket *sock);
struct socket *socket_free(struct socket *sock);

DEFINE_CLEANUP(struct socket *, socket_free);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One connected, non-blocking socket to an endpoint, and what UDP and TCP share when they send an
 * exporter's queue over it. It looks up the endpoint's name, opens, and opens again after errors,
 * each time after a longer wait (backoff.h). A name may have several addresses: if one refuses, the
 * next is tried, and only after the last one does the socket wait and look the name up again.
 *
 * The socket logs what is wrong with it and sets stats->is_failing, once for each change.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "export/transport/route.h"
#include "export/transport/timer.h"

struct exporter;

/* The settings of a socket and of how it sends. */
struct sender_options {
	struct endpoint endpoint;
	struct backoff retry; /* before the socket is opened again */
	/* UDP: */
	uint64_t burst;		   /* datagrams that leave at once; 0: all of them */
	/* an open socket stays only if its address still belongs to the name; 0: no check */
	uint64_t resolve_every_ns;
	/* TCP: */
	/* for connecting, and without progress before the connection is given up */
	uint64_t timeout_ns;
	uint64_t confirm_every_ns; /* 0: TCP's acknowledgement is enough, the connection stays */
	/* a proxy without a receiver has ended a connection before it is that old */
	uint64_t proof_ns;
};

/*
 * A way to send. sock: a structure of its own, which begins with its struct socket. All but flush
 * and probe are called from the loop, never from within a function below; they may call all
 * functions except socket_free().
 */
struct socket_ops {
	int type; /* SOCK_STREAM, SOCK_DGRAM */
	size_t size_bytes; /* of its structure */
	void (*opened)(void *sock); /* also when it was opened again, perhaps to another address */
	void (*ready)(void *sock, uint32_t events);
	void (*expired)(void *sock); /* the timer for its own work */
	/*
	 * Sends the exporter's queue. UDP: some at once, the rest within window_ns, which may be 0.
	 * TCP: each request is whole lines, and everything waits until it is confirmed; is_last:
	 * nothing more will be put into the queue, so everything is to be confirmed now.
	 */
	void (*flush)(void *sock, bool is_last, uint64_t window_ns);
	/* of an open socket; NULL: that is all one can know */
	int (*probe)(void *sock, const char **ret_words);
};

extern const struct socket_ops tcp_ops, udp_ops;

enum socket_state { SOCKET_CLOSED,
		    SOCKET_LOOKING_UP,
		    SOCKET_CONNECTING,
		    SOCKET_OPEN,
		    SOCKET_WAITING };

/* Ways to send use the members up to is_unix, and read state and fd; the others are socket.c's. */
struct socket {
	struct sd_event *event;
	struct exporter *exporter;
	struct queue *queue; /* the exporter's */
	struct sender_options options;
	struct timer work;
	bool is_unix;

	const struct socket_ops *ops;
	struct route route;
	uint64_t looked_up_ns;

	enum socket_state state;
	int fd;
	struct sd_event_source *io;
	struct timer timer;   /* for connecting and waiting */
	struct timer resolve; /* the next lookup while open */
	struct backoff backoff;
	char problem[256]; /* that was logged last; "": none */
	struct stat opened; /* what the path of a unix socket led to */
};

/*
 * exporter gives the name for the log, counts the points and outlives the socket; options are
 * copied. -ENOMEM. It is not an error if the receiver is not there.
 */
int socket_new(const struct socket_ops *ops, struct exporter *exporter,
	       const struct sender_options *options, struct socket **ret_sock);
/* As exporter_ops.probe(). */
int socket_probe(struct socket *sock);
struct socket *socket_free(struct socket *sock);

/* For ways to send: */

/*
 * true: it is open. false: it is being opened, now or after a wait, and opened() will be called
 * when that succeeds. A socket that waits after an error continues to wait.
 */
bool socket_open(struct socket *sock);
/* Takes the error that the kernel has noted for it: an errno, or 0. */
int socket_error(const struct socket *sock);
/*
 * EPOLLIN, EPOLLOUT for ready(); 0: only errors; or that it is not called at all until the next
 * socket_watch().
 */
#define SOCKET_IGNORE (-1)
void socket_watch(struct socket *sock, int events);
/*
 * Closes without a message. A request that was sent in part ends in a reset. The next socket_open()
 * goes to the same address.
 */
void socket_close(struct socket *sock);
/* Closes, reports, and opens again by itself after a while. */
void socket_fail(struct socket *sock, const char *problem);
/* Logs the problem unless it is the one that was logged last. */
void socket_report(struct socket *sock, const char *problem);
/* Something was delivered: logs that if it failed before, and forgets the problem. */
void socket_report_working(struct socket *sock);
/*
 * A path is a name: does that of an open unix socket lead to another socket now, or to none? The
 * receiver with the old one may never read it again.
 */
bool socket_is_replaced(const struct socket *sock);
/*
 * Goes on to the next address that can be opened at once. false: there is none, so all stays as it
 * is.
 */
bool socket_try_next_address(struct socket *sock);
/*
 * The name may have another address by now: looks it up, but not more often than every
 * retry.max_ns.
 */
void socket_look_up_again(struct socket *sock);

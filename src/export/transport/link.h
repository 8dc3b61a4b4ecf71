/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What datagrams and streams share: one connected, non-blocking socket to an endpoint, which is looked up,
 * opened, and opened again after errors, each time later (backoff.h). A name may have several addresses:
 * one that refuses makes room for the next, and only after the last one does the link wait, and look
 * the name up again.
 *
 * The link tells the log and stats->is_failing what is wrong with it, once for each change.
 */

#include <stdbool.h>
#include <stdint.h>

#include "export/transport/endpoint.h"
#include "util/cleanup.h"

struct sd_event;
struct sd_event_source;
struct exporter;
struct link;

struct link_options {
	struct endpoint endpoint;
	int type;		   /* SOCK_STREAM, SOCK_DGRAM */
	uint64_t resolve_every_ns; /* an open socket stays only if its address is still the name's; 0: is not asked */
	uint64_t timeout_ns;	   /* SOCK_STREAM: of connecting, and of the acknowledgement of what was sent */
	uint64_t retry_initial_ns, retry_max_ns;
};

/* Called from the loop only. */
struct link_events {
	void (*opened)(void *user); /* also anew, to another address */
	void (*ready)(void *user, uint32_t events);
};

/* What is wrong, beside errno and -EAI_*: a number for each kind of trouble, which is logged when it changes. */
enum link_trouble { LINK_REFUSED = 1000,
		    LINK_STALLED,
		    LINK_NOT_CLOSED,
		    LINK_CLOSED };

/* options are copied; events and exporter outlive the link. Nothing is opened yet. -ENOMEM. */
int link_new(struct sd_event *event, const struct link_options *options, const struct link_events *events, void *user,
	     struct exporter *exporter, struct link **ret_link);
/*
 * true: it is open. If not, opening has begun (or is waited for), and opened() will be called when it
 * succeeds. Of a link that is waiting after an error nothing is hastened.
 */
bool link_open(struct link *link);
int link_fd(const struct link *link); /* -1: not open */
/* How many sockets were opened, ever. */
unsigned int link_opened(const struct link *link);
bool link_is_unix(const struct link *link);
/* EPOLLIN, EPOLLOUT for ready(); 0: only errors. The same as before costs nothing. */
void link_watch(struct link *link, uint32_t events);
/* No longer, not even errors, until the next link_watch(). */
void link_ignore(struct link *link);
/* Closes without a complaint. The next link_open() goes to the same address. */
void link_close(struct link *link);
/* Closes, complains, and opens again after a while by itself. trouble: see above. */
void link_fail(struct link *link, int trouble, const char *problem);
/* Complains only. */
void link_complain(struct link *link, int trouble, const char *problem);
/* Goes on to the next address of the name that can be opened at once; if there is none, all stays as it is. */
void link_next(struct link *link);
/* The name may mean another address by now: looks it up, but not more often than every retry_max_ns. */
void link_doubt(struct link *link);
/* Something was delivered: errors of before are forgotten. */
void link_prove(struct link *link);
struct link *link_free(struct link *link);

/* The time of the loop, ns. */
uint64_t link_now(const struct link *link);
typedef int link_timer_fn(struct sd_event_source *source, uint64_t usec, void *user);
/* Calls handler once after delay_ns. *source, the caller's, is made when it is NULL, and keeps its handler. */
int link_arm(struct link *link, struct sd_event_source **source, uint64_t delay_ns, link_timer_fn *handler, void *user);

DEFINE_CLEANUP(struct link *, link_free);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The addresses that lead to an endpoint, and which of them is used: one list, in one order, for
 * all ways to connect. A name is looked up outside the loop, as often as its user asks. The address
 * in use stays so as long as the name has it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "export/transport/lookup.h"

struct sd_event;
struct sd_event_source;

/*
 * Called from the loop after a lookup. problem: why it failed, and the old addresses stay, or NULL.
 * has_moved: the name does not have the current address any more.
 */
typedef void route_fn(void *user, const char *problem, bool has_moved);

/* Its user sets the members up to user before route_init(), and reads the others. */
struct route {
	struct sd_event *event; /* borrowed; outlives the route */
	struct endpoint endpoint;
	int type; /* SOCK_STREAM, SOCK_DGRAM */
	route_fn *looked_up;
	void *user;

	bool has_name; /* to be looked up; else the address is known at once */
	struct addresses addresses;
	unsigned int current; /* of them, in use or to be tried */
	unsigned int n_tried; /* since route_begin() */
	struct sd_event_source *lookup; /* that runs; NULL: none */
};

void route_init(struct route *route);
/* Looks the name up, unless a lookup runs. -errno: it cannot. */
int route_look_up(struct route *route);
/* A new round, in which each address is tried once. */
void route_begin(struct route *route);
/* The next address of this round, which is the current one now. NULL: all were tried. */
const struct address *route_try(struct route *route);
/* The next round begins at the next address. */
void route_skip(struct route *route);
/*
 * How long connecting to one address may take, so that the others have their turn within
 * timeout_ns. 0, as timeout_ns may be: as long as it takes.
 */
uint64_t route_connect_ns(const struct route *route, uint64_t timeout_ns);
/* The current address in words, or the endpoint without one. */
void route_print(const struct route *route, char text[ADDRESS_TEXT_BYTES]);
/* A lookup that runs is given up. */
void route_done(struct route *route);

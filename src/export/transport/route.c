/* SPDX-License-Identifier: Apache-2.0 */
#include "export/transport/route.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "util/duration.h"

#define CONNECT_LEAST_NS   NS_PER_S
#define CONNECT_DEFAULT_NS (10 * NS_PER_S) /* without another limit */

void route_init(struct route *route)
{
	route->has_name = addresses_of(&route->endpoint, route->type, &route->addresses) < 0;
}

/* The name has these addresses now. true: the current one is still among them. */
static bool take_addresses(struct route *route, const struct addresses *addresses)
{
	const struct address old = route->addresses.items[route->current];

	route->addresses = *addresses;
	for (route->current = 0; route->current < addresses->n; route->current++)
		if (addresses->items[route->current].size == old.size &&
		    !memcmp(&addresses->items[route->current].socket, &old.socket, old.size))
			return true;
	route->current = 0;
	return false;
}

static int on_answer(sd_event_source *source, int fd, uint32_t revents, void *user)
{
	struct route *route = user;
	const struct lookup_answer answer = lookup_read(fd);
	bool stays = answer.error || take_addresses(route, &answer.addresses);

	route->lookup = sd_event_source_disable_unref(source);
	route->looked_up(route->user, answer.error ? answer.problem : NULL, !stays);
	return 0;
}

int route_look_up(struct route *route)
{
	int fd, r;

	if (route->lookup)
		return 0;
	fd = lookup_start(&route->endpoint, route->type);
	if (fd < 0)
		return fd;
	r = sd_event_add_io(route->event, &route->lookup, fd, EPOLLIN, on_answer, route);
	if (r < 0)
		close(fd);
	else
		(void)sd_event_source_set_io_fd_own(route->lookup, true);
	return r < 0 ? r : 0;
}

void route_begin(struct route *route)
{
	route->n_tried = 0;
}

const struct address *route_try(struct route *route)
{
	if (route->n_tried >= route->addresses.n)
		return NULL;
	if (route->n_tried++)
		route_skip(route);
	return &route->addresses.items[route->current];
}

void route_skip(struct route *route)
{
	if (route->addresses.n)
		route->current = (route->current + 1) % route->addresses.n;
}

uint64_t route_connect_ns(const struct route *route, uint64_t timeout_ns)
{
	uint64_t share_ns;

	if (route->addresses.n < 2)
		return timeout_ns;
	share_ns = timeout_ns ? timeout_ns / route->addresses.n : CONNECT_DEFAULT_NS;
	if (share_ns < CONNECT_LEAST_NS)
		share_ns = CONNECT_LEAST_NS;
	return timeout_ns && timeout_ns < share_ns ? timeout_ns : share_ns;
}

void route_print(const struct route *route, char text[ADDRESS_TEXT_BYTES])
{
	const struct endpoint *endpoint = &route->endpoint;

	if (endpoint->path[0])
		snprintf(text, ADDRESS_TEXT_BYTES, "unix:%s", endpoint->path);
	else if (route->addresses.n)
		address_print(&route->addresses.items[route->current], text);
	else
		snprintf(text, ADDRESS_TEXT_BYTES, "%.100s", endpoint->host);
}

void route_done(struct route *route)
{
	route->lookup = sd_event_source_disable_unref(route->lookup);
}

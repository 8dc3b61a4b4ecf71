/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where datagrams or a stream go, as an endpoint = of the configuration says it, and the addresses
 * of that, without blocking the loop: a numeric one is known at once, a name is looked up by the C
 * library (hosts file, DNS, whatever nsswitch.conf says) in a thread that lives for one lookup. A
 * lookup that is given up while it runs is left to its thread, which then cleans up.
 */

#include <stdbool.h>
#include <sys/socket.h>

#include "util/cleanup.h"

struct endpoint {
	char host[256];	 /* name or address, without brackets; "" for a unix socket */
	char service[6]; /* the port, decimal */
	char path[108];	 /* of a unix socket; "@NAME" is in the abstract namespace; "" for a host */
};

/*
 * HOST, HOST:PORT, [ADDRESS] or [ADDRESS]:PORT for IPv6, and where allows_unix is set, unix:PATH or
 * unix:@NAME. -EINVAL with *ret_complaint, which follows "path:line: endpoint: ".
 */
int endpoint_parse(const char *text, const char *default_port, bool allows_unix,
		   struct endpoint *ret_endpoint, const char **ret_complaint);

#define ADDRESSES_MAX 16

struct address {
	struct sockaddr_storage socket;
	socklen_t size;
};

struct addresses {
	unsigned int n;
	struct address items[ADDRESSES_MAX]; /* in the order in which to try them */
};

#define ADDRESS_TEXT_BYTES 128

/* Prints an address of IP: "192.0.2.1:8125", "[2001:db8::1]:8125". */
void address_print(const struct address *address, char text[ADDRESS_TEXT_BYTES]);
/*
 * For a unix socket or a numeric host. -EAGAIN: it is a name, to be looked up. type: SOCK_STREAM or
 * SOCK_DGRAM.
 */
int addresses_of(const struct endpoint *endpoint, int type, struct addresses *ret_addresses);

struct lookup_answer {
	struct addresses addresses; /* at least one if error is 0 */
	int error;		    /* 0, or one of getaddrinfo()'s with its words in problem */
	char problem[128];
};

/*
 * endpoint is copied. A descriptor that becomes readable with the answer; closing it gives the
 * lookup up. -ENOMEM and the like: no thread.
 */
int lookup_start(const struct endpoint *endpoint, int type);
struct lookup_answer lookup_read(int fd);

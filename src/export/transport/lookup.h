/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The addresses of an endpoint, without blocking the loop: a numeric one is known at once, a name is looked up
 * by the C library (hosts file, DNS, whatever nsswitch.conf says) in a thread that lives for one
 * lookup. A lookup that is given up while it runs is left to its thread, which then cleans up.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "export/transport/endpoint.h"
#include "util/cleanup.h"

struct sd_event;
struct lookup;

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

/* Of IP: "192.0.2.1:8125", "[2001:db8::1]:8125". */
void address_print(const struct address *address, char text[ADDRESS_TEXT_BYTES]);
bool address_is_equal(const struct address *a, const struct address *b);
/* Of a unix socket and of a numeric host. -EAGAIN: it is a name, to be looked up. type: SOCK_STREAM or SOCK_DGRAM. */
int addresses_of(const struct endpoint *endpoint, int type, struct addresses *ret_addresses);

/* error: 0, or one of getaddrinfo()'s with its words in problem; addresses has at least one if it is 0. */
typedef void lookup_answer_fn(void *user, const struct addresses *addresses, int error, const char *problem);

/*
 * endpoint is copied. answered is called once, from the loop; the lookup is freed after that. 0, or -ENOMEM and the
 * like: no thread.
 */
int lookup_start(struct sd_event *event, const struct endpoint *endpoint, int type, lookup_answer_fn *answered,
		 void *user, struct lookup **ret_lookup);
/* answered is not called any more. */
void lookup_cancel(struct lookup *lookup);

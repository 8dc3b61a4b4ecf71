/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where datagrams or a stream go, as an endpoint = of the configuration says it. */

#include <stdbool.h>
#include <stdint.h>

struct endpoint {
	char host[256];	 /* name or address, without brackets; "" for a unix socket */
	char service[6]; /* the port, decimal */
	char path[108];	 /* of a unix socket; "@NAME" is in the abstract namespace; "" for a host */
};

/*
 * HOST, HOST:PORT, [ADDRESS] or [ADDRESS]:PORT for IPv6, and where allows_unix is set, unix:PATH or unix:@NAME.
 * -EINVAL with *ret_complaint, which follows "path:line: endpoint: ".
 */
int endpoint_parse(const char *text, const char *default_port, bool allows_unix, struct endpoint *ret_endpoint,
		   const char **ret_complaint);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a URL says about the receiver, without connecting to it. http.h says what else uses
 * libcurl.
 */

#include <stdbool.h>

#include "export/transport/lookup.h"

/* Can one post to this URL? If not, *ret_complaint says why. 0, -EINVAL, -ENOMEM. */
int url_check(const char *url, const char **ret_complaint);

/* Is it https? For a URL that url_check() takes. */
bool url_is_encrypted(const char *url);

/* Where a URL leads. All zero for one that url_check() refuses. */
struct url_place {
	bool is_local; /* this machine: localhost, NAME.localhost, 127.0.0.0/8, ::1 */
	bool has_password;
	unsigned int port;
};

struct url_place url_place(const char *url);
/* The host and the port of a URL. false: only libcurl can read the name (IDN). */
bool url_endpoint(const char *url, struct endpoint *ret_endpoint);
/* The URL without user, password and query, which may be secrets, for free(). NULL: no memory. */
char *url_public(const char *url);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a URL says about the receiver, without connecting to it. Only this, http.c and tls.c use
 * libcurl.
 */

#include <stdbool.h>

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
/* The URL without user, password and query, which may be secrets, for free(). NULL: no memory. */
char *url_public(const char *url);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What can be known about a URL without using it. */

#include <stdbool.h>

/* Is it a URL that can be posted to? If not, *ret_complaint says why. 0 or -EINVAL; -ENOMEM. */
int url_check(const char *url, const char **ret_complaint);

/* Where a URL leads. All zero for one that url_check() refuses. */
struct url_place {
	bool is_encrypted;
	bool is_local; /* this machine: localhost and below, 127.0.0.0/8, ::1 */
	bool has_password;
	unsigned int port;
};

struct url_place url_place(const char *url);

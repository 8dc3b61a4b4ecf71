/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which proxy requests go through. */

/*
 * May setting name one? "none", or the URL of a proxy: http, https, socks4, socks4a, socks5,
 * socks5h. If not, *ret_complaint says why. 0 or -EINVAL.
 */
int proxy_check(const char *setting, const char **ret_complaint);
/*
 * The proxy for a URL. setting: as above, or NULL: as libcurl reads the environment (http_proxy or
 * HTTPS_PROXY, all_proxy, NO_PROXY and the like). NULL: none. Borrowed from both.
 */
const char *proxy_for(const char *url, const char *setting);
/* A proxy in words, without its password, for free(). NULL: no memory. */
char *proxy_public(const char *proxy);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The proxy that libcurl would use for a URL, as the environment says: http_proxy or HTTPS_PROXY,
 * all_proxy, NO_PROXY and the like. NULL: none. Borrowed from the environment.
 */
const char *proxy_for(const char *url);

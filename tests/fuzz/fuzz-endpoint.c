/* SPDX-License-Identifier: Apache-2.0 */
/* An endpoint = of the configuration. The first byte says whether it may be a unix socket. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "export/transport/lookup.h"
#include "util/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(freep) char *text = size ? strndup((const char *)data + 1, size - 1) : NULL;
	struct endpoint endpoint;
	const char *complaint = NULL;
	long port;

	if (!text)
		return 0;
	if (endpoint_parse(text, "8125", data[0] & 1, &endpoint, &complaint) < 0) {
		if (!complaint || !*complaint)
			abort();
		return 0;
	}
	port = strtol(endpoint.service, NULL, 10);
	if (endpoint.path[0] ? !(data[0] & 1) || strcmp(text + 5, endpoint.path) || endpoint.host[0] :
			       !strstr(text, endpoint.host) || !endpoint.host[0] || port < 1 || port > 65535 ||
				       endpoint.host[strspn(endpoint.host, "0123456789abcdefghijklmnopqrstuvwxyz"
									   "ABCDEFGHIJKLMNOPQRSTUVWXYZ:%._-")])
		abort();
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receivers tell agents apart by service.instance.id. Two that run with the same one on one machine
 * mix up their series, so each holds an abstract socket with this name, which the kernel frees when
 * the process ends. It is never used to send anything.
 */
#include "agent/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

int agent_claim_instance(const struct agent *agent)
{
	const char *id = resource_find(&agent->options.config->resource, "service.instance.id");
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	_cleanup_(closep) int fd = -1;
	socklen_t size;

	if (!id || strlen(id) > 64)
		return -1;
	size = offsetof(struct sockaddr_un, sun_path) + 1;
	size += (socklen_t)snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "bpfpush/%s", id);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (!bind(fd, (struct sockaddr *)&name, size))
		return TAKE_FD(fd);
	if (errno == EADDRINUSE)
		log_warning("another bpfpush with service.instance.id %s runs on this machine, and receivers mix up the "
			    "series of both; stop one, or set service.instance.id in [resource]",
			    id);
	return -1;
}

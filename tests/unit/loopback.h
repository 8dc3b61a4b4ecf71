/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Some machines that build packages have a network without even this; the whole program is skipped there. */
static inline void need_loopback(void)
{
	struct ifreq request = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int is_up = fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &request) == 0 && request.ifr_flags & IFF_UP;

	if (fd >= 0)
		close(fd);
	if (is_up)
		return;
	puts("skipped: needs the loopback interface, which is down");
	fflush(stdout);
	_exit(77);
}

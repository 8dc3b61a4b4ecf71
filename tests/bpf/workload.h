/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What all workloads need. A workload does what it was told, counts it by itself and prints the figures
 * to be expected as one JSON object. Whatever goes wrong ends it with status 1 and a message: a workload
 * that did less than it says would make a test fail for the wrong reason.
 */

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define workload_check(condition)                                                                  \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition,         \
				strerror(errno));                                                  \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/*
 * Moves this process into the cgroup of this descriptor, which workload_open_cgroup() gave. The one call
 * that is counted there and that the workload did not mean is this write itself: it returns inside.
 */
static inline void workload_enter(int procs)
{
	workload_check(write(procs, "0", 1) == 1);
}

static inline int workload_open_cgroup(const char *procs)
{
	int fd = open(procs, O_WRONLY | O_CLOEXEC);

	workload_check(fd >= 0);
	return fd;
}

/* Until this TCP socket is in the state: what the other side sends may be on its way for a while. */
static inline void workload_wait_state(int fd, int state)
{
	struct tcp_info info;
	socklen_t size;

	do {
		usleep(100);
		size = sizeof(info);
		workload_check(!getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size));
	} while (info.tcpi_state != state);
}

static inline FILE *workload_open_proc(pid_t pid, const char *file)
{
	char path[64];
	FILE *stream;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	stream = fopen(path, "re");
	workload_check(stream);
	return stream;
}

/* A death is told before the last switch. After that, the task has no stack, so it is in no call. */
static inline void workload_wait_last_switch(pid_t pid)
{
	char line[64] = "";

	while (strncmp(line, "-1 ", 3)) {
		FILE *stream = workload_open_proc(pid, "syscall");

		workload_check(fgets(line, sizeof(line), stream));
		fclose(stream);
	}
}

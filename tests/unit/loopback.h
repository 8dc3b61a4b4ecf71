/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Real sockets on the loopback interface, an event loop turned step by step, a hosts file of the test's own. */

#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-event.h>
#include <time.h>
#include <unistd.h>

#include "accounted.h"
#include "export/transport/endpoint.h"

#define MS UINT64_C(1000000) /* in ns */

struct world {
	sd_event *event;
	struct exporter_context context;
	struct exporter exporter;
};

static inline uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline void world_init(struct world *world)
{
	*world = (struct world){ .exporter.name = "test" };
	assert_true(sd_event_new(&world->event) >= 0);
	world->context.event = world->event;
	world->exporter.context = &world->context;
}

static inline void world_done(struct world *world)
{
	sd_event_unref(world->event);
}

static inline void turn(struct world *world)
{
	assert_true(sd_event_run(world->event, 1000) >= 0);
	if (world->exporter.ops)
		assert_accounted(&world->exporter);
}

static inline void run_for(struct world *world, uint64_t ms)
{
	uint64_t end_ns = now_ns() + ms * MS;

	while (now_ns() < end_ns)
		turn(world);
}

/* Turns the loop until the condition holds, which it does within some seconds or the test fails. */
#define RUN_UNTIL(world, condition)                                                 \
	do {                                                                        \
		uint64_t end_ns_ = now_ns() + 10000 * MS;                           \
		while (!(condition)) {                                              \
			if (now_ns() > end_ns_)                                     \
				fail_msg("waited in vain for: %s", #condition);     \
			turn(world);                                                \
		}                                                                   \
	} while (0)

/* A bound socket; port 0: any. IPv6 where host has a colon. */
static inline int bound_socket(int type, const char *host, unsigned int port)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int is_v6 = strchr(host, ':') != NULL, on = 1;
	int fd = socket(is_v6 ? AF_INET6 : AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_ok(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
	assert_int_equal(inet_pton(is_v6 ? AF_INET6 : AF_INET, host, is_v6 ? (void *)&v6.sin6_addr : &v4.sin_addr), 1);
	assert_ok(bind(fd, is_v6 ? (void *)&v6 : &v4, is_v6 ? sizeof(v6) : sizeof(v4)));
	return fd;
}

static inline int listener(const char *host, unsigned int port)
{
	int fd = bound_socket(SOCK_STREAM, host, port);

	assert_ok(listen(fd, 64));
	return fd;
}

static inline unsigned int port_of(int fd)
{
	struct sockaddr_in6 address;
	socklen_t size = sizeof(address);

	assert_ok(getsockname(fd, (struct sockaddr *)&address, &size));
	return ntohs(address.sin6_port); /* where IPv4 has its own, too */
}

/* A port that nobody listens at. */
static inline unsigned int free_port(int type, const char *host)
{
	int fd = bound_socket(type, host, 0);
	unsigned int port = port_of(fd);

	close(fd);
	return port;
}

static inline struct endpoint endpoint_at(const char *host, unsigned int port)
{
	struct endpoint endpoint = { 0 };

	snprintf(endpoint.host, sizeof(endpoint.host), "%s", host);
	snprintf(endpoint.service, sizeof(endpoint.service), "%u", port);
	return endpoint;
}

static inline uint8_t *copy(const char *text)
{
	uint8_t *data = (uint8_t *)strdup(text);

	assert_non_null(data);
	return data;
}

/*
 * A hosts file that only this process sees, where it has the right to mount one. To be called before there are threads;
 * tests that need it begin with needs_hosts().
 */
static char hosts_path[32];

static inline void hosts_write(const char *text)
{
	FILE *file = fopen("/etc/hosts", "we");

	assert_non_null(file);
	fprintf(file, "127.0.0.1 localhost\n%s", text);
	assert_ok(fclose(file));
}

static inline void hosts_begin(void)
{
	char path[sizeof(hosts_path)] = "/tmp/hosts-XXXXXX";
	int fd;

	if (unshare(CLONE_NEWNS) && unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return;
	fd = mkstemp(path);
	if (fd < 0)
		return;
	close(fd);
	if (mount(path, "/etc/hosts", NULL, MS_BIND, NULL))
		unlink(path);
	else
		memcpy(hosts_path, path, sizeof(path));
	if (hosts_path[0])
		hosts_write("");
}

static inline void hosts_end(void)
{
	if (hosts_path[0])
		unlink(hosts_path);
}

static inline void needs_hosts(void)
{
	if (hosts_path[0])
		return;
	print_message("needs the right to mount a hosts file of its own\n");
	skip();
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Real sockets on the loopback interface, an event loop that is turned step by step, a sender and its receiver, and
 * a hosts file of the test's own. A test has one of each, which is there before and freed after it (RIG_TEST).
 */

#include "test.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "accounted.h"
#include "export/transport/socket.h"
#include "util/buf.h"

#define MS    UINT64_C(1000000) /* in ns */
#define NEVER (UINT64_C(3600000) * MS)
#define PATIENCE_NS (60000 * MS) /* for what takes no time on a machine that does nothing else */

#define RIG_TEST(function) cmocka_unit_test_setup_teardown(function, rig_setup, rig_teardown)

struct world {
	sd_event *event;
	struct queue_budget budget;
	struct exporter_context context;
	struct exporter exporter;
};

/* Takes one connection after the other, reads each to its end and then closes it, as carbon does. */
struct receiver {
	int listener, fd;
	unsigned int n_accepted, n_ended;
	bool stays_open; /* after the end */
	struct buf text, last; /* of all connections, of the last */
};

extern struct world world;
extern struct receiver receiver;
extern struct socket *tcp, *udp; /* one of the two, or none */
#define flush(sock, is_last, window_ns) (sock)->ops->flush((sock), (is_last), (window_ns))
#define stats (&world.exporter.stats)

int rig_setup(void **state);
int rig_teardown(void **state);

uint64_t now_ns(void);
void turn(void);
/* At least that long, and as many turns: on a busy machine, time may pass without one. */
void run_for(uint64_t ms);

/* Turns the loop until the condition holds, or the test fails. */
#define RUN_UNTIL(condition)                                                    \
	do {                                                                    \
		uint64_t end_ns_ = now_ns() + PATIENCE_NS;                      \
		while (!(condition)) {                                          \
			if (now_ns() > end_ns_)                                 \
				fail_msg("waited in vain for: %s", #condition); \
			turn();                                                 \
		}                                                               \
	} while (0)

/* A bound socket; port 0: any. IPv6 if host has a colon. */
int bound_socket(int type, const char *host, unsigned int port);
int listener(const char *host, unsigned int port);
unsigned int port_of(int fd);
/* A port at which nobody listens. */
unsigned int free_port(int type, const char *host);
struct endpoint endpoint_at(const char *host, unsigned int port);
uint8_t *copy(const char *text);

/*
 * A hosts file that only this process sees, if it has the right to mount one. To be called before there are
 * threads; tests that need it begin with needs_hosts().
 */
void hosts_begin(void);
void hosts_write(const char *text);
void hosts_end(void);
void needs_hosts(void);

void receiver_init(struct receiver *to, const char *host, unsigned int port);
void receiver_hang_up(struct receiver *to);
void receiver_done(struct receiver *to);
bool receiver_accept(struct receiver *to);
/* Reads what is there; the bytes of all connections so far. */
size_t receiver_read(struct receiver *to);
bool is_text(const struct buf *buf, const char *expected);

struct sender_options tcp_options_for(const char *host, unsigned int port);
struct sender_options udp_options_for(struct endpoint endpoint);
void tcp_new(const struct sender_options *options);
void tcp_new_to(const struct receiver *to);
void udp_new(const struct sender_options *options);
void udp_new_to(struct endpoint endpoint);
void put_data(uint8_t *data, size_t size, size_t n_points);
void put(const char *text, size_t n_points);

/* Datagrams that are there; the text of the last one. */
unsigned int drain(int fd, char last[64]);
void receives(int fd, const char *expected);

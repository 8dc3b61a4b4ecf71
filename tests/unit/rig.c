/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <time.h>

#include "loopback.h"

struct world world;
struct receiver receiver;
struct socket *tcp, *udp;

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A test begins with an event loop and nothing on it, and what it leaves is freed. */
int rig_setup(void **state)
{
	need_loopback();
	world = (struct world){ .exporter.name = "test" };
	receiver = (struct receiver){ .listener = -1, .fd = -1 };
	assert_true(sd_event_new(&world.event) >= 0);
	world.context.event = world.event;
	world.budget.limit_bytes = 16 << 20;
	world.context.queue_budget = &world.budget;
	world.exporter.context = &world.context;
	return 0;
}

int rig_teardown(void **state)
{
	tcp = socket_free(tcp);
	udp = socket_free(udp);
	queue_done(&world.exporter.queue);
	receiver_done(&receiver);
	world.event = sd_event_unref(world.event);
	return 0;
}

/* The loop */

void turn(void)
{
	assert_true(sd_event_run(world.event, 1000) >= 0);
	if (world.exporter.ops)
		assert_accounted(&world.exporter);
}

void run_for(uint64_t ms)
{
	uint64_t end_ns = now_ns() + ms * MS;

	for (uint64_t n = 0; n < ms || now_ns() < end_ns; n++)
		turn();
}


int bound_socket(int type, const char *host, unsigned int port)
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

int listener(const char *host, unsigned int port)
{
	int fd = bound_socket(SOCK_STREAM, host, port);

	assert_ok(listen(fd, 64));
	return fd;
}

unsigned int port_of(int fd)
{
	struct sockaddr_in6 address;
	socklen_t size = sizeof(address);

	assert_ok(getsockname(fd, (struct sockaddr *)&address, &size));
	return ntohs(address.sin6_port); /* where IPv4 has its own, too */
}

unsigned int free_port(int type, const char *host)
{
	int fd = bound_socket(type, host, 0);
	unsigned int port = port_of(fd);

	close(fd);
	return port;
}

struct endpoint endpoint_at(const char *host, unsigned int port)
{
	struct endpoint endpoint = { 0 };

	snprintf(endpoint.host, sizeof(endpoint.host), "%s", host);
	snprintf(endpoint.service, sizeof(endpoint.service), "%u", port);
	return endpoint;
}

uint8_t *copy(const char *text)
{
	uint8_t *data = (uint8_t *)strdup(text);

	assert_non_null(data);
	return data;
}

static char hosts_path[32];

void hosts_write(const char *text)
{
	FILE *file = fopen("/etc/hosts", "we");

	assert_non_null(file);
	fprintf(file, "127.0.0.1 localhost\n%s", text);
	assert_ok(fclose(file));
}

void hosts_begin(void)
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

void hosts_end(void)
{
	if (hosts_path[0])
		unlink(hosts_path);
}

void needs_hosts(void)
{
	if (hosts_path[0])
		return;
	print_message("needs the right to mount a hosts file of its own\n");
	skip();
}

/* Receivers */

void receiver_init(struct receiver *to, const char *host, unsigned int port)
{
	*to = (struct receiver){ .listener = listener(host, port), .fd = -1 };
}

void receiver_hang_up(struct receiver *to)
{
	if (to->fd >= 0)
		close(to->fd);
	to->fd = -1;
}

void receiver_done(struct receiver *to)
{
	receiver_hang_up(to);
	if (to->listener >= 0)
		close(to->listener);
	buf_done(&to->text);
	buf_done(&to->last);
}

bool receiver_accept(struct receiver *to)
{
	if (to->fd >= 0)
		return true;
	to->fd = accept4(to->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (to->fd < 0)
		return false;
	to->n_accepted++;
	buf_reset(&to->last);
	return true;
}

size_t receiver_read(struct receiver *to)
{
	static char room[65536];
	ssize_t n;

	while (receiver_accept(to)) {
		n = recv(to->fd, room, sizeof(room), 0);
		if (n < 0 && errno == EAGAIN)
			break;
		if (n > 0) {
			buf_append(&to->text, room, (size_t)n);
			buf_append(&to->last, room, (size_t)n);
			continue;
		}
		to->n_ended += !n;
		if (to->stays_open)
			break;
		receiver_hang_up(to);
	}
	return to->text.size;
}

bool is_text(const struct buf *buf, const char *expected)
{
	return buf->size == strlen(expected) && !memcmp(buf->data, expected, buf->size);
}


/* Senders */

struct sender_options tcp_options_for(const char *host, unsigned int port)
{
	return (struct sender_options){ .endpoint = endpoint_at(host, port),
				     .confirm_every_ns = NEVER,
				     .timeout_ns = 5000 * MS,
				     .retry.initial_ns = 10 * MS,
				     .retry.max_ns = 50 * MS };
}

struct sender_options udp_options_for(struct endpoint endpoint)
{
	return (struct sender_options){ .endpoint = endpoint,
				     .burst = 8,
				     .retry.initial_ns = 10 * MS,
				     .retry.max_ns = 50 * MS };
}

static const struct exporter_ops ops = { .type = "test" };

void tcp_new(const struct sender_options *options)
{
	assert_ok(socket_new(&tcp_ops, &world.exporter, options, &tcp));
	world.exporter.ops = &ops;
}

void tcp_new_to(const struct receiver *to)
{
	const struct sender_options options = tcp_options_for("127.0.0.1", port_of(to->listener));

	tcp_new(&options);
}

void udp_new(const struct sender_options *options)
{
	assert_ok(socket_new(&udp_ops, &world.exporter, options, &udp));
	world.exporter.ops = &ops;
}

void udp_new_to(struct endpoint endpoint)
{
	const struct sender_options options = udp_options_for(endpoint);

	udp_new(&options);
}

void put_data(uint8_t *data, size_t size, size_t n_points)
{
	exporter_account(&world.exporter, POINTS_PUSHED, n_points);
	assert_ok(exporter_enqueue(&world.exporter, data, size, n_points));
	assert_accounted(&world.exporter);
}

void put(const char *text, size_t n_points)
{
	put_data(copy(text), strlen(text), n_points);
}

unsigned int drain(int fd, char last[64])
{
	unsigned int n = 0;
	ssize_t size;

	while ((size = recv(fd, last, 63, MSG_DONTWAIT)) >= 0) {
		last[size] = '\0';
		n++;
	}
	return n;
}

void receives(int fd, const char *expected)
{
	char last[64] = "";

	RUN_UNTIL(drain(fd, last));
	assert_string_equal(last, expected);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * udp SERVER.PROCS CLIENT.PROCS: datagrams between two cgroups over loopback: IPv4, IPv6, and IPv4 through
 * connected IPv6 sockets; of every size from none, peeked at, cut short, put together from pieces, sent and
 * received several a call; refused ones, and reads and writes that are none. Each datagram is answered, so
 * none is lost.
 */
#include "workload.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum family { V4, V6, MAPPED, N_FAMILIES };

enum {
	ROUNDS = 100,
	BATCH = 4,
	CORKED = 9,
	REFUSED = 6,
	SHORT = 100, /* of the buffer that cuts a datagram */
	BUFFER = 65536,
};

enum way { PLAIN, PEEKED, CUT, MEASURED, READ, N_WAYS };

/* By the end that sent or took: a datagram that is cut is taken with fewer bytes. */
struct counts {
	unsigned long sent, sent_datagrams, received, received_datagrams;
};

static char buffer[BUFFER];

static void add_sent(struct counts *counts, ssize_t bytes)
{
	workload_check(bytes >= 0);
	counts->sent += (unsigned long)bytes;
	counts->sent_datagrams++;
}

static void add_received(struct counts *counts, ssize_t bytes)
{
	workload_check(bytes >= 0);
	counts->received += (unsigned long)bytes;
	counts->received_datagrams++;
}

static struct sockaddr_storage address_of(enum family family, int port, socklen_t *ret_size)
{
	struct sockaddr_storage storage = { 0 };
	struct sockaddr_in *v4 = (struct sockaddr_in *)&storage;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&storage;

	if (family == V4) {
		*v4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port) };
		v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		*ret_size = sizeof(*v4);
		return storage;
	}
	*v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(port) };
	workload_check(inet_pton(AF_INET6, family == V6 ? "::1" : "::ffff:127.0.0.1", &v6->sin6_addr) == 1);
	*ret_size = sizeof(*v6);
	return storage;
}

static int new_socket(enum family family, int *ret_port)
{
	int fd = socket(family == V4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), off = 0;
	socklen_t size;
	struct sockaddr_storage address = address_of(family, 0, &size);

	workload_check(fd >= 0);
	if (family != V4)
		workload_check(!setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)));
	workload_check(!bind(fd, (struct sockaddr *)&address, size));
	workload_check(!getsockname(fd, (struct sockaddr *)&address, &size));
	*ret_port = ntohs(((struct sockaddr_in *)&address)->sin_port); /* at the same place in both */
	return fd;
}

static void connect_to(int fd, enum family family, int port)
{
	socklen_t size;
	struct sockaddr_storage address = address_of(family, port, &size);

	workload_check(!connect(fd, (struct sockaddr *)&address, size));
}

static size_t size_of(int i)
{
	return (size_t)i * 37 % 1400; /* the first is empty */
}

static ssize_t take(int fd, int i)
{
	switch ((enum way)(i % N_WAYS)) {
	case PEEKED:
		workload_check(recv(fd, buffer, BUFFER, MSG_PEEK) >= 0);
		workload_check(recv(fd, buffer, 1, MSG_PEEK | MSG_TRUNC) >= 0);
		break;
	case CUT:
		return recv(fd, buffer, SHORT, 0);
	case MEASURED: /* gives the datagram's size, whatever fits */
		return recv(fd, buffer, SHORT, MSG_TRUNC);
	case READ:
		return readv(fd, &(struct iovec){ buffer, BUFFER }, 1);
	default:
		break;
	}
	return recv(fd, buffer, BUFFER, 0);
}

static void make_batch(struct mmsghdr *batch, struct iovec *pieces)
{
	for (int i = 0; i < BATCH; i++) {
		pieces[i] = (struct iovec){ buffer + i * 2000, 10u + (size_t)i };
		batch[i] = (struct mmsghdr){ .msg_hdr = { .msg_iov = &pieces[i], .msg_iovlen = 1 } };
	}
}

static void send_batch(int fd, struct counts *counts)
{
	struct mmsghdr batch[BATCH];
	struct iovec pieces[BATCH];

	make_batch(batch, pieces);
	workload_check(sendmmsg(fd, batch, BATCH, 0) == BATCH);
	for (int i = 0; i < BATCH; i++)
		add_sent(counts, batch[i].msg_len);
}

static void receive_batch(int fd, struct counts *counts)
{
	struct mmsghdr batch[BATCH];
	struct iovec pieces[BATCH];

	make_batch(batch, pieces);
	workload_check(recvmmsg(fd, batch, BATCH, 0, NULL) == BATCH);
	for (int i = 0; i < BATCH; i++)
		add_received(counts, batch[i].msg_len);
}

/* One datagram of three pieces. */
static void send_corked(int fd, struct counts *counts)
{
	workload_check(send(fd, buffer, 100, MSG_MORE) == 100);
	workload_check(send(fd, buffer, 50, MSG_MORE) == 50);
	workload_check(send(fd, buffer, 0, 0) == 0);
	add_sent(counts, 150);
}

static void serve(int fd, struct counts *counts)
{
	for (int i = 0; i < ROUNDS; i++) {
		add_received(counts, take(fd, i));
		add_sent(counts, write(fd, buffer, size_of(i + 1)));
	}
	receive_batch(fd, counts);
	for (int i = 0; i < CORKED; i++)
		add_received(counts, recv(fd, buffer, BUFFER, 0));
	add_sent(counts, send(fd, buffer, 1, 0));
	/* No datagram: there is none, and there will be none. */
	workload_check(recv(fd, buffer, BUFFER, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	workload_check(!shutdown(fd, SHUT_RD) && recv(fd, buffer, BUFFER, 0) == 0);
}

static void request(int fd, struct counts *counts)
{
	for (int i = 0; i < ROUNDS; i++) {
		add_sent(counts, send(fd, buffer, size_of(i), 0));
		add_received(counts, take(fd, i));
	}
	send_batch(fd, counts);
	for (int i = 0; i < CORKED; i++)
		send_corked(fd, counts);
	add_received(counts, recv(fd, buffer, BUFFER, 0));
}

/* What is refused was sent; what the refusal makes of the next call is no datagram, nor is its echo. */
static void be_refused(enum family family, struct counts *counts)
{
	int on = 1, port, closed, fd = new_socket(family, &port);
	struct iovec piece = { buffer, BUFFER };
	char control[512];
	struct msghdr echo = { .msg_iov = &piece, .msg_iovlen = 1 };

	closed = new_socket(family, &port);
	close(closed);
	connect_to(fd, family, port);
	for (int i = 0; i < REFUSED; i++) {
		add_sent(counts, send(fd, buffer, 20, 0));
		workload_check(send(fd, buffer, 20, 0) < 0 && errno == ECONNREFUSED);
	}
	workload_check(!setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof(on)) || family != V4);
	workload_check(!setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof(on)) || family == V4);
	add_sent(counts, send(fd, buffer, 20, 0));
	workload_check(recv(fd, buffer, BUFFER, 0) < 0 && errno == ECONNREFUSED);
	echo.msg_control = control;
	echo.msg_controllen = sizeof(control);
	workload_check(recvmsg(fd, &echo, MSG_ERRQUEUE) == 20);
	close(fd);
}

/* Datagrams, but not UDP's. */
static void talk_locally(void)
{
	int pair[2];

	workload_check(!socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
	workload_check(send(pair[0], buffer, 5000, 0) == 5000 && recv(pair[1], buffer, BUFFER, 0) == 5000);
	close(pair[0]);
	close(pair[1]);
}

static void print_counts(const struct counts *client, const struct counts *server)
{
	static const char *const ends[] = { "client", "server" };
	const struct counts *const counts[] = { client, server };
	const char *between = "{";

	for (int end = 0; end < 2; end++)
		for (int type = 0; type < 2; type++) {
			struct counts sum = { 0 };

			for (enum family family = 0; family < N_FAMILIES; family++) {
				if ((family == V6) != type)
					continue;
				sum.sent += counts[end][family].sent;
				sum.sent_datagrams += counts[end][family].sent_datagrams;
				sum.received += counts[end][family].received;
				sum.received_datagrams += counts[end][family].received_datagrams;
			}
			printf("%s\"%s_%s\": {\"transmit\": %lu, \"transmit_datagrams\": %lu, "
			       "\"receive\": %lu, \"receive_datagrams\": %lu}",
			       between, ends[end], type ? "ipv6" : "ipv4", sum.sent, sum.sent_datagrams,
			       sum.received, sum.received_datagrams);
			between = ", ";
		}
	printf(", \"pid\": %d}\n", getpid());
}

static struct counts run_server(enum family family, int in, int out, int procs)
{
	struct counts counts = { 0 };
	int port, fd;

	workload_enter(procs);
	fd = new_socket(family, &port);
	workload_check(write(out, &port, sizeof(port)) == sizeof(port));
	workload_check(read(in, &port, sizeof(port)) == sizeof(port));
	connect_to(fd, family, port);
	workload_check(write(out, &port, sizeof(port)) == sizeof(port));
	serve(fd, &counts);
	return counts;
}

int main(int argc, char **argv)
{
	struct counts client[N_FAMILIES] = { 0 }, server[N_FAMILIES] = { 0 };
	int server_procs, client_procs;

	workload_check(argc == 3);
	server_procs = workload_open_cgroup(argv[1]);
	client_procs = workload_open_cgroup(argv[2]);
	for (enum family family = 0; family < N_FAMILIES; family++) {
		int up[2], down[2], port, fd, status, server_port;
		pid_t pid;

		workload_check(!pipe(up) && !pipe(down) && (pid = fork()) >= 0);
		if (!pid) {
			server[family] = run_server(family, down[0], up[1], server_procs);
			workload_check(write(up[1], &server[family], sizeof(*server)) == sizeof(*server));
			return 0;
		}
		workload_enter(client_procs);
		fd = new_socket(family, &port);
		workload_check(read(up[0], &server_port, sizeof(port)) == sizeof(port));
		connect_to(fd, family, server_port);
		workload_check(write(down[1], &port, sizeof(port)) == sizeof(port));
		workload_check(read(up[0], &server_port, sizeof(port)) == sizeof(port));
		request(fd, &client[family]);
		workload_check(read(up[0], &server[family], sizeof(*server)) == sizeof(*server));
		workload_check(waitpid(pid, &status, 0) == pid && !status);
		be_refused(family, &client[family]);
		talk_locally();
	}
	print_counts(client, server);
	return 0;
}

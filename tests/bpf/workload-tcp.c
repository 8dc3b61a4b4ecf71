/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp exchange SERVER.PROCS CLIENT.PROCS: connections between two cgroups over loopback: IPv4, IPv6, and
 *     IPv4 through IPv6 sockets; peeked at, read in small pieces, half closed, reset, left unread; and refused
 *     ones. Counted is what was handed over.
 * tcp odd SERVER.PROCS CLIENT.PROCS: connections without a free port, and given up before an answer.
 * tcp loss SERVER.PROCS CLIENT.PROCS: in a network namespace of its own, some segments are lost and sent
 *     again, and some connections bring data in their SYN. Says what the namespace itself counted.
 * tcp hold SERVER.PROCS CLIENT.PROCS DONE: one connection of each family, used; "ready" is printed; on
 *     SIGUSR1 used again and the file DONE made; on SIGTERM closed.
 * tcp states SERVER.PROCS CLIENT.PROCS DONE: listening sockets and connections in known states; the file
 *     DONE is made when they are; kept until SIGTERM.
 * tcp apart SERVER.PROCS CLIENT.PROCS DONE: the same in a network namespace of its own.
 */
#include "workload.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

enum family { V4, V6, MAPPED, N_FAMILIES };

static const char *const family_types[] = { "ipv4", "ipv6", "ipv4" };

enum {
	CONNECTIONS = 60,
	REFUSED = 11,
	PORTLESS = 7,
	GIVEN_UP = 3,
	LOSSES = 3,
	FAST_OPENS = 5,
	UNREAD = 1000,
	PIECE = 700, /* of a read */
	BUFFER = 65536,
};

enum ending { CLIENT_FIRST, SERVER_FIRST, HALF_CLOSE, RESET, LEFT_UNREAD, N_ENDINGS };

/* Of all connections of a family, by the end that sent. */
struct counts {
	unsigned long client_sent, server_sent, connections, refused, portless, given_up;
};

static struct counts counts[N_FAMILIES];
static char buffer[BUFFER];
static int server_procs, client_procs;

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

static int new_socket(enum family family)
{
	int fd = socket(family == V4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), off = 0;

	workload_check(fd >= 0);
	if (family != V4)
		workload_check(!setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)));
	return fd;
}

/* A bound socket and its port; listening where backlog >= 0. */
static int new_port(enum family family, int backlog, int *ret_port)
{
	int fd = new_socket(family);
	socklen_t size;
	struct sockaddr_storage address = address_of(family, 0, &size);

	workload_check(!bind(fd, (struct sockaddr *)&address, size));
	workload_check(backlog < 0 || !listen(fd, backlog));
	workload_check(!getsockname(fd, (struct sockaddr *)&address, &size));
	*ret_port = ntohs(((struct sockaddr_in *)&address)->sin_port); /* at the same place in both */
	return fd;
}

static int connect_to(int fd, enum family family, int port)
{
	socklen_t size;
	struct sockaddr_storage address = address_of(family, port, &size);

	return connect(fd, (struct sockaddr *)&address, size);
}

static void send_all(int fd, size_t size)
{
	while (size) {
		ssize_t n = send(fd, buffer, size < 5000 ? size : 5000, MSG_NOSIGNAL);

		workload_check(n > 0);
		size -= (size_t)n;
	}
}

/* Peeks twice, then takes it in pieces; a read that would wait is tried too. */
static void receive_all(int fd, size_t size)
{
	if (size) {
		workload_check(recv(fd, buffer, PIECE, MSG_PEEK) > 0);
		workload_check(recv(fd, buffer, BUFFER, MSG_PEEK) > 0);
	}
	while (size) {
		ssize_t n = recv(fd, buffer, size < PIECE ? size : PIECE, 0);

		workload_check(n > 0);
		size -= (size_t)n;
	}
}

static void receive_end(int fd)
{
	workload_check(recv(fd, buffer, 1, 0) == 0);
}

static void wait_unread(int fd, int size)
{
	int unread = 0;

	while (unread < size) {
		workload_check(!ioctl(fd, FIONREAD, &unread));
		usleep(100);
	}
}

static size_t request_size(int i)
{
	return 1 + (size_t)i * 937 % 20000;
}

static size_t reply_size(int i)
{
	return (size_t)i * 7919 % 30000; /* the first is empty */
}

static void serve(int fd, int i)
{
	enum ending ending = i % N_ENDINGS;

	receive_all(fd, request_size(i));
	if (ending == HALF_CLOSE)
		receive_end(fd);
	send_all(fd, reply_size(i));
	if (ending == CLIENT_FIRST)
		receive_end(fd);
	if (ending == RESET)
		workload_check(recv(fd, buffer, 1, 0) < 0 && errno == ECONNRESET);
	if (ending == LEFT_UNREAD)
		wait_unread(fd, UNREAD);
	workload_check(!close(fd));
}

static void request(int fd, int i)
{
	struct linger linger = { 1, 0 };
	enum ending ending = i % N_ENDINGS;

	send_all(fd, request_size(i));
	if (ending == HALF_CLOSE)
		workload_check(!shutdown(fd, SHUT_WR));
	receive_all(fd, reply_size(i));
	if (ending == SERVER_FIRST || ending == HALF_CLOSE)
		receive_end(fd);
	if (ending == RESET)
		workload_check(!setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	if (ending == LEFT_UNREAD) {
		send_all(fd, UNREAD);
		workload_check(recv(fd, buffer, 1, 0) < 0 && errno == ECONNRESET);
	}
	workload_check(!close(fd));
}

static void count_exchange(enum family family, int i)
{
	counts[family].connections++;
	counts[family].client_sent += request_size(i) + (i % N_ENDINGS == LEFT_UNREAD ? UNREAD : 0);
	counts[family].server_sent += reply_size(i);
}

/* A child in the server's cgroup that listens and serves n connections; its port. */
static pid_t start_server(enum family family, int n, int *ret_port)
{
	int ports[2], port, listener;
	pid_t pid;

	workload_check(!pipe(ports));
	pid = fork();
	workload_check(pid >= 0);
	if (!pid) {
		workload_enter(server_procs);
		listener = new_port(family, 16, &port);
		workload_check(write(ports[1], &port, sizeof(port)) == sizeof(port));
		for (int i = 0; i < n; i++)
			serve(accept(listener, NULL, NULL), i);
		exit(0);
	}
	workload_check(read(ports[0], ret_port, sizeof(*ret_port)) == sizeof(*ret_port));
	close(ports[0]);
	close(ports[1]);
	return pid;
}

static void wait_for(pid_t pid)
{
	int status;

	workload_check(waitpid(pid, &status, 0) == pid && !status);
}

/* Is there a socket at this port that is neither closed nor in TIME_WAIT (06)? */
static bool is_open(const char *path, int port)
{
	char line[512];
	unsigned int local, remote, state;
	bool is_found = false;
	FILE *f = fopen(path, "re");

	workload_check(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, " %*[^:]: %*[^:]:%x %*[^:]:%x %x", &local, &remote, &state) == 3)
			is_found |= state != 6 && ((int)local == port || (int)remote == port);
	fclose(f);
	return is_found;
}

/* The last segments may still be on their way when the last call has returned. */
static void wait_closed(int port)
{
	while (is_open("/proc/self/net/tcp", port) || is_open("/proc/self/net/tcp6", port))
		usleep(1000);
}

static void be_refused(enum family family)
{
	int port, bound = new_port(family, -1, &port);

	for (int i = 0; i < REFUSED; i++) {
		int fd = new_socket(family);

		workload_check(connect_to(fd, family, port) < 0 && errno == ECONNREFUSED);
		workload_check(!close(fd));
		counts[family].refused++;
	}
	workload_check(!close(bound));
}

/* Two connections cannot have the same ends. */
static void be_portless(enum family family)
{
	int on = 1, port, server, listener = new_port(family, 4, &server), first = new_socket(family);
	socklen_t size;
	struct sockaddr_storage address = address_of(family, 0, &size);

	workload_check(!setsockopt(first, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
	workload_check(!bind(first, (struct sockaddr *)&address, size));
	workload_check(!getsockname(first, (struct sockaddr *)&address, &size));
	port = ntohs(((struct sockaddr_in *)&address)->sin_port);
	workload_check(!connect_to(first, family, server));
	address = address_of(family, port, &size);
	for (int i = 0; i < PORTLESS; i++) {
		int fd = new_socket(family);

		workload_check(!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
		workload_check(!bind(fd, (struct sockaddr *)&address, size));
		workload_check(connect_to(fd, family, server) < 0 && errno == EADDRNOTAVAIL);
		workload_check(!close(fd));
		counts[family].portless++;
	}
	workload_check(!close(accept(listener, NULL, NULL)) && !close(first) && !close(listener));
}

static void attach_drop(int fd)
{
	struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = { 1, &drop };

	workload_check(!setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)));
}

/* Once it has dropped something, which then is sent again. */
static void detach_drop(int fd)
{
	__u32 figures[SK_MEMINFO_VARS] = { 0 };
	socklen_t size = sizeof(figures);

	while (!figures[SK_MEMINFO_DROPS])
		workload_check(!usleep(1000) && !getsockopt(fd, SOL_SOCKET, SO_MEMINFO, figures, &size));
	workload_check(!setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &(int){ 0 }, sizeof(int)));
}

static int begin_connect(enum family family, int port)
{
	int fd = new_socket(family);

	attach_drop(fd);
	workload_check(!ioctl(fd, FIONBIO, &(int){ 1 }));
	workload_check(connect_to(fd, family, port) < 0 && errno == EINPROGRESS);
	return fd;
}

/* Closed before there was an answer: the answer is dropped at the socket's door. */
static void give_up(enum family family)
{
	int port, listener = new_port(family, 16, &port);

	for (int i = 0; i < GIVEN_UP; i++) {
		workload_check(!close(begin_connect(family, port)));
		counts[family].given_up++;
	}
	workload_check(!close(listener));
}

/* Ends in the server's cgroup and the client's. */
static void print_counts(const char *more)
{
	const char *between = "{";

	for (int type = 0; type < 2; type++) {
		struct counts sum = { 0 };

		for (int i = 0; i < N_FAMILIES; i++) {
			unsigned long *to = (unsigned long *)&sum, *from = (unsigned long *)&counts[i];

			for (size_t j = 0; j < sizeof(sum) / sizeof(*to) && (i == V6) == type; j++)
				to[j] += from[j];
		}
		printf("%s\"%s\": {\"client_sent\": %lu, \"server_sent\": %lu, \"connections\": %lu, "
		       "\"ECONNREFUSED\": %lu, \"EADDRNOTAVAIL\": %lu, \"ECANCELED\": %lu}",
		       between, family_types[type], sum.client_sent, sum.server_sent, sum.connections,
		       sum.refused, sum.portless, sum.given_up);
		between = ", ";
	}
	printf(", \"pid\": %d%s}\n", getpid(), more);
}

static void exchange(void)
{
	for (enum family family = 0; family < N_FAMILIES; family++) {
		int port;
		pid_t server = start_server(family, CONNECTIONS, &port);

		if (!family)
			workload_enter(client_procs);
		for (int i = 0; i < CONNECTIONS; i++) {
			int fd = new_socket(family);

			workload_check(!connect_to(fd, family, port));
			request(fd, i);
			count_exchange(family, i);
		}
		wait_for(server);
		wait_closed(port);
		be_refused(family);
	}
	print_counts("");
}

/* Connections whose ends are both the client's, for what a namespace counts as a whole. */
static void odd(void)
{
	workload_enter(client_procs);
	for (enum family family = 0; family < N_FAMILIES; family++) {
		be_portless(family);
		give_up(family);
		counts[family].connections++;
	}
	print_counts("");
}

static void own_namespace(void)
{
	struct ifreq interface = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd, fast_open;

	workload_check(!unshare(CLONE_NEWNET));
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	workload_check(fd >= 0 && !ioctl(fd, SIOCSIFFLAGS, &interface));
	close(fd);
	/* Data in the SYN, on both sides, without a cookie, for every listener. */
	fast_open = open("/proc/sys/net/ipv4/tcp_fastopen", O_WRONLY | O_CLOEXEC);
	workload_check(fast_open >= 0 && write(fast_open, "1543", 4) == 4);
	close(fast_open);
}

/* A line of names, then a line of numbers, for each protocol. */
static unsigned long namespace_retransmits(void)
{
	static char names[4096], values[4096];
	FILE *f = fopen("/proc/self/net/snmp", "re");
	char *name, *value, *name_rest, *value_rest;

	workload_check(f);
	while (fgets(names, sizeof(names), f) && fgets(values, sizeof(values), f)) {
		name_rest = names;
		value_rest = values;
		while (!strncmp(names, "Tcp:", 4) && (name = strsep(&name_rest, " \n"))) {
			value = strsep(&value_rest, " \n");
			if (!strcmp(name, "RetransSegs"))
				return strtoul(value, NULL, 10);
		}
	}
	workload_check(!"RetransSegs");
	return 0;
}

/* The first answer to the SYN is dropped, then the first of what the client sends, at the server's door. */
static void lose_some(enum family family, int i)
{
	int port, listener = new_port(family, 4, &port), client = begin_connect(family, port), server;

	detach_drop(client);
	workload_check(poll(&(struct pollfd){ client, POLLOUT, 0 }, 1, -1) == 1);
	workload_check(!ioctl(client, FIONBIO, &(int){ 0 }));
	server = accept(listener, NULL, NULL);
	attach_drop(server);
	send_all(client, request_size(i));
	detach_drop(server);
	receive_all(server, request_size(i));
	send_all(server, reply_size(i));
	receive_all(client, reply_size(i));
	workload_check(!close(client) && !close(listener));
	receive_end(server);
	workload_check(!close(server));
	count_exchange(family, i);
}

static void open_fast(enum family family, int i)
{
	int port, listener = new_port(family, 4, &port), client = new_socket(family), on = 5, server;
	socklen_t size;
	struct sockaddr_storage address = address_of(family, port, &size);
	struct tcp_info info;

	workload_check(!setsockopt(listener, IPPROTO_TCP, TCP_FASTOPEN, &on, sizeof(on)));
	workload_check(sendto(client, buffer, 500, MSG_FASTOPEN, (struct sockaddr *)&address, size) == 500);
	send_all(client, request_size(i));
	server = accept(listener, NULL, NULL);
	receive_all(server, 500 + request_size(i));
	size = sizeof(info);
	workload_check(!getsockopt(client, IPPROTO_TCP, TCP_INFO, &info, &size));
	workload_check(info.tcpi_options & TCPI_OPT_SYN_DATA);
	workload_check(!close(client));
	receive_end(server);
	workload_check(!close(server) && !close(listener));
	counts[family].connections++;
	counts[family].client_sent += 500 + request_size(i);
}

static void loss(void)
{
	char more[64];

	own_namespace();
	workload_enter(client_procs);
	for (enum family family = 0; family < N_FAMILIES; family++) {
		lose_some(family, N_ENDINGS + (int)family);
		for (int i = 0; i < FAST_OPENS; i++)
			open_fast(family, i);
	}
	snprintf(more, sizeof(more), ", \"retransmits\": %lu", namespace_retransmits());
	print_counts(more);
}

static void touch(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	workload_check(fd >= 0 && !close(fd));
}

static void block_signals(sigset_t *ret_set)
{
	sigemptyset(ret_set);
	sigaddset(ret_set, SIGUSR1);
	sigaddset(ret_set, SIGTERM);
	workload_check(!sigprocmask(SIG_BLOCK, ret_set, NULL));
}

static void pair_up(enum family family, int *ret_client, int *ret_server)
{
	int port, listener;

	workload_enter(server_procs);
	listener = new_port(family, 16, &port);
	workload_enter(client_procs);
	*ret_client = new_socket(family);
	workload_check(!connect_to(*ret_client, family, port));
	*ret_server = accept(listener, NULL, NULL);
	workload_check(*ret_server >= 0 && !close(listener));
}

static void hold(const char *done)
{
	int clients[N_FAMILIES], servers[N_FAMILIES], signal = 0;
	sigset_t set;

	block_signals(&set);
	for (enum family family = 0; family < N_FAMILIES; family++) {
		pair_up(family, &clients[family], &servers[family]);
		send_all(clients[family], 1234);
		receive_all(servers[family], 1234);
	}
	printf("ready\n");
	fflush(stdout);
	while (!sigwait(&set, &signal) && signal == SIGUSR1) {
		for (enum family family = 0; family < N_FAMILIES; family++) {
			send_all(clients[family], request_size(family));
			receive_all(servers[family], request_size(family));
			send_all(servers[family], 4000);
			receive_all(clients[family], 4000);
			counts[family].client_sent += request_size(family);
			counts[family].server_sent += 4000;
		}
		print_counts("");
		fflush(stdout);
		touch(done);
	}
}

/*
 * Each family: 3 listening, 3 established pairs, 1 not yet accepted, 1 whose client is closed but unheard, 1 pair
 * half closed, 2 half open, 2 in TIME_WAIT.
 */
static void states(const char *done)
{
	int client, server, port, waiting, signal;
	sigset_t set;

	block_signals(&set);
	for (enum family family = 0; family < N_FAMILIES; family++) {
		workload_enter(server_procs);
		new_port(family, 16, &port);
		new_port(family, 16, &port);
		new_port(family, 16, &waiting);
		workload_enter(client_procs);
		workload_check(!connect_to(new_socket(family), family, waiting));
		begin_connect(family, port);
		begin_connect(family, port);
		for (int i = 0; i < 3; i++)
			pair_up(family, &client, &server);
		pair_up(family, &client, &server);
		workload_check(!shutdown(client, SHUT_WR));
		receive_end(server);
		workload_wait_state(client, TCP_FIN_WAIT2);
		pair_up(family, &client, &server);
		attach_drop(server);
		workload_check(!close(client));
		for (int i = 0; i < 2; i++) {
			pair_up(family, &client, &server);
			close(client);
			receive_end(server);
			workload_check(!shutdown(server, SHUT_WR));
			workload_wait_state(server, TCP_CLOSE);
			close(server);
		}
	}
	touch(done);
	workload_check(!sigwait(&set, &signal));
}

int main(int argc, char **argv)
{
	workload_check(argc >= 4);
	server_procs = workload_open_cgroup(argv[2]);
	client_procs = workload_open_cgroup(argv[3]);
	if (!strcmp(argv[1], "exchange"))
		exchange();
	else if (!strcmp(argv[1], "odd"))
		odd();
	else if (!strcmp(argv[1], "loss"))
		loss();
	else if (!strcmp(argv[1], "hold") && argc == 5)
		hold(argv[4]);
	else if (!strcmp(argv[1], "states") && argc == 5)
		states(argv[4]);
	else if (!strcmp(argv[1], "apart") && argc == 5)
		own_namespace(), states(argv[4]);
	else
		workload_check(!"a known first argument");
	return 0;
}

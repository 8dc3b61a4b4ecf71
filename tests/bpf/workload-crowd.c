/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crowd SERVER.PROCS CLIENT.PROCS AGENT: processes that each have hundreds of TCP connections at a time, whose
 *     listeners are made in the one cgroup and whose clients in the other. Each connection is used and closed at
 *     once. Meanwhile another process runs the walk over sockets of the process AGENT again and again.
 */
#include "workload.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum {
	PROCESSES = 2,
	CROWDS = 12,
	CROWD = 300,
	MESSAGE = 3000,
};

static int server_procs, client_procs;

static int start_listening(struct sockaddr_in *address)
{
	socklen_t size = sizeof(*address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	workload_check(fd >= 0 && !bind(fd, (struct sockaddr *)address, size) && !listen(fd, 16));
	workload_check(!getsockname(fd, (struct sockaddr *)address, &size));
	return fd;
}

static void use_and_close(int client, int server)
{
	static char message[MESSAGE];

	workload_check(send(client, message, MESSAGE, MSG_NOSIGNAL) == MESSAGE);
	workload_check(recv(server, message, MESSAGE, MSG_WAITALL) == MESSAGE);
	workload_check(!close(client) && !close(server));
}

static void meet(int listener, const struct sockaddr_in *address)
{
	struct linger linger = { 1, 0 }; /* without TIME_WAIT, so that ports do not run out */
	int clients[CROWD], servers[CROWD];

	for (int i = 0; i < CROWD; i++) {
		clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		workload_check(clients[i] >= 0);
		workload_check(!connect(clients[i], (const struct sockaddr *)address, sizeof(*address)));
		servers[i] = accept(listener, NULL, NULL);
		workload_check(servers[i] >= 0);
		workload_check(!setsockopt(clients[i], SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	}
	for (int i = 0; i < CROWD; i++)
		use_and_close(clients[i], servers[i]);
}

static void be_a_crowd(void)
{
	struct sockaddr_in address;
	int listener;

	workload_enter(server_procs);
	listener = start_listening(&address);
	workload_enter(client_procs);
	for (int i = 0; i < CROWDS; i++)
		meet(listener, &address);
	exit(0);
}

/* The walk over sockets that have storage. */
static bool is_walk(int link)
{
	char name[32] = "";
	struct bpf_link_info info = { .iter = { .target_name = (uintptr_t)name, .target_name_len = sizeof(name) } };
	union bpf_attr attributes = { .info = { (unsigned int)link, sizeof(info), (uintptr_t)&info } };

	return !syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attributes, sizeof(attributes)) &&
	       info.type == BPF_LINK_TYPE_ITER && !strcmp(name, "bpf_sk_storage_map");
}

static int find_walk(const char *agent)
{
	int process = (int)syscall(SYS_pidfd_open, strtol(agent, NULL, 10), 0), link;
	struct dirent *entry;
	char path[64];
	DIR *directory;

	snprintf(path, sizeof(path), "/proc/%s/fd", agent);
	directory = opendir(path);
	workload_check(process >= 0 && directory);
	while ((entry = readdir(directory))) {
		link = (int)syscall(SYS_pidfd_getfd, process, strtol(entry->d_name, NULL, 10), 0);
		if (is_walk(link))
			return link;
		close(link);
	}
	workload_check(!"a walk of the agent");
	return -1;
}

static void walk(int link)
{
	union bpf_attr attributes = { .iter_create.link_fd = (unsigned int)link };
	int fd = (int)syscall(SYS_bpf, BPF_ITER_CREATE, &attributes, sizeof(attributes));
	char text[64];

	workload_check(fd >= 0);
	while (read(fd, text, sizeof(text)) > 0)
		;
	close(fd);
}

static pid_t start_walking(const char *agent)
{
	pid_t pid = fork();
	int link;

	workload_check(pid >= 0);
	if (pid)
		return pid;
	link = find_walk(agent);
	for (;;)
		walk(link);
}

int main(int argc, char **argv)
{
	pid_t children[PROCESSES], walker;
	int status;

	workload_check(argc == 4);
	server_procs = workload_open_cgroup(argv[1]);
	client_procs = workload_open_cgroup(argv[2]);
	walker = start_walking(argv[3]);
	for (int i = 0; i < PROCESSES; i++) {
		children[i] = fork();
		workload_check(children[i] >= 0);
		if (!children[i])
			be_a_crowd();
	}
	for (int i = 0; i < PROCESSES; i++)
		workload_check(waitpid(children[i], &status, 0) == children[i] && !status);
	workload_check(!kill(walker, SIGTERM) && waitpid(walker, &status, 0) == walker && WIFSIGNALED(status));
	printf("{\"connections\": %d, \"bytes\": %d}\n", PROCESSES * CROWDS * CROWD, PROCESSES * CROWDS * CROWD * MESSAGE);
	return 0;
}

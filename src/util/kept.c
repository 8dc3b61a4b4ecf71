/* SPDX-License-Identifier: Apache-2.0 */
#include "util/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/time.h>
#include <systemd/sd-daemon.h>

#include "util/array.h"
#include "util/buf.h"

#define FIRST_FD  SD_LISTEN_FDS_START
#define NAME_BYTES 256
#define PATIENCE_S 3 /* for a manager that does not read */

struct item {
	char *name;
	int fd;
	bool is_used;
};

struct kept {
	struct item *items;
	size_t n;
	int manager_fd; /* -1: nobody is told */
	int error;	/* -errno of telling it */
	int probe_fd;	/* the other end of a pipe that only the manager holds, or -1 */
};

socklen_t kept_manager(struct sockaddr_un *ret_address)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t length = path ? strlen(path) : 0;

	if (!length || !strchr("/@", *path) || length >= sizeof(ret_address->sun_path))
		return 0;
	*ret_address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(ret_address->sun_path, path, length);
	if (*path == '@')
		ret_address->sun_path[0] = '\0';
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (*path == '/'));
}

/* Keeps fd itself, and name, which is freed on failure. */
static int add(struct kept *kept, char *name, int fd, bool is_used)
{
	const struct item item = { name, fd, is_used };
	int err = name ? array_append(&kept->items, &kept->n, &item) : -ENOMEM;

	if (err)
		free(name);
	return err;
}

int kept_new(struct kept **ret_kept)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	_cleanup_(kept_freep) struct kept *kept = calloc(1, sizeof(*kept));
	_cleanup_(freep) char **names = NULL;
	struct sockaddr_un address;
	int n, err = 0;

	if (!kept)
		return -ENOMEM;
	kept->probe_fd = -1;
	kept->manager_fd = kept_manager(&address) ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
	(void)setsockopt(kept->manager_fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	n = sd_listen_fds_with_names(true, &names);
	for (int i = 0; i < n; i++)
		err = add(kept, names[i], FIRST_FD + i, false) ?: err;
	if (!err)
		*ret_kept = TAKE_PTR(kept);
	return err;
}

void kept_free(struct kept *kept)
{
	if (!kept)
		return;
	for (size_t i = 0; i < kept->n; i++) {
		close(kept->items[i].fd);
		free(kept->items[i].name);
	}
	free(kept->items);
	closep(&kept->manager_fd);
	closep(&kept->probe_fd);
	free(kept);
}

int kept_find(struct kept *kept, const char *name)
{
	struct item *item = array_find(kept->items, kept->n, name);

	if (!item)
		return -1;
	item->is_used = true;
	return item->fd;
}

int kept_look(const struct kept *kept, const char *name)
{
	const struct item *item = array_find(kept->items, kept->n, name);

	return item ? item->fd : -1;
}

bool kept_has(const struct kept *kept, const char *prefix)
{
	for (size_t i = 0; i < kept->n; i++)
		if (!strncmp(kept->items[i].name, prefix, strlen(prefix)))
			return true;
	return false;
}

/* fd: goes with the message; -1: none. A manager that is not there, or refuses, is none. */
static void tell(struct kept *kept, const char *what, const char *name, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .header = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct sockaddr_un address;
	char text[NAME_BYTES + 64];
	struct iovec part = { text, (size_t)snprintf(text, sizeof(text), "%s\nFDNAME=%s\n", what, name) };
	struct msghdr message = { .msg_name = &address, .msg_namelen = kept_manager(&address), .msg_iov = &part,
				  .msg_iovlen = 1 };

	if (kept->manager_fd < 0 || !message.msg_namelen)
		return;
	if (fd >= 0) {
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
	}
	if (sendmsg(kept->manager_fd, &message, MSG_NOSIGNAL) >= 0)
		return;
	kept->error = -errno;
	if (errno == EAGAIN) {
		close(kept->manager_fd);
		kept->manager_fd = -1;
	}
}

void kept_probe(struct kept *kept)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return;
	tell(kept, "FDSTOREREMOVE=1", "probe", -1); /* of the program before an exec */
	tell(kept, "FDSTORE=1\nFDPOLL=0", "probe", ends[0]);
	close(ends[0]);
	closep(&kept->probe_fd);
	kept->probe_fd = ends[1];
}

bool kept_is_cut(const struct kept *kept)
{
	return kept->manager_fd >= 0 && poll(&(struct pollfd){ .fd = kept->probe_fd }, 1, 0) > 0;
}

int kept_error(const struct kept *kept)
{
	return kept->error;
}

int kept_put(struct kept *kept, const char *name, int fd)
{
	struct item *item = array_find(kept->items, kept->n, name);
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD), err = 0;

	if (copy < 0)
		return -errno;
	if (item) {
		tell(kept, "FDSTOREREMOVE=1", name, -1);
		close(item->fd);
		item->fd = copy;
		item->is_used = true;
	} else {
		err = add(kept, strdup(name), copy, true);
	}
	if (err)
		close(copy);
	else /* that they seem to be broken must not make the manager let maps and links go */
		tell(kept, "FDSTORE=1\nFDPOLL=0", name, copy);
	return err;
}

void kept_drop(struct kept *kept, const char *prefix)
{
	size_t n = 0;

	for (size_t i = 0; i < kept->n; i++) {
		struct item item = kept->items[i];

		if (prefix ? strncmp(item.name, prefix, strlen(prefix)) != 0 : item.is_used) {
			kept->items[n++] = item;
			continue;
		}
		tell(kept, "FDSTOREREMOVE=1", item.name, -1);
		close(item.fd);
		free(item.name);
	}
	array_shrink(&kept->items, kept->n, n, sizeof(*kept->items));
	kept->n = n;
}

/* First out of the way of each other, then in a row from FIRST_FD on. */
static int line_up(struct kept *kept, struct buf *names)
{
	for (size_t i = 0; i < kept->n; i++) {
		int fd = fcntl(kept->items[i].fd, F_DUPFD_CLOEXEC, FIRST_FD + (int)kept->n);

		if (fd < 0)
			return -errno;
		close(kept->items[i].fd);
		kept->items[i].fd = fd;
	}
	for (size_t i = 0; i < kept->n; i++) {
		if (dup2(kept->items[i].fd, FIRST_FD + (int)i) < 0)
			return -errno;
		buf_printf(names, "%s%s", i ? ":" : "", kept->items[i].name);
	}
	return buf_error(names);
}

int kept_exec(struct kept *kept, char *const argv[])
{
	_cleanup_(buf_done) struct buf names = BUF_INIT;
	char pid[16], n[16];
	int err = line_up(kept, &names);

	snprintf(pid, sizeof(pid), "%d", getpid());
	snprintf(n, sizeof(n), "%zu", kept->n);
	if (err || setenv("LISTEN_PID", pid, true) || setenv("LISTEN_FDS", n, true) ||
	    setenv("LISTEN_FDNAMES", buf_text(&names), true))
		return err ?: -ENOMEM;
	execvp(argv[0], argv);
	return -errno;
}

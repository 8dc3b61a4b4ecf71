/* SPDX-License-Identifier: Apache-2.0 */
#include "util/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <systemd/sd-daemon.h>

#include "util/array.h"
#include "util/buf.h"

#define FIRST_FD  SD_LISTEN_FDS_START
#define NAME_BYTES 256
#define PATIENCE_S 3 /* for a manager that does not read */
#define NAMES_BYTES (64 << 10) /* in a variable; Linux has room for 128 KiB (execve(2)) */
#define NAMES_FD   "BPFPUSH_FDNAMES" /* for more names: the descriptor of a file with them */

struct item {
	char *name;
	int fd;
	bool is_used;
};

struct kept {
	struct item *items;
	size_t n;
	int manager_fd; /* -1: there is none */
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
static int add_item(struct kept *kept, char *name, int fd, bool is_used)
{
	const struct item item = { name, fd, is_used };
	int err = name ? array_append(&kept->items, &kept->n, &item) : -ENOMEM;

	if (err)
		free(name);
	return err;
}

/* What kept_exec() has put after all others. */
static int add_from_file(struct kept *kept, int n)
{
	_cleanup_(closep) int fd = FIRST_FD + n;
	_cleanup_(fclosep) FILE *file = fdopen(fd, "re");
	_cleanup_(freep) char *name = NULL;
	size_t size = 0;
	int err = 0;

	fd = file ? -1 : fd;
	for (int i = 0; i < n && !err; i++) {
		ssize_t length = file ? getdelim(&name, &size, ':', file) : -1;

		if (length > 0 && name[length - 1] == ':')
			name[length - 1] = '\0';
		err = add_item(kept, strdup(length < 0 ? "" : name), FIRST_FD + i, false);
	}
	return err;
}

int kept_new(struct kept **ret_kept)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	_cleanup_(kept_freep) struct kept *kept = calloc(1, sizeof(*kept));
	_cleanup_(freep) char **names = NULL;
	struct sockaddr_un address;
	bool has_file;
	int n, err = 0;

	if (!kept)
		return -ENOMEM;
	kept->probe_fd = -1;
	kept->manager_fd = kept_manager(&address) ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) :
			   -1;
	(void)setsockopt(kept->manager_fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	n = sd_listen_fds_with_names(true, &names);
	has_file = n > 0 && getenv(NAMES_FD);
	unsetenv(NAMES_FD);
	for (int i = 0; i < n && !has_file; i++)
		err = add_item(kept, TAKE_PTR(names[i]), FIRST_FD + i, false) ?: err;
	for (int i = 0; i < n; i++)
		free(names[i]);
	err = has_file ? add_from_file(kept, n) : err;
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
static void notify_manager(struct kept *kept, const char *what, const char *name, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .header = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct sockaddr_un address;
	char text[NAME_BYTES + 64];
	struct iovec part = { text, (size_t)snprintf(text, sizeof(text), "%s\nFDNAME=%s\n", what, name) };
	struct msghdr message = { .msg_name = &address, .msg_namelen = kept_manager(&address),
				  .msg_iov = &part, .msg_iovlen = 1 };

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
	notify_manager(kept, "FDSTOREREMOVE=1", "probe", -1); /* of the program before an exec */
	notify_manager(kept, "FDSTORE=1\nFDPOLL=0", "probe", ends[0]);
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
		notify_manager(kept, "FDSTOREREMOVE=1", name, -1);
		close(item->fd);
		item->fd = copy;
		item->is_used = true;
	} else {
		err = add_item(kept, strdup(name), copy, true);
	}
	if (err)
		close(copy);
	else /* that they seem to be broken must not make the manager let maps and links go */
		notify_manager(kept, "FDSTORE=1\nFDPOLL=0", name, copy);
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
		notify_manager(kept, "FDSTOREREMOVE=1", item.name, -1);
		close(item.fd);
		free(item.name);
	}
	array_shrink(&kept->items, kept->n, n, sizeof(*kept->items));
	kept->n = n;
}

/*
 * Of count descriptors from FIRST_FD on: those that are not kept, as duplicates elsewhere; or -1.
 * NULL: no room.
 */
static int *put_away(int count)
{
	int *away = malloc((size_t)count * sizeof(*away));

	for (int i = 0; away && i < count; i++) {
		away[i] = fcntl(FIRST_FD + i, F_DUPFD_CLOEXEC, FIRST_FD + count);
		if (away[i] >= 0 || errno == EBADF)
			continue;
		while (i--)
			closep(&away[i]);
		free(away);
		return NULL;
	}
	return away;
}

/* Out of the way of each other. */
static int move_up(struct kept *kept, int count)
{
	for (size_t i = 0; i < kept->n; i++) {
		int fd = fcntl(kept->items[i].fd, F_DUPFD_CLOEXEC, FIRST_FD + count);

		if (fd < 0)
			return -errno;
		close(kept->items[i].fd);
		kept->items[i].fd = fd;
	}
	return 0;
}

static int make_file(const struct buf *names)
{
	int fd = memfd_create("names", 0);

	if (fd >= 0 && write(fd, names->data, names->size) == (ssize_t)names->size &&
	    !lseek(fd, 0, SEEK_SET))
		return fd;
	closep(&fd);
	return -1;
}

/* In a row from FIRST_FD on, and after them a file with their names, if they are many. */
static int line_up(const struct kept *kept)
{
	_cleanup_(buf_done) struct buf names = BUF_INIT;
	_cleanup_(closep) int file = -1;
	int last = FIRST_FD + (int)kept->n;
	char pid[16], n[16];

	for (size_t i = 0; i < kept->n; i++) {
		if (dup2(kept->items[i].fd, FIRST_FD + (int)i) < 0)
			return -errno;
		buf_printf(&names, "%s%s", i ? ":" : "", kept->items[i].name);
	}
	snprintf(pid, sizeof(pid), "%d", getpid());
	snprintf(n, sizeof(n), "%zu", kept->n);
	if (buf_error(&names) || setenv("LISTEN_PID", pid, true) || setenv("LISTEN_FDS", n, true))
		return -ENOMEM;
	if (names.size < NAMES_BYTES)
		return setenv("LISTEN_FDNAMES", buf_text(&names), true) ? -ENOMEM : 0;
	file = make_file(&names);
	if (file < 0 || dup2(file, last) < 0)
		return -errno;
	file = file == last ? -1 : file;
	return setenv(NAMES_FD, "yes", true) ? -ENOMEM : 0;
}

int kept_exec(struct kept *kept, char *const argv[])
{
	static const char *const variables[] = { "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", NAMES_FD };
	int count = (int)kept->n + 1, err = move_up(kept, count);
	_cleanup_(freep) int *away = err ? NULL : put_away(count);

	for (size_t i = 0; i < kept->n; i++)
		/* if this process goes on, it looks again for what it needs */
		kept->items[i].is_used = false;
	if (!away)
		return err ?: -EMFILE;
	err = line_up(kept);
	if (!err) {
		execvp(argv[0], argv);
		err = -errno;
	}
	for (int i = 0; i < count; i++) /* back again */
		if (away[i] < 0)
			close(FIRST_FD + i);
		else if (dup3(away[i], FIRST_FD + i, O_CLOEXEC) >= 0)
			close(away[i]);
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
		unsetenv(variables[i]);
	return err;
}

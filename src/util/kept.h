/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Descriptors that outlive the process. Each has a name, by which a later process finds it: one
 * that the service manager starts (sd_notify(3), FDSTORE=1; the manager holds a duplicate), or what
 * kept_exec() makes of this one. Without a manager they are kept for kept_exec() only.
 *
 * Names have at most 255 printable ASCII characters, without ":". What is put first is kept first:
 * if the process is killed meanwhile, the last ones are missing.
 */

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "util/cleanup.h"

struct kept;

/*
 * Takes over what this process was given (LISTEN_FDS), and forgets the environment variables of it.
 * -ENOMEM.
 */
int kept_new(struct kept **ret_kept);
/* Closes this process's duplicates. */
void kept_free(struct kept *kept);

/*
 * The descriptor of that name, borrowed until it is dropped, or -1. From then on it counts as used.
 */
int kept_find(struct kept *kept, const char *name);
/* Like kept_find(), but it does not count as used. */
int kept_look(const struct kept *kept, const char *name);
/* Is there one whose name begins with prefix? */
bool kept_has(const struct kept *kept, const char *prefix);
/* Keeps a duplicate of fd, in place of what had this name. -errno of fcntl(); -ENOMEM. */
int kept_put(struct kept *kept, const char *name, int fd);
/*
 * 0, or the -errno because of which the manager does not have all that was put. If it does not
 * read, it is waited for for some seconds, once, and told nothing from then on: -EAGAIN. Then all
 * is kept for kept_exec() only.
 */
int kept_error(const struct kept *kept);
/*
 * After the last kept_put(). Some time later, kept_is_cut() is true if the manager had no room for
 * all.
 */
void kept_probe(struct kept *kept);
bool kept_is_cut(const struct kept *kept);
/* Forgets all whose names begin with prefix; NULL: all that were neither found nor put. */
void kept_drop(struct kept *kept, const char *prefix);
/*
 * Replaces this process by argv[0], which is looked for in PATH, and gives it what is kept. All
 * other descriptors from 3 on must have FD_CLOEXEC. Returns only on failure, with -errno, and then
 * this process can go on.
 */
int kept_exec(struct kept *kept, char *const argv[]);

/*
 * Where the service manager listens (NOTIFY_SOCKET): the length of the address; 0: there is none.
 */
socklen_t kept_manager(struct sockaddr_un *ret_address);

DEFINE_CLEANUP(struct kept *, kept_free);

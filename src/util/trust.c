/* SPDX-License-Identifier: Apache-2.0 */
#include "util/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "util/rights.h"

static bool is_trusted(uid_t user, uid_t owner_of_program)
{
	const char *asker = getenv("SUDO_UID");

	return !user || user == owner_of_program || (asker && strtoul(asker, NULL, 10) == user);
}

void trust_check(int fd, const char *path, struct diag *diag)
{
	struct stat status, program = { 0 };
	mode_t others;

	(void)stat("/proc/self/exe", &program);
	if (fstat(fd, &status) || (geteuid() && status.st_uid == geteuid() && !rights_permitted()))
		return;
	others = status.st_mode & (S_IWGRP | S_IWOTH);
	if (status.st_gid == program.st_gid)
		others &= ~(program.st_mode & S_IWGRP);
	if (!is_trusted(status.st_uid, program.st_uid))
		diag_add(diag, path, 0, "belongs to user %u, who could change what runs in the kernel: as root, run chown root %s",
			 status.st_uid, path);
	else if (others)
		diag_add(diag, path, 0, "can be written by more users than its owner (mode %04o): run chmod go-w %s",
			 status.st_mode & 07777, path);
}

void trust_check_directory(const char *path, struct diag *diag)
{
	_cleanup_(closep) int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		trust_check(fd, path, diag);
}

int trust_open(const char *path, struct diag *diag)
{
	/* O_NONBLOCK: do not wait for the writer of a FIFO that somebody put there. */
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat status;

	if (fd < 0 || fstat(fd, &status))
		return -errno;
	if (!S_ISREG(status.st_mode))
		return S_ISDIR(status.st_mode) ? -EISDIR : -EOPNOTSUPP;
	trust_check(fd, path, diag);
	return TAKE_FD(fd);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "util/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "util/rights.h"

/* Reports an open file or directory that others may write. path: what the message calls it. */
static void check_writers(int fd, const char *path, struct diag *diag)
{
	const char *asker = getenv("SUDO_UID");
	struct stat status, program = { 0 };
	mode_t others;

	(void)stat("/proc/self/exe", &program);
	if (fstat(fd, &status) || (geteuid() && status.st_uid == geteuid() && !rights_permitted()))
		return;
	others = status.st_mode & (S_IWGRP | S_IWOTH);
	if (status.st_gid == program.st_gid)
		others &= ~(program.st_mode & S_IWGRP);
	if (status.st_uid && status.st_uid != program.st_uid &&
	    (!asker || strtoul(asker, NULL, 10) != status.st_uid))
		diag_add(diag, path, 0, "belongs to user %u, who could change what runs in the kernel: as root, run chown root %s",
			 status.st_uid, path);
	else if (others)
		diag_add(diag, path, 0, "can be written by more users than its owner (mode %04o): run chmod go-w %s",
			 status.st_mode & 07777, path);
}

int trust_check_directory(const char *path, struct diag *diag)
{
	_cleanup_(closep) int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	check_writers(fd, path, diag);
	return 0;
}

int trust_open(const char *path, bool is_named, struct diag *diag, FILE **ret_f)
{
	/* O_NONBLOCK: do not wait for the writer of a FIFO that was put there. */
	_cleanup_(closep) int fd =
		open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | (is_named ? 0 : O_NONBLOCK));
	struct stat status;

	if (fd < 0 || fstat(fd, &status))
		return -errno;
	if (S_ISREG(status.st_mode))
		check_writers(fd, path, diag);
	else if (!is_named && !(S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3)))
		return S_ISDIR(status.st_mode) ? -EISDIR : -EOPNOTSUPP;
	*ret_f = fdopen(fd, "r");
	if (!*ret_f)
		return -errno;
	TAKE_FD(fd);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

/* What a file was when it was looked at last, to notice that somebody has written or replaced it. */
struct file_mark {
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec changed;
};

/* Takes a new look; true if the file is another one than at the last. One that is absent has not changed. */
bool file_mark_look(struct file_mark *mark, const char *path);

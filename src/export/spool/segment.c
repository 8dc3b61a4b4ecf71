/* SPDX-License-Identifier: Apache-2.0 */
#include "export/spool/segment.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "export/spool/crc32c.h"
#include "util/array.h"
#include "util/cleanup.h"

#define MAGIC	   0x6c6f6f70u
#define NAME_BYTES 9 /* eight digits */
#define NUMBER_MAX 0xf0000000 /* larger ones are not ours: there must be a next one */

#define MARK_OFFSET offsetof(struct spool_head, mark)

_Static_assert(sizeof(struct spool_head) == 56, "a head on disk has no padding");

/* -errno. flags: O_NOFOLLOW or 0. */
static int open_private(int parent, const char *name, int flags)
{
	_cleanup_(closep) int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
	struct stat status;

	if (fd < 0 || fstat(fd, &status))
		return -errno;
	return status.st_uid == geteuid() && !(status.st_mode & 022) ? TAKE_FD(fd) : -ENOTSUP;
}

static int make_private(int parent, const char *name)
{
	if (mkdirat(parent, name, 0700) && errno != EEXIST)
		return -errno;
	return open_private(parent, name, O_NOFOLLOW);
}

int segment_directory(const char *path, const char *name)
{
	/*
	 * systemd may make a link of the first. In that of another user, root would make what the
	 * user cannot use.
	 */
	_cleanup_(closep) int base = open_private(AT_FDCWD, path, 0);
	_cleanup_(closep) int parent = base < 0 ? base : make_private(base, "spool");
	_cleanup_(closep) int fd = parent < 0 ? parent : make_private(parent, name);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB))
		return -errno;
	return TAKE_FD(fd);
}

static int compare_numbers(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return (a > b) - (a < b);
}

int segments_list(int directory, uint32_t **ret_numbers, size_t *ret_n)
{
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	_cleanup_(freep) uint32_t *numbers = NULL;
	struct dirent *entry;
	size_t n = 0;

	if (!list) {
		closep(&fd);
		return -errno;
	}
	while ((entry = readdir(list))) {
		uint32_t number = (uint32_t)strtoul(entry->d_name, NULL, 16);
		char name[NAME_BYTES];

		snprintf(name, sizeof(name), "%08x", number);
		if (!number || number >= NUMBER_MAX || strcmp(name, entry->d_name))
			continue;
		(void)array_append(&numbers, &n, &number);
	}
	closedir(list);
	if (n)
		qsort(numbers, n, sizeof(*numbers), compare_numbers);
	*ret_numbers = TAKE_PTR(numbers);
	*ret_n = n;
	return 0;
}

int segment_open(int directory, uint32_t number, int flags)
{
	_cleanup_(closep) int fd = -1;
	char name[NAME_BYTES];
	struct stat status;

	snprintf(name, sizeof(name), "%08x", number);
	fd = openat(directory, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	if (fd < 0 || fstat(fd, &status))
		return -errno;
	return S_ISREG(status.st_mode) && status.st_uid == geteuid() && status.st_nlink == 1 ?
	       TAKE_FD(fd) : -ENOTSUP;
}

int segment_remove(int directory, uint32_t number, bool is_kept)
{
	char name[NAME_BYTES];
	int r;

	snprintf(name, sizeof(name), "%08x", number);
	r = is_kept ? renameat(directory, name, directory, "damaged") : unlinkat(directory, name, 0);
	return r < 0 ? -errno : 0;
}

static uint32_t head_crc(const struct spool_head *head)
{
	const uint8_t *from = (const uint8_t *)&head->body_crc;

	return crc32c(0, from, (size_t)((const uint8_t *)&head->mark - from));
}

static bool is_head(const struct spool_head *head)
{
	return head->magic == MAGIC && head->head_crc == head_crc(head);
}

int record_write(int fd, uint64_t offset, struct spool_head *head, const void *data)
{
	static const uint8_t zeros[8];
	size_t bytes = spool_record_bytes(head->size);
	struct iovec parts[] = {
		{ head, sizeof(*head) },
		{ (void *)data, head->size },
		{ (void *)zeros, bytes - sizeof(*head) - head->size },
	};
	ssize_t n;

	head->magic = MAGIC;
	head->body_crc = crc32c(0, data, head->size);
	head->head_crc = head_crc(head);
	head->not_mark = (uint8_t)~head->mark;
	n = pwritev(fd, parts, ARRAY_SIZE(parts), (off_t)offset);
	if (n < 0)
		return -errno;
	return (size_t)n == bytes ? 0 : -ENOSPC;
}

int record_read(int fd, uint64_t offset, size_t size, uint8_t **ret_data)
{
	_cleanup_(freep) uint8_t *data = malloc(size ?: 1);
	struct spool_head head;
	struct iovec parts[] = { { &head, sizeof(head) }, { data, size } };
	ssize_t n = data ? preadv(fd, parts, ARRAY_SIZE(parts), (off_t)offset) : 0;

	if (!data || n < 0)
		return data ? -errno : -ENOMEM;
	if ((size_t)n != sizeof(head) + size || !is_head(&head) || head.size != size ||
	    crc32c(0, data, size) != head.body_crc)
		return -EBADMSG;
	*ret_data = TAKE_PTR(data);
	return 0;
}

int record_mark(int fd, uint64_t offset, uint8_t mark)
{
	uint8_t bytes[] = { mark, (uint8_t)~mark };

	return pwrite(fd, bytes, sizeof(bytes), (off_t)(offset + MARK_OFFSET)) == sizeof(bytes) ?
	       0 : -errno;
}

int records_find(const uint8_t *bytes, size_t size, record_found_fn *found, void *user,
		 size_t *ret_end)
{
	bool was_gap = false;
	size_t gap_at = 0;
	uint32_t magic;
	int err;

	for (size_t at = 0; at < size;) {
		const uint8_t *data = bytes + at + sizeof(struct spool_head);
		struct spool_head head = { 0 };

		if (size - at >= sizeof(head))
			memcpy(&head, bytes + at, sizeof(head));
		if (!is_head(&head) || spool_record_bytes(head.size) > size - at) {
			gap_at = was_gap ? gap_at : at;
			was_gap = true;
			at += 8;
			continue;
		}
		err = found(user, &head, at,
			    crc32c(0, data, head.size) == head.body_crc ? data : NULL);
		if (err)
			return err;
		was_gap = false;
		at += spool_record_bytes(head.size);
	}
	*ret_end = size;
	if (!was_gap || size - gap_at < sizeof(magic))
		return 0;
	memcpy(&magic, bytes + gap_at, sizeof(magic));
	if (magic == MAGIC)
		*ret_end = gap_at;
	return 0;
}

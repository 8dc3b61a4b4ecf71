/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/label/cgroup.h"

#include <bpf/bpf.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "util/array.h"
#include "util/hash.h"
#include "util/index.h"

#define DEPTH_MAX   64
#define CGROUPS_MAX 8192 /* known at a time; beyond, all is forgotten and learnt again */

struct cgroup {
	uint64_t id;
	char *path;	 /* "/system.slice/nginx.service"; "/" is the root */
	uint32_t looked; /* cgroups->n_begun when its directory was last looked for … */
	bool is_gone;	 /* … and not found */
};

struct cgroups {
	char *root;
	int names_fd;
	uint32_t path_offset_bytes, path_bytes; /* in the values of names_fd */
	bool is_walked;	  /* since cgroups_begin() */
	bool is_whole;	  /* the walk began at the root of all, not at that of a namespace */
	uint32_t n_begun; /* calls of cgroups_begin() */
	struct cgroup *items;
	size_t n;
	struct index index; /* of items, by id */
};

#define ROOT_INODE 1 /* of the cgroup2 root (kernfs) */

static bool ends_with(const char *text, size_t length, const char *suffix)
{
	size_t n = strlen(suffix);

	return length > n && !memcmp(text + length - n, suffix, n);
}

static bool is_unit(const char *part, size_t length)
{
	static const char *const suffixes[] = { ".service", ".scope", ".socket", ".mount", ".swap" };

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
		if (ends_with(part, length, suffixes[i]))
			return true;
	return false;
}

/* 64 hexadecimal digits that no further one follows or precedes: a container's id in whatever wrapping. */
static const char *container_id(const char *part, size_t length)
{
	for (size_t i = 0, run = 0; i <= length; i++) {
		if (i < length && (isdigit((unsigned char)part[i]) || (part[i] >= 'a' && part[i] <= 'f'))) {
			run++;
			continue;
		}
		if (run == 64)
			return part + i - 64;
		run = 0;
	}
	return NULL;
}

/* A component of a path. */
struct part {
	const char *text;
	size_t length;
};

/*
 * systemd puts a "_" before what cgroupfs would take for a file of its own. "\xNN" is a part of the unit's name
 * itself, as systemctl shows it.
 */
static struct part unescape(struct part part)
{
	size_t skipped = part.length > 1 && part.text[0] == '_';

	return (struct part){ part.text + skipped, part.length - skipped };
}

static const char *print_unit(struct part unit, struct part inner, char *text, size_t size)
{
	bool has_inner = inner.length && (inner.length != 10 || memcmp(inner.text, "init.scope", 10) != 0);

	unit = unescape(unit);
	inner = unescape(inner);
	snprintf(text, size, "%.*s%s%.*s", (int)unit.length, unit.text, has_inner ? "/" : "",
		 has_inner ? (int)inner.length : 0, has_inner ? inner.text : "");
	return "systemd.unit.name";
}

const char *cgroup_name(const char *path, char *text, size_t size)
{
	struct part unit = { 0 }, inner = { "", 0 };
	bool is_user = false;

	for (const char *at = path, *end; *at && !inner.length; at = end) {
		struct part part = { at + strspn(at, "/"), 0 };
		const char *id;

		end = strchrnul(part.text, '/');
		part.length = (size_t)(end - part.text);
		id = is_user ? NULL : container_id(part.text, part.length);
		if (id) {
			snprintf(text, size, "%.64s", id);
			return "container.id";
		}
		if (!is_unit(part.text, part.length))
			continue;
		if (is_user) {
			inner = part;
		} else if (!unit.text) {
			unit = part;
			is_user = !strncmp(part.text, "user@", 5) && ends_with(part.text, part.length, ".service");
		}
	}
	if (unit.text)
		return print_unit(unit, inner, text, size);
	snprintf(text, size, "%s", path);
	return "process.linux.cgroup";
}

char *cgroups_find_root(FILE *mounts)
{
	const struct mntent *mount;

	while (mounts && (mount = getmntent(mounts)))
		if (!strcmp(mount->mnt_type, "cgroup2"))
			return strdup(mount->mnt_dir);
	return NULL;
}

static char *find_root(void)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/self/mounts", "re");

	return cgroups_find_root(f);
}

int cgroups_new(const char *root, struct cgroups **ret_cgroups)
{
	_cleanup_(cgroups_freep) struct cgroups *cgroups = calloc(1, sizeof(*cgroups));

	if (!cgroups)
		return -ENOMEM;
	cgroups->names_fd = -1;
	cgroups->n_begun = 1;
	cgroups->root = root ? strdup(root) : find_root();
	if (root && !cgroups->root)
		return -ENOMEM;
	*ret_cgroups = TAKE_PTR(cgroups);
	return 0;
}

static void forget(struct cgroups *cgroups)
{
	for (size_t i = 0; i < cgroups->n; i++)
		free(cgroups->items[i].path);
	free(cgroups->items);
	index_done(&cgroups->index);
	cgroups->items = NULL;
	cgroups->n = 0;
}

struct cgroups *cgroups_free(struct cgroups *cgroups)
{
	if (!cgroups)
		return NULL;
	forget(cgroups);
	free(cgroups->root);
	free(cgroups);
	return NULL;
}

void cgroups_set_names(struct cgroups *cgroups, int map_fd, uint32_t path_offset_bytes, uint32_t path_bytes)
{
	cgroups->names_fd = map_fd;
	cgroups->path_bytes = path_bytes;
	cgroups->path_offset_bytes = path_offset_bytes;
}

void cgroups_begin(struct cgroups *cgroups)
{
	cgroups->is_walked = false;
	cgroups->n_begun++;
	if (cgroups->n > CGROUPS_MAX)
		forget(cgroups);
}

static struct cgroup *find(const struct cgroups *cgroups, uint64_t id)
{
	uint32_t i;

	index_for_each(i, &cgroups->index, hash_bytes(&id, sizeof(id)))
		if (cgroups->items[i].id == id)
			return &cgroups->items[i];
	return NULL;
}

static int add(struct cgroups *cgroups, uint64_t id, const char *path)
{
	struct cgroup *cgroup = find(cgroups, id);
	char *own;

	if (cgroup && !strcmp(cgroup->path, path))
		return 0;
	own = strdup(path);
	if (!own)
		return -ENOMEM;
	if (cgroup) {
		free(cgroup->path);
		*cgroup = (struct cgroup){ .id = id, .path = own };
		return 0;
	}
	cgroup = array_add(&cgroups->items, &cgroups->n, sizeof(*cgroup));
	if (!cgroup) {
		free(own);
		return -ENOMEM;
	}
	*cgroup = (struct cgroup){ .id = id, .path = own };
	return index_add(&cgroups->index, hash_bytes(&id, sizeof(id)), (uint32_t)cgroups->n - 1);
}

/* Directories only, links not followed; dir is consumed. path has CGROUP_TEXT_BYTES. */
static int walk(struct cgroups *cgroups, int dir, char *path, size_t length, unsigned int depth)
{
	struct dirent *entry;
	struct stat status;
	DIR *open_dir = fdopendir(dir);
	int err = 0;

	if (!open_dir) {
		close(dir);
		return 0;
	}
	if (!fstat(dir, &status))
		err = add(cgroups, status.st_ino, length ? path : "/");
	if (!length)
		cgroups->is_whole = status.st_ino == ROOT_INODE;
	while (!err && depth < DEPTH_MAX && (entry = readdir(open_dir))) {
		size_t n = strlen(entry->d_name);
		int child;

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.' || length + n + 2 > CGROUP_TEXT_BYTES)
			continue;
		child = openat(dir, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (child < 0)
			continue;
		snprintf(path + length, CGROUP_TEXT_BYTES - length, "/%s", entry->d_name);
		err = walk(cgroups, child, path, length + n + 1, depth + 1);
		path[length] = '\0';
	}
	closedir(open_dir);
	return err;
}

int cgroups_walk(struct cgroups *cgroups)
{
	char path[CGROUP_TEXT_BYTES] = "";
	int dir;

	cgroups->is_walked = true;
	dir = cgroups->root ? open(cgroups->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	return dir < 0 ? 0 : walk(cgroups, dir, path, 0, 0);
}

/*
 * What the kernel side wrote down when the cgroup was made. A text that fills its room was cut there, and may
 * lack the very unit that it belongs to.
 */
static int add_from_map(struct cgroups *cgroups, uint64_t id)
{
	char value[CGROUP_TEXT_BYTES];
	const char *path = value + cgroups->path_offset_bytes;

	if (cgroups->names_fd < 0 || bpf_map_lookup_elem(cgroups->names_fd, &id, value) ||
	    strnlen(path, cgroups->path_bytes) >= cgroups->path_bytes - 1)
		return -ENOENT;
	return add(cgroups, id, path);
}

/* NULL: nobody knows it. */
static int look_up(struct cgroups *cgroups, uint64_t id, struct cgroup **ret_cgroup)
{
	int err = find(cgroups, id) ? 0 : add_from_map(cgroups, id);

	if (err == -ENOENT)
		err = cgroups->is_walked ? 0 : cgroups_walk(cgroups);
	*ret_cgroup = find(cgroups, id);
	return *ret_cgroup ? 0 : err;
}

int cgroups_get(struct cgroups *cgroups, uint64_t id, const char **ret_path)
{
	struct cgroup *cgroup;
	int err = look_up(cgroups, id, &cgroup);

	if (err)
		return err;
	*ret_path = cgroup ? cgroup->path : NULL;
	return !cgroup;
}

static bool is_directory_gone(const struct cgroups *cgroups, const struct cgroup *cgroup)
{
	_cleanup_(freep) char *path = NULL;
	struct stat status;

	if (!cgroups->root || asprintf(&path, "%s%s", cgroups->root, cgroup->path) < 0)
		return false;
	if (stat(path, &status))
		return errno == ENOENT;
	return status.st_ino != cgroup->id;
}

/* Many keys of many maps ask for the same few: looked for once a collection. */
bool cgroups_is_gone(struct cgroups *cgroups, uint64_t id)
{
	struct cgroup *cgroup;

	if (look_up(cgroups, id, &cgroup))
		return false;
	if (!cgroup)
		return cgroups->is_walked && cgroups->is_whole;
	if (cgroup->looked != cgroups->n_begun) {
		cgroup->is_gone = is_directory_gone(cgroups, cgroup);
		cgroup->looked = cgroups->n_begun;
	}
	return cgroup->is_gone;
}

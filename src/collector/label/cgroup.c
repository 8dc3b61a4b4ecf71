/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/label/cgroup.h"

#include <bpf/bpf.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "util/hash.h"

#define DEPTH_MAX   64
#define CGROUPS_MAX 8192 /* known at a time; beyond, all is forgotten and learnt again */

struct cgroups {
	char *root;
	int names_fd;
	uint32_t value_bytes, path_offset_bytes;
	bool is_walked;	  /* since cgroups_begin() */
	uint32_t n_begun; /* calls of cgroups_begin() */
	struct cgroup **slots;
	size_t n, n_slots;
};

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

/*
 * systemd puts a "_" before what cgroupfs would take for a file of its own. "\xNN" is a part of the unit's name
 * itself, as systemctl shows it.
 */
static void unescape(const char *part, size_t length, char *text, size_t size)
{
	size_t skipped = length > 1 && part[0] == '_';

	snprintf(text, size, "%.*s", (int)(length - skipped), part + skipped);
}

const char *cgroup_name(const char *path, char *text, size_t size)
{
	const char *unit = NULL, *id;
	size_t unit_length = 0;

	for (const char *part = path, *end; *part; part = end) {
		while (*part == '/')
			part++;
		end = strchrnul(part, '/');
		id = container_id(part, (size_t)(end - part));
		if (id) {
			snprintf(text, size, "%.64s", id);
			return "container.id";
		}
		if (unit || !is_unit(part, (size_t)(end - part)))
			continue;
		unit = part;
		unit_length = (size_t)(end - part);
		/* The user's manager runs units of its own: the innermost one is meant. */
		if (!strncmp(part, "user@", 5) && ends_with(part, unit_length, ".service") && *end &&
		    strncmp(end, "/init.scope", 11)) {
			const char *inner = cgroup_name(end, text, size);

			if (strcmp(inner, "process.linux.cgroup"))
				return inner;
		}
	}
	if (unit) {
		unescape(unit, unit_length, text, size);
		return "systemd.unit.name";
	}
	snprintf(text, size, "%s", path);
	return "process.linux.cgroup";
}

/* mountinfo: "36 35 98:0 /mnt1 /mnt2 rw,noatime - cgroup2 cgroup2 rw" (proc(5)). */
static char *find_root(void)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/self/mountinfo", "re");
	_cleanup_(freep) char *line = NULL;
	size_t size = 0;
	char *point;

	while (f && getline(&line, &size, f) > 0) {
		const char *type = strstr(line, " - ");
		char mount[512];

		if (type && !strncmp(type, " - cgroup2 ", 11) && sscanf(line, "%*s %*s %*s %*s %511s", mount) == 1) {
			point = strdup(mount);
			return point;
		}
	}
	return NULL;
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

static void cgroup_free(struct cgroup *cgroup)
{
	free(cgroup->path);
	free(cgroup->value);
	free(cgroup);
}

static void forget(struct cgroups *cgroups)
{
	for (size_t i = 0; i < cgroups->n_slots; i++)
		if (cgroups->slots[i])
			cgroup_free(cgroups->slots[i]);
	free(cgroups->slots);
	cgroups->slots = NULL;
	cgroups->n = cgroups->n_slots = 0;
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

void cgroups_set_names(struct cgroups *cgroups, int map_fd, uint32_t value_bytes, uint32_t path_offset_bytes)
{
	cgroups->names_fd = map_fd;
	cgroups->value_bytes = value_bytes;
	cgroups->path_offset_bytes = path_offset_bytes;
}

void cgroups_begin(struct cgroups *cgroups)
{
	cgroups->is_walked = false;
	cgroups->n_begun++;
	if (cgroups->n > CGROUPS_MAX)
		forget(cgroups);
}

static struct cgroup **slot_of(struct cgroup **slots, size_t n_slots, uint64_t id)
{
	size_t at = hash_bytes(&id, sizeof(id)) & (n_slots - 1);

	while (slots[at] && slots[at]->id != id)
		at = (at + 1) & (n_slots - 1);
	return &slots[at];
}

static struct cgroup *find(struct cgroups *cgroups, uint64_t id)
{
	return cgroups->n_slots ? *slot_of(cgroups->slots, cgroups->n_slots, id) : NULL;
}

static int grow(struct cgroups *cgroups)
{
	size_t n = cgroups->n_slots ? cgroups->n_slots * 2 : 128;
	struct cgroup **slots;

	if (2 * (cgroups->n + 1) <= cgroups->n_slots)
		return 0;
	slots = calloc(n, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < cgroups->n_slots; i++)
		if (cgroups->slots[i])
			*slot_of(slots, n, cgroups->slots[i]->id) = cgroups->slots[i];
	free(cgroups->slots);
	cgroups->slots = slots;
	cgroups->n_slots = n;
	return 0;
}

static int add(struct cgroups *cgroups, uint64_t id, const char *path, struct cgroup **ret_cgroup)
{
	struct cgroup *known = find(cgroups, id), *cgroup;
	char value[4096];
	int err;

	if (known && !strcmp(known->path, path)) {
		*ret_cgroup = known;
		return 0;
	}
	err = grow(cgroups);
	if (err)
		return err;
	cgroup = calloc(1, sizeof(*cgroup));
	if (!cgroup)
		return -ENOMEM;
	cgroup->id = id;
	cgroup->attribute = cgroup_name(path, value, sizeof(value));
	cgroup->value = strdup(value);
	cgroup->path = strdup(path);
	if (!cgroup->value || !cgroup->path) {
		cgroup_free(cgroup);
		return -ENOMEM;
	}
	*slot_of(cgroups->slots, cgroups->n_slots, id) = cgroup;
	if (known)
		cgroup_free(known);
	else
		cgroups->n++;
	*ret_cgroup = cgroup;
	return 0;
}

/* Directories only, links not followed; dir is consumed. */
static int walk(struct cgroups *cgroups, int dir, char *path, size_t length, unsigned int depth)
{
	struct dirent *entry;
	struct stat status;
	struct cgroup *cgroup;
	DIR *open_dir = fdopendir(dir);
	int err = 0;

	if (!open_dir) {
		close(dir);
		return 0;
	}
	if (!fstat(dir, &status))
		err = add(cgroups, status.st_ino, length ? path : "/", &cgroup);
	while (!err && depth < DEPTH_MAX && (entry = readdir(open_dir))) {
		size_t n = strlen(entry->d_name);
		int child;

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.' || length + n + 2 > 4096)
			continue;
		child = openat(dir, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (child < 0)
			continue;
		snprintf(path + length, 4096 - length, "/%s", entry->d_name);
		err = walk(cgroups, child, path, length + n + 1, depth + 1);
		path[length] = '\0';
	}
	closedir(open_dir);
	return err;
}

int cgroups_walk(struct cgroups *cgroups)
{
	char path[4096] = "";
	int dir;

	cgroups->is_walked = true;
	dir = cgroups->root ? open(cgroups->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	return dir < 0 ? 0 : walk(cgroups, dir, path, 0, 0);
}

/* What the kernel side wrote down when the cgroup was made. */
static int add_from_map(struct cgroups *cgroups, uint64_t id, struct cgroup **ret_cgroup)
{
	char value[4096];
	uint32_t room;

	if (cgroups->names_fd < 0 || cgroups->value_bytes > sizeof(value) ||
	    bpf_map_lookup_elem(cgroups->names_fd, &id, value))
		return -ENOENT;
	room = cgroups->value_bytes - cgroups->path_offset_bytes;
	value[cgroups->path_offset_bytes + room - 1] = '\0';
	return add(cgroups, id, value + cgroups->path_offset_bytes, ret_cgroup);
}

int cgroups_get(struct cgroups *cgroups, uint64_t id, const struct cgroup **ret_cgroup)
{
	struct cgroup *cgroup = find(cgroups, id);
	char text[32];
	int err = 0;

	if (!cgroup && (err = add_from_map(cgroups, id, &cgroup)) == -ENOENT && !cgroups->is_walked) {
		err = cgroups_walk(cgroups);
		cgroup = find(cgroups, id);
	}
	if (!cgroup && err != -ENOMEM) {
		snprintf(text, sizeof(text), "id:%llu", (unsigned long long)id);
		err = add(cgroups, id, text, &cgroup);
	}
	if (!cgroup)
		return err;
	*ret_cgroup = cgroup;
	return 0;
}

static bool is_directory_gone(const struct cgroups *cgroups, const struct cgroup *cgroup)
{
	_cleanup_(freep) char *path = NULL;
	struct stat status;

	if (cgroup->path[0] != '/')
		return true;
	if (!cgroups->root || asprintf(&path, "%s%s", cgroups->root, cgroup->path) < 0)
		return false;
	if (stat(path, &status))
		return errno == ENOENT;
	return status.st_ino != cgroup->id;
}

/* Many keys of many maps ask for the same few: looked for once a collection. */
bool cgroups_is_gone(struct cgroups *cgroups, uint64_t id)
{
	const struct cgroup *known;
	struct cgroup *cgroup;

	if (cgroups_get(cgroups, id, &known))
		return false;
	cgroup = find(cgroups, id);
	if (cgroup->looked != cgroups->n_begun) {
		cgroup->is_gone = is_directory_gone(cgroups, cgroup);
		cgroup->looked = cgroups->n_begun;
	}
	return cgroup->is_gone;
}

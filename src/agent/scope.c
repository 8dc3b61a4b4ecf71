/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/scope.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/label/cgroup-root.h"
#include "util/log.h"

/* A process that forks while it is moved leaves a child there. */
#define TURNS	100
#define TURN_US 1000

#define WHAT_TO_DO "--whole-machine counts all that happens while it runs"

struct scope {
	char parent[PATH_MAX], path[PATH_MAX + NAME_MAX];
	FILE *parent_procs, *procs; /* their cgroup.procs; procs NULL: it was not made */
};

const char *scope_name(void)
{
	static char name[32];

	if (!*name)
		snprintf(name, sizeof(name), "bpfpush-once-%d", getpid());
	return name;
}

static FILE *open_procs(const char *path, const char *mode)
{
	char procs[PATH_MAX + 2 * NAME_MAX];

	snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
	return fopen(procs, mode);
}

/* In a namespace of cgroups, the path that the kernel shows is not that from the root of all. */
static bool is_ours(const char *path)
{
	_cleanup_(fclosep) FILE *f = open_procs(path, "re");
	int pid = 0;

	while (f && pid != getpid() && fscanf(f, "%d", &pid) == 1)
		;
	return f && pid == getpid();
}

/* The directory of the cgroup that we are in. -EOPNOTSUPP: it cannot be seen from here. */
static int find_own(char *path, size_t size)
{
	_cleanup_(freep) char *root = cgroups_own_root(), *line = NULL;
	_cleanup_(fclosep) FILE *f = fopen("/proc/self/cgroup", "re");
	size_t capacity = 0;

	while (root && f && getline(&line, &capacity, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "0::/", 4) || !strncmp(line, "0::/..", 6))
			continue;
		snprintf(path, size, "%s%s", root, line[4] ? line + 3 : "");
		return is_ours(path) ? 0 : -EOPNOTSUPP;
	}
	return -EOPNOTSUPP;
}

/* Of processes that were killed, and could not do it themselves. One that is not empty stays. */
static void remove_left_over(const char *parent)
{
	char path[PATH_MAX + NAME_MAX + 1];
	struct dirent *entry;
	DIR *tree = opendir(parent);
	int pid;

	while (tree && (entry = readdir(tree))) {
		if (sscanf(entry->d_name, "bpfpush-once-%d", &pid) != 1 || pid <= 0 || !kill(pid, 0) ||
		    errno != ESRCH)
			continue;
		snprintf(path, sizeof(path), "%s/%s", parent, entry->d_name);
		(void)rmdir(path);
	}
	if (tree)
		closedir(tree);
}

int scope_new(struct scope **ret_scope)
{
	struct scope *scope = calloc(1, sizeof(*scope));
	int err = scope ? find_own(scope->parent, sizeof(scope->parent)) : -ENOMEM;

	if (!scope)
		return err;
	if (!err)
		remove_left_over(scope->parent);
	snprintf(scope->path, sizeof(scope->path), "%s/%s", scope->parent, scope_name());
	if (!err && mkdir(scope->path, 0755))
		err = -errno;
	if (!err) {
		scope->procs = open_procs(scope->path, "we");
		scope->parent_procs = scope->procs ? open_procs(scope->parent, "we") : NULL;
		err = scope->parent_procs ? 0 : -errno;
		if (err)
			rmdir(scope->path);
	}
	if (err == -EOPNOTSUPP)
		log_error("a command cannot be counted alone: its cgroup would be made in the cgroup2 tree, which is not mounted "
			  "here, or does not show the cgroup of bpfpush; " WHAT_TO_DO);
	else if (err)
		log_error("a command cannot be counted alone: its cgroup %s cannot be made: %s; " WHAT_TO_DO,
			  scope->path, strerror(-err));
	if (err)
		scope = scope_free(scope);
	*ret_scope = scope;
	return err;
}

int scope_enter(const struct scope *scope)
{
	return write(fileno(scope->procs), "0", 1) < 0 ? -errno : 0;
}

static void remove_one(const struct scope *scope, const char *path)
{
	for (int i = 0; i < TURNS && rmdir(path) && errno == EBUSY; i++) {
		_cleanup_(fclosep) FILE *f = open_procs(path, "re");
		int process;

		while (f && fscanf(f, "%d", &process) == 1)
			dprintf(fileno(scope->parent_procs), "%d", process);
		if (i)
			usleep(TURN_US);
	}
}

void scope_remove(struct scope *scope)
{
	char *paths[] = { scope ? scope->path : NULL, NULL };
	FTS *tree = scope && scope->procs ? fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL) :
		    NULL;
	FTSENT *entry;

	if (!tree)
		return;
	while ((entry = fts_read(tree)))
		if (entry->fts_info == FTS_DP)
			remove_one(scope, entry->fts_accpath);
	fts_close(tree);
	fclosep(&scope->procs);
	scope->procs = NULL;
}

struct scope *scope_free(struct scope *scope)
{
	if (!scope)
		return NULL;
	scope_remove(scope);
	fclosep(&scope->procs);
	fclosep(&scope->parent_procs);
	free(scope);
	return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/label/unit.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "util/array.h"
#include "util/cleanup.h"

/* Whose cgroups a component is among. That says what it can be, and what may be believed of it. */
enum {
	/* those in a container, a guest or a unit, which chooses their names itself */
	NOBODY = 0,
	/* this machine's: slices of its systemd, and what others put next to them */
	MACHINE = 1 << 0,
	RUNTIME = 1 << 1, /* a container runtime's */
	PODMAN = 1 << 2,  /* Podman's without systemd: bare digits are a pod's */
	LXC = 1 << 3,	  /* of which each is a guest */
	MANAGER = 1 << 4, /* a user's: units there have their names below that of the manager */
};

enum kind { PLACE, CONTAINER, GUEST, UNIT };

/*
 * Each component is made by one program, so the whole of it has to fit. The first row that does is
 * taken. What fits none, as a slice or somebody's own cgroup, is nothing by itself, and what is
 * below it is among the same.
 */
static const struct layout {
	/* ended by NULL; "*": one character or more; "#": the 64 digits of an id */
	const char *patterns[6];
	unsigned int among;
	enum kind kind;
	unsigned int below;
} layouts[] = {
	/* where runtimes without systemd put containers, and LXC, Incus and Proxmox their guests */
	{ { "docker", "ecs", "kubepods" }, MACHINE, PLACE, RUNTIME },
	{ { "libpod_parent" }, MACHINE, PLACE, PODMAN },
	{ { "lxc", "lxc.payload" }, MACHINE | MANAGER, PLACE, LXC },
	/* containers */
	{ { "#", "crio-#", "kata_#" }, MACHINE | RUNTIME, CONTAINER, NOBODY },
	{ { "libpod-#", "libpod-payload-#" }, MACHINE | RUNTIME | PODMAN, CONTAINER, NOBODY },
	/* meant for systemd, but made without it */
	{ { "*.slice:*:#" }, MACHINE | RUNTIME, CONTAINER, NOBODY },
	{ { "containerd-#.scope", "cri-containerd-#.scope", "nerdctl-#.scope" }, MACHINE, CONTAINER, NOBODY },
	{ { "crio-#.scope", "docker-#.scope", "libpod-#.scope" }, MACHINE, CONTAINER, NOBODY },
	/* guests without a unit */
	{ { "*" }, LXC, GUEST, NOBODY },
	{ { "lxc.payload.*" }, MACHINE | MANAGER, GUEST, NOBODY },
	{ { "*.libvirt-lxc" }, MACHINE, GUEST, NOBODY },
	/*
	 * units: also guests of nspawn and libvirt (machine-*.scope) and monitors of containers
	 * (*-conmon-#.scope)
	 */
	{ { "user@*.service" }, MACHINE, UNIT, MANAGER },
	{ { "containerd.service", "crio.service", "docker.service" }, MACHINE, UNIT, RUNTIME },
	{ { "*.service", "*.scope", "*.socket", "*.mount", "*.swap" }, MACHINE | MANAGER, UNIT, NOBODY },
};

#define ID_DIGITS 64

/* A component of a path. */
struct part {
	const char *text;
	size_t length;
};

/* *ret_id: where the digits are, if the pattern has any. */
static bool fits_pattern(const char *pattern, struct part part, const char **ret_id)
{
	const char *at = part.text, *end = part.text + part.length;

	for (; *pattern && *pattern != '*'; pattern++) {
		bool is_id = *pattern == '#';
		size_t n = is_id ? ID_DIGITS : 1;

		if ((size_t)(end - at) < n || (is_id ? strspn(at, "0123456789abcdef") < n : *at != *pattern))
			return false;
		*ret_id = is_id ? at : *ret_id;
		at += n;
	}
	if (!*pattern)
		return at == end;
	for (struct part rest = { at, (size_t)(end - at) }; rest.length;) {
		rest.text++;
		rest.length--;
		if (fits_pattern(pattern + 1, rest, ret_id))
			return true;
	}
	return false;
}

static const struct layout *find_layout(unsigned int among, struct part part, const char **ret_id)
{
	array_for_each (layout, layouts, ARRAY_SIZE(layouts))
		for (const char *const *pattern = layout->patterns;
		     layout->among & among && *pattern; pattern++)
			if (fits_pattern(*pattern, part, ret_id))
				return layout;
	return NULL;
}

/*
 * systemd puts a "_" before what cgroupfs would take for a file of its own. "\xNN" is a part of the
 * unit's name itself, as systemctl shows it.
 */
static struct part unescape_part(struct part part)
{
	size_t skipped = part.length > 1 && part.text[0] == '_';

	return (struct part){ part.text + skipped, part.length - skipped };
}

static const char *print_unit(struct part unit, struct part inner, char *text, size_t size)
{
	bool has_inner = inner.length && (inner.length != 10 || memcmp(inner.text, "init.scope", 10) != 0);

	unit = unescape_part(unit);
	inner = unescape_part(inner);
	if (has_inner)
		snprintf(text, size, "%.*s/%.*s", (int)unit.length, unit.text, (int)inner.length,
			 inner.text);
	else
		snprintf(text, size, "%.*s", (int)unit.length, unit.text);
	return "systemd.unit.name";
}

bool unit_is_from_above(const char *path)
{
	return *path && path[1] && path[strlen(path) - 1] == '/';
}

const char *unit_name(const char *path, char *text, size_t size)
{
	struct part own = { path, strlen(path) - unit_is_from_above(path) }, unit = { 0 },
		inner = { "", 0 };
	unsigned int among = MACHINE;

	for (const char *at = path, *end; *at && among != NOBODY; at = end) {
		struct part part = { at + strspn(at, "/"), 0 };
		const struct layout *layout;
		const char *id = NULL;

		end = strchrnul(part.text, '/');
		part.length = (size_t)(end - part.text);
		layout = find_layout(among, part, &id);
		if (!layout)
			continue;
		if (layout->kind == CONTAINER) {
			snprintf(text, size, "%.*s", ID_DIGITS, id);
			return "container.id";
		}
		if (layout->kind == GUEST)
			own.length = (size_t)(end - path);
		else if (layout->kind == UNIT)
			*(unit.text ? &inner : &unit) = part;
		among = layout->below;
	}
	if (unit.text)
		return print_unit(unit, inner, text, size);
	snprintf(text, size, "%.*s", (int)own.length, own.text);
	return "process.linux.cgroup";
}

static const char *find_pattern(const struct setting_list *patterns, const char *name)
{
	for (size_t i = 0; i < patterns->n_items; i++)
		if (!fnmatch(patterns->items[i], name, FNM_NOESCAPE))
			return patterns->items[i];
	return NULL;
}

const char *unit_choose(const struct unit_choice *choice, const char *name)
{
	if ((choice->include.n_items && !find_pattern(&choice->include, name)) ||
	    find_pattern(&choice->exclude, name))
		return NULL;
	return find_pattern(&choice->fold, name) ?: name;
}

/* name: NULL, or a component of the path? */
static bool has_part(const char *path, const char *name)
{
	size_t length = name ? strlen(name) : 0;

	for (const char *at = path; name && (at = strstr(at, name)); at++)
		if (at > path && at[-1] == '/' && (!at[length] || at[length] == '/'))
			return true;
	return false;
}

bool unit_is_top(const struct unit_choice *choice, const char *path)
{
	char name[PATH_MAX], parent[PATH_MAX], name_of_parent[PATH_MAX];
	const char *end = strrchr(path, '/') ?: path;

	snprintf(parent, sizeof(parent), "%.*s", (int)(end - path), path);
	if (has_part(path, choice->own))
		return !has_part(parent, choice->own);
	unit_name(path, name, sizeof(name));
	unit_name(parent, name_of_parent, sizeof(name_of_parent));
	return strcmp(name, name_of_parent) != 0;
}

int unit_of_path(const struct unit_choice *choice, const char *path, const char **ret_attribute,
		 char **ret_text)
{
	const char *chosen;
	char name[PATH_MAX];

	*ret_attribute = unit_name(path, name, sizeof(name));
	chosen = unit_choose(choice, name);
	if (has_part(path, choice->own)) {
		*ret_attribute = "process.linux.cgroup";
		chosen = choice->own;
	}
	*ret_text = chosen ? strdup(chosen) : NULL;
	return chosen && !*ret_text ? -ENOMEM : 0;
}

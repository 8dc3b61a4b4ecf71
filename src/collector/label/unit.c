/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/label/unit.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "util/cleanup.h"

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
	size_t run;

	for (const char *at = part; at < part + length; at += run + 1) {
		run = strspn(at, "0123456789abcdef");
		if (run == 64)
			return at;
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

const char *unit_name(const char *path, char *text, size_t size)
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

static const char *find_pattern(const struct setting_list *patterns, const char *name)
{
	for (size_t i = 0; i < patterns->n_items; i++)
		if (!fnmatch(patterns->items[i], name, FNM_NOESCAPE))
			return patterns->items[i];
	return NULL;
}

const char *unit_choose(const struct unit_choice *choice, const char *name)
{
	if ((choice->include.n_items && !find_pattern(&choice->include, name)) || find_pattern(&choice->exclude, name))
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

int unit_of_path(const struct unit_choice *choice, const char *path, const char **ret_attribute, char **ret_text)
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path of a cgroup below the root, which anyone may have made, after a byte: how many bytes its name may have, and
 * whether names are chosen.
 */
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/label/unit.h"
#include "metric/attribute.h"
#include "util/cleanup.h"
#include "util/utf8.h"

#define OWN "bpfpush-test"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool is_true)
{
	if (!is_true)
		abort();
}

static bool ends_in(const char *text, const char *end, const char *const *suffixes)
{
	for (; *suffixes; suffixes++) {
		size_t n = strlen(*suffixes);

		if ((size_t)(end - text) >= n && !memcmp(end - n, *suffixes, n))
			return true;
	}
	return false;
}

/* Is it one of the path's components, perhaps without the "_" before it? */
static bool is_component(const char *path, const char *text, size_t length)
{
	for (const char *at = path; length && (at = strstr(at, "/")); at++) {
		size_t skipped = 1 + (at[1] == '_');

		for (size_t skip = 1; skip <= skipped; skip++)
			if (!strncmp(at + skip, text, length) && (at[skip + length] == '/' || !at[skip + length]))
				return true;
	}
	return false;
}

static void check_unit(const char *path, const char *text)
{
	static const char *const units[] = { ".service", ".scope", ".socket", ".mount", ".swap", NULL };
	const char *end = strchrnul(text, '/');

	demand(ends_in(text, end, units) && is_component(path, text, (size_t)(end - text)));
	if (!*end)
		return;
	demand(ends_in(text, end, units) && !strncmp(text, "user@", 5));
	demand(ends_in(end + 1, end + strlen(end), units) && is_component(path, end + 1, strlen(end + 1)));
}

/* Does a component end in it, perhaps before ".scope"? */
static bool ends_component(const char *path, const char *id)
{
	for (const char *at = path; (at = strstr(at, id)); at++) {
		const char *end = at + strlen(id);

		end += strncmp(end, ".scope", 6) ? 0 : 6;
		if (*end == '/' || !*end)
			return true;
	}
	return false;
}

/* A guest's name is the path down to it, and a path that ends in "/" is that of a cgroup above. */
static void check_name(const char *path, const char *attribute, const char *text)
{
	size_t length = strlen(text);

	if (!strcmp(attribute, "container.id")) {
		demand(length == 64 && strspn(text, "0123456789abcdef") == 64 && ends_component(path, text));
	} else if (!strcmp(attribute, "systemd.unit.name")) {
		check_unit(path, text);
	} else {
		demand(!strcmp(attribute, "process.linux.cgroup") && !strncmp(text, path, length));
		demand(!path[length] || !strcmp(path + length, "/") || (path[length] == '/' && strstr(text, "lxc")));
	}
}

/* As an attribute, it is one printable line. */
static void check_attribute(const char *name, const char *text)
{
	struct attributes attributes;
	const char *at;

	attributes_init(&attributes);
	demand(attributes_add_text(&attributes, name, text, strlen(text)) >= 0);
	for (at = attributes.n ? attributes.items[0].text : ""; *at; at += utf8_printable_bytes(at, strlen(at)))
		demand(utf8_printable_bytes(at, strlen(at)));
}

static void check_choice(const char *path, const char *name)
{
	static char *include[] = { (char *)"*.service*", (char *)"/?*" }, *exclude[] = { (char *)"a*", (char *)"[b" },
		    *fold[] = { (char *)"user@*", (char *)"*\\*" };
	const struct unit_choice choice = { { include, 2 }, { exclude, 2 }, { fold, 2 }, OWN };
	_cleanup_(freep) char *text = NULL;
	const char *attribute, *chosen = unit_choose(&choice, name);

	demand(!unit_of_path(&choice, path, &attribute, &text));
	if (text && !strcmp(text, OWN) && (!chosen || strcmp(chosen, OWN)))
		demand(!strcmp(attribute, "process.linux.cgroup") && strstr(path, "/" OWN));
	else
		demand(!text == !chosen && (!text || !strcmp(text, chosen)));
	demand(!chosen || chosen == name || chosen == fold[0] || chosen == fold[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(freep) char *path = NULL;
	char whole[PATH_MAX];
	const char *attribute;

	if (!size || size >= PATH_MAX || asprintf(&path, "/%.*s", (int)size - 1, (const char *)data + 1) < 0)
		return 0;
	attribute = unit_name(path, whole, sizeof(whole));
	check_name(path, attribute, whole);
	check_attribute(attribute, whole);
	for (size_t room = 1 + data[0] % 128; room; room = room > 1) {
		_cleanup_(freep) char *cut = malloc(room);

		demand(cut && unit_name(path, cut, room) == attribute);
		demand(strlen(cut) < room && !strncmp(cut, whole, strlen(cut)));
		demand(strlen(cut) == room - 1 || !strcmp(cut, whole));
	}
	if (data[0] & 128)
		check_choice(path, whole);
	return 0;
}

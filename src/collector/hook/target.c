/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/hook/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/descriptor.h"
#include "collector/program.h"
#include "util/array.h"

bool section_is(const char *section, const char *types)
{
	char type[64];

	snprintf(type, sizeof(type), " %.*s ", (int)strcspn(section, "/"), section);
	return strstr(types, type);
}

const char *target_of(const char *section)
{
	const char *slash = strchr(section, '/');

	return slash ? slash + 1 : "";
}

size_t target_offset(const char *target, char name[TARGET_BYTES])
{
	size_t length = *target >= '0' && *target <= '9' ? 0 : strcspn(target, "+");

	snprintf(name, TARGET_BYTES, "%.*s", (int)length, target);
	return target[length] ? strtoull(target + length + (target[length] == '+'), NULL, 0) : 0;
}

const char *target_split(const char *target, int n_after, char head[TARGET_BYTES])
{
	const char *end = target + strlen(target);

	for (; end > target; end--)
		if (*end == ':' && !n_after--)
			break;
	snprintf(head, TARGET_BYTES, "%.*s", (int)(end - target), target);
	return end > target ? end + 1 : NULL;
}

FILE *target_open_trace(const char *name)
{
	static const char *const places[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	int err = ENOENT; /* unless one of them is there, but cannot be read */
	char path[TARGET_BYTES];
	FILE *f = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(places) && !f; i++) {
		snprintf(path, sizeof(path), "%s/%s", places[i], name);
		f = fopen(path, "re");
		err = !f && errno != ENOENT ? errno : err;
	}
	errno = err;
	return f;
}

bool target_is_given(const struct descriptor_program *described)
{
	return described->target || described->binary || described->event ||
	       described->interfaces.n;
}

static int set_target(struct program *program, const struct descriptor_program *described)
{
	const char *target = described->target ?: target_of(program->section),
		*binary = described->binary;
	int type_bytes = (int)strcspn(program->section, "/"), n;
	char *section, path[TARGET_BYTES];

	if (described->interfaces.n)
		target = described->interfaces.items->text;
	else if (described->event)
		target = described->event;
	if (binary) {
		target = target_split(target, section_is(program->section, " usdt "), path) ?: target;
		n = asprintf(&section, "%.*s/%s:%s", type_bytes, program->section, binary, target);
	} else {
		n = asprintf(&section, "%.*s/%s", type_bytes, program->section, target);
	}
	if (n < 0)
		return -ENOMEM;
	free(program->section);
	program->section = section;
	return 0;
}

int targets_set(struct programs *programs, const struct descriptor *descriptor)
{
	int err = 0;

	array_for_each (program, programs->items, programs->n)
		array_for_each (described, descriptor->programs, descriptor->n_programs)
			if (!err && target_is_given(described) &&
			    program_is_called(program, described->name))
				err = set_target(program, described);
	return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/label/name.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <net/if.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "util/buf.h"
#include "util/cleanup.h"

#define DOMAIN_PART_MAX 63

/* The last part of /sys/dev/block/MAJOR:MINOR's target. */
static void name_block_device(unsigned int major_number, unsigned int minor_number,
			      char ret_text[NAME_TEXT_BYTES])
{
	char path[64], target[PATH_MAX];
	ssize_t size;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major_number, minor_number);
	size = readlink(path, target, sizeof(target) - 1);
	target[size > 0 ? size : 0] = '\0';
	snprintf(ret_text, NAME_TEXT_BYTES, "%s", basename(size > 0 ? target : path));
}

void name_device(const struct label_type *type, uint32_t number, char ret_text[NAME_TEXT_BYTES])
{
	name_block_device(number >> 20, number & 0xfffff, ret_text);
}

void name_stat_device(const struct label_type *type, uint32_t number,
		      char ret_text[NAME_TEXT_BYTES])
{
	name_block_device(major(number), minor(number), ret_text);
}

/*
 * "nvme0c1n2" is a path to "nvme0n2", which is the disk that programs see
 * (drivers/nvme/host/multipath.c).
 */
void put_disk(struct member *member)
{
	int disk = 0, path = 0, end = 0;
	char name[NAME_TEXT_BYTES];

	snprintf(name, sizeof(name), "%.*s", (int)member->label->field->size_bytes,
		 (const char *)member->raw);
	(void)sscanf(name, "nvme%*[0-9]%nc%*[0-9]%nn%*[0-9]%n", &disk, &path, &end);
	if (end && !name[end])
		buf_printf(&member->text, "%.*s%s", disk, name, name + path);
	else
		buf_append_text(&member->text, name);
	member->is_absent = !*name;
}

void name_interface(const struct label_type *type, uint32_t number, char ret_text[NAME_TEXT_BYTES])
{
	if (!if_indextoname(number, ret_text))
		snprintf(ret_text, NAME_TEXT_BYTES, "%u", number);
}

/* "HEAD  NAME"; below it "\tBELOW  NAME", and what is below that has two tabs. */
char *name_find_pci(FILE *f, const char *head, const char *below, char *line, size_t size)
{
	bool is_inside = false;

	while (fgets(line, (int)size, f)) {
		const char *wanted = is_inside ? below : head;
		char *name;

		if (*line == '#' || *line == '\n')
			continue;
		line[strcspn(line, "\n")] = '\0';
		if (*line != '\t' && is_inside)
			break;
		if (strncmp(line + is_inside, wanted, strlen(wanted)))
			continue;
		name = line + is_inside + strlen(wanted);
		is_inside = true;
		if (*line == '\t' || !*below)
			return name + strspn(name, " ");
	}
	return NULL;
}

void name_pci(const struct label_type *type, uint32_t number, char ret_text[NAME_TEXT_BYTES])
{
	static const char *const paths[] = { "/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids" };
	char head[300], below[300] = "", line[512];
	_cleanup_(fclosep) FILE *f = NULL;
	const char *name;

	snprintf(head, sizeof(head), "%s%0*x ", type->pci, type->digits, number >> 4 * type->below);
	if (type->below)
		snprintf(below, sizeof(below), "%0*x ", type->below,
			 number & ((1u << 4 * type->below) - 1));
	for (size_t i = 0; !f && i < ARRAY_SIZE(paths); i++)
		f = fopen(paths[i], "re");
	name = f ? name_find_pci(f, head, below, line, sizeof(line)) : NULL;
	if (name)
		snprintf(ret_text, NAME_TEXT_BYTES, "%s", name);
	else
		snprintf(ret_text, NAME_TEXT_BYTES, "0x%0*x", type->digits + type->below, number);
}

void put_bytes(struct member *member)
{
	for (size_t i = 0; i < member->label->field->size_bytes; i++)
		buf_printf(&member->text, "%02x", ((const uint8_t *)member->raw)[i]);
}

static bool append_parts(const uint8_t *data, size_t size, struct buf *out)
{
	size_t at = 0;

	while (at < size && data[at]) {
		size_t end = at + 1 + data[at];

		if (data[at] > DOMAIN_PART_MAX || end > size)
			return false;
		if (at)
			buf_append_byte(out, '.');
		while (++at < end)
			buf_printf(out, isalnum(data[at]) || strchr("-_", data[at]) ? "%c" : "\\%03u",
				   tolower(data[at]));
	}
	return at < size;
}

void put_domain(struct member *member)
{
	if (!append_parts(member->raw, member->label->field->size_bytes, &member->text)) {
		member->text.size = 0;
		put_bytes(member);
	} else if (!member->text.size) {
		buf_append_byte(&member->text, '.');
	}
}

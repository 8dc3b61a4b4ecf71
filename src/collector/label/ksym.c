/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/label/ksym.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/buf.h"

struct ksym {
	uint64_t address;
	size_t name_at; /* in names, which are in the file's order */
};

struct ksyms {
	struct ksym *symbols;
	size_t n;
	struct buf names;
};

static int by_address(const void *left, const void *right)
{
	const struct ksym *a = left, *b = right;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return a->name_at < b->name_at ? -1 : a->name_at > b->name_at;
}

static int add(struct ksyms *ksyms, uint64_t address, const char *name)
{
	if (!(ksyms->n & (ksyms->n + 1)) || !ksyms->symbols) {
		struct ksym *grown = reallocarray(ksyms->symbols, 2 * (ksyms->n + 1), sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		ksyms->symbols = grown;
	}
	ksyms->symbols[ksyms->n++] = (struct ksym){ address, ksyms->names.size };
	buf_append(&ksyms->names, name, strlen(name) + 1);
	return buf_error(&ksyms->names);
}

int ksyms_new(const char *path, struct ksyms **ret_ksyms)
{
	_cleanup_(ksyms_freep) struct ksyms *ksyms = calloc(1, sizeof(*ksyms));
	_cleanup_(fclosep) FILE *f = fopen(path, "re");
	char line[1024];

	if (!ksyms)
		return -ENOMEM;
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		unsigned long long address;
		char type, name[512];
		int err;

		/* Functions only: text, weak text. */
		if (sscanf(line, "%llx %c %511s", &address, &type, name) != 3 || !address || !strchr("tTwW", type))
			continue;
		err = add(ksyms, address, name);
		if (err)
			return err;
	}
	if (!ksyms->n)
		return -ENODATA;
	qsort(ksyms->symbols, ksyms->n, sizeof(*ksyms->symbols), by_address);
	*ret_ksyms = TAKE_PTR(ksyms);
	return 0;
}

struct ksyms *ksyms_free(struct ksyms *ksyms)
{
	if (!ksyms)
		return NULL;
	free(ksyms->symbols);
	buf_done(&ksyms->names);
	free(ksyms);
	return NULL;
}

const char *ksyms_find(const struct ksyms *ksyms, uint64_t address)
{
	size_t low = 0, high = ksyms->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ksyms->symbols[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? (const char *)ksyms->names.data + ksyms->symbols[low - 1].name_at : NULL;
}

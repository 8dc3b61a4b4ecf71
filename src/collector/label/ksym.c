/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/label/ksym.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"
#include "util/buf.h"
#include "util/hash.h"

#define PAGE_BYTES 4096 /* the least that an architecture has */

struct ksym {
	uint64_t address;
	/* in names, which are in the file's order; 0: not a function, only an end of one */
	size_t name_at;
	uint32_t module;     /* a hash of its name; symbols of the kernel itself have one too */
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

static int add_symbol(struct ksyms *ksyms, uint64_t address, const char *name, const char *module)
{
	uint32_t module_hash = (uint32_t)hash_bytes(module, strlen(module));
	const struct ksym symbol = { address, name ? ksyms->names.size : 0, module_hash };

	if (name)
		buf_append(&ksyms->names, name, strlen(name) + 1);
	return buf_error(&ksyms->names) ?: array_append(&ksyms->symbols, &ksyms->n, &symbol);
}

static int read_lines(struct ksyms *ksyms, FILE *f)
{
	char line[1024];
	int err = 0;

	buf_append(&ksyms->names, "", 1); /* no name lies at 0 */
	while (!err && fgets(line, sizeof(line), f)) {
		char type, name[512], module[64] = "";
		unsigned long long address;

		if (sscanf(line, "%llx %c %511s %63s", &address, &type, name, module) < 3 || !address)
			continue;
		/* Functions are text, weak text. */
		err = add_symbol(ksyms, address, strchr("tTwW", type) ? name : NULL, module);
	}
	return err;
}

int ksyms_new(FILE *f, struct ksyms **ret_ksyms)
{
	_cleanup_(ksyms_freep) struct ksyms *ksyms = calloc(1, sizeof(*ksyms));
	int err;

	if (!ksyms)
		return -ENOMEM;
	if (!f)
		return -EBADF;
	rewind(f);
	err = read_lines(ksyms, f);
	if (err)
		return err;
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
	const struct ksym *found;
	bool is_last;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ksyms->symbols[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || !ksyms->symbols[low - 1].name_at)
		return NULL;
	found = &ksyms->symbols[low - 1];
	is_last = low == ksyms->n || found[1].module != found->module;
	if (is_last && address / PAGE_BYTES != found->address / PAGE_BYTES)
		return NULL;
	return (const char *)ksyms->names.data + found->name_at;
}

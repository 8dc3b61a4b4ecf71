/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "util/ini.h"
#include "util/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(int is_true)
{
	if (!is_true)
		abort();
}

/* What every reader of a file may count on, whatever the file was. */
static void check_entry(const struct ini_file *file, const struct ini_entry *entry)
{
	static const char name[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";

	demand(entry->line > 0 && entry->section && *entry->section && entry->argument);
	demand(!entry->section[strspn(entry->section, name)]);
	demand(!entry->key == !entry->value);
	if (entry->key) {
		demand(*entry->key && !entry->key[strspn(entry->key, name)]);
		demand(strlen(entry->key) + strlen(entry->value) < INI_LINE_BYTES);
		for (const char *at = entry->value; *at; at += utf8_bytes(at, strlen(at)))
			demand(utf8_bytes(at, strlen(at)) && (*at == '\t' || !utf8_is_control(at)));
	}
	if (file->n_entries < 100)
		demand(ini_find_earlier(file, entry) < entry);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(fclosep) FILE *f = size ? fmemopen((void *)data, size, "r") : NULL;
	_cleanup_(ini_file_freep) struct ini_file *file = NULL;
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;

	if (!f)
		return 0;
	demand(ini_read(f, "fuzz", &diag, &file) == 0);
	for (size_t i = 0; i < file->n_entries; i++)
		check_entry(file, &file->entries[i]);
	demand(diag.n_errors <= INI_MISTAKES + 1);
	return 0;
}

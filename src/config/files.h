/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Finds and opens the files of the configuration, in the order that config.h describes. */

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>

#include "util/setting-table.h"

/* For scandir(3): is it NAME.conf, and not hidden, as an editor's files are? */
int config_is_file(const struct dirent *entry);
/* Paths in the order of reading, for setting_list_clear(). A directory that cannot be read goes to diag. -ENOMEM. */
int config_files_find(const char *const *roots, struct diag *diag, struct setting_list *ret_paths);

/*
 * Opens a file without waiting for it. 0 with *ret_f NULL: it is empty by design (/dev/null), or
 * there is a mistake, which is in diag now. is_named: a person gave its name, so it may also be a
 * pipe. -errno, which is not in diag.
 */
int config_file_open(const char *path, bool is_named, struct diag *diag, FILE **ret_f);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The file of a uprobe or USDT. Without "/", it is a library or a program in one of the usual
 * directories: libc, libc.so.6, bash.
 */

#include <stdbool.h>
#include <stdint.h>

#include "collector/hook/mark.h"
#include "collector/hook/target.h"
#include "util/buf.h"

/* The path of the file of a section, and what follows it there. NULL: no such file is found. */
const char *file_split(const char *section, char path[TARGET_BYTES]);
/* Another number for another file, or for other content, in the same place. 0: there is none. */
uint64_t file_identity(const char *section);
/*
 * Can a program of this section be attached to its file? lack: else, why not. What cannot be read
 * is believed.
 */
bool file_has(const char *section, struct buf *lack);
/*
 * Where a function is in a file, also if several versions of its name are there. 0: in none or
 * several places.
 */
uint64_t file_offset(const char *path, const char *function);
/*
 * The places of the USDT FILE:PROVIDER:NAME, to be freed. -ENOENT: no such file; or -errno of
 * marks_find().
 */
int file_find_marks(const char *target, struct mark **ret_marks, size_t *ret_n);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whose files are believed. What bpfpush reads decides what runs in the kernel, so nobody may be
 * able to write it who could not do as much without bpfpush: only root, the user that ran sudo
 * (SUDO_UID), and whoever can write the program itself, as in a build tree. The service's own user
 * cannot: one who took the service over would choose what its next start loads. Users without
 * privileges may have their own files as they like.
 */

#include <stdbool.h>

#include "util/diag.h"

/* Reports a directory that others may write. -errno: it cannot be opened, which is not reported. */
int trust_check_directory(const char *path, struct diag *diag);
/*
 * Opens a regular file or /dev/null, and checks it. is_named: a person gave its name, so it may
 * also be a pipe, whose writer is waited for. -errno, which is not reported; -EOPNOTSUPP: it is a
 * device or a pipe.
 */
int trust_open(const char *path, bool is_named, struct diag *diag, FILE **ret_f);

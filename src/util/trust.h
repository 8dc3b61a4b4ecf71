/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whose files are believed. What bpfpush reads decides what runs in the kernel, so nobody may be able to write it
 * who could not do as much without bpfpush: only root, the user that ran sudo (SUDO_UID), and whoever can write the
 * program itself, as in a build tree. The service's own user cannot: one who took the service over would choose what
 * its next start loads. Users without privileges may have their own files as they like.
 */

#include "util/diag.h"

/* Reports an open file or directory that others may write. path: what the message calls it. */
void trust_check(int fd, const char *path, struct diag *diag);
/* The same for a directory, if it can be opened. */
void trust_check_directory(const char *path, struct diag *diag);
/* Opens a regular file for reading, and checks it. The descriptor, or -errno, which is not reported. */
int trust_open(const char *path, struct diag *diag);

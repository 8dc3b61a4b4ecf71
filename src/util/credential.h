/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Files that systemd hands to the service (systemd.exec(5), "Credentials"). A setting names one as
 * a unit does, %d/NAME, or as a shell does, ${CREDENTIALS_DIRECTORY}/NAME.
 */

#include <stdbool.h>

/* The NAME in path, or NULL: it is an ordinary path. */
const char *credential_name(const char *path);
/*
 * Where the file of path is, for free(): an ordinary path stays. A process without credentials of
 * its own, as one that is started by hand, gets the place where those of bpfpush.service are. NULL:
 * no memory.
 */
char *credential_path(const char *path);
/* Does this process run as a service, so that a credential that it does not have is missing? */
bool credential_is_due(void);

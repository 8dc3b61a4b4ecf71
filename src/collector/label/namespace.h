/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "util/buf.h"

/*
 * What the namespaces of this process hide of the machine, in one sentence, with the options of podman and docker that
 * cure it; nothing, if they hide nothing. is_part: only a part of all cgroups can be seen. Network namespaces have no
 * number that is known, and do not hide names.
 */
void namespaces_complain(bool is_part, struct buf *out);

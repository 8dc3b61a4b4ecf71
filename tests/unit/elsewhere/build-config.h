/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Found before the build's own. ELSEWHERE is a directory that the test may fill. */

#define VERSION	      "0"
#define COLLECTOR_DIR ELSEWHERE "/lib/collectors"
#define SYSCONFDIR    ELSEWHERE "/etc"

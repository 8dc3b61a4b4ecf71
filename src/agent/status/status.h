/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What an operator is told of a running agent: one line to the service manager (sd_notify(3)), soon
 * after each change and not more often than once a second, and a page to each client of the socket
 * "status" in $RUNTIME_DIRECTORY.
 */

#include <stdbool.h>

#include "util/cleanup.h"

struct agent;
struct status;

/*
 * After the exporters are opened; agent is borrowed. From here on, the manager's watchdog hears
 * that all is well while collections come. That there can be no socket is logged, and not an error.
 * reload: looks at the configuration again; true: it is right. -errno.
 */
int status_new(struct agent *agent, bool (*reload)(struct agent *agent),
	       struct status **ret_status);
void status_free(struct status *status);

/* Something has changed. status may be NULL. */
void status_changed(struct status *status);
/*
 * phase: "READY=1", "STOPPING=1"; told with the line at once, or as soon as the manager reads
 * again.
 */
void status_say(struct status *status, const char *phase);

DEFINE_CLEANUP(struct status *, status_free);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the service manager is told (sd_notify(3)). sd_notify() itself waits as long as nobody reads the socket; this
 * does not. What cannot be sent is sent, in its latest state, as soon as it can be.
 */

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "util/cleanup.h"

struct notify;

/*
 * From here on, the manager's watchdog hears that all is well whenever is_alive(user) says so. *ret_notify is NULL
 * where nobody wants to know. -errno.
 */
int notify_new(sd_event *event, bool (*is_alive)(void *user), void *user, struct notify **ret_notify);
struct notify *notify_free(struct notify *notify);

/* phase: "READY=1", "STOPPING=1" or NULL: as it was. The rest is the status. notify may be NULL. */
void notify_say(struct notify *notify, const char *phase, const char *format, ...) _printf_(3, 4);

DEFINE_CLEANUP(struct notify *, notify_free);

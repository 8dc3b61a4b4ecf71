/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unit.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "util/cleanup.h"

#define MANAGER	    "org.freedesktop.systemd1"
#define MANAGER_AT  "/org/freedesktop/systemd1"
#define UNIT_AT	    MANAGER_AT "/unit/bpfpush_2eservice"
#define PATIENCE_US (25 * 1000 * 1000) /* systemd may be reading its files */

/* As systemctl(1): root talks to systemd itself, which also works where no message bus runs. */
static int open_bus(sd_bus **ret_bus)
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	int err = geteuid() ? -EPERM : sd_bus_new(&bus);

	err = err < 0 ? err : sd_bus_set_address(bus, "unix:path=/run/systemd/private");
	err = err < 0 ? err : sd_bus_start(bus);
	if (err < 0)
		err = sd_bus_open_system(&bus);
	err = err < 0 ? err : sd_bus_set_method_call_timeout(bus, PATIENCE_US);
	*ret_bus = err < 0 ? NULL : TAKE_PTR(bus);
	return err;
}

/* To be freed. */
static char *property_text(sd_bus *bus, const char *interface, const char *name)
{
	char *text = NULL;

	return sd_bus_get_property_string(bus, MANAGER, UNIT_AT, interface, name, NULL, &text) < 0 ?
	       NULL : text;
}

/* Of the service. */
static int property_number(sd_bus *bus, const char *name, char type, void *ret_number)
{
	int err = sd_bus_get_property_trivial(bus, MANAGER, UNIT_AT, MANAGER ".Service", name, NULL, type,
					      ret_number);

	return err < 0 ? err : 0;
}

char *unit_state(void)
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;

	return open_bus(&bus) < 0 ? NULL : property_text(bus, MANAGER ".Unit", "ActiveState");
}

/* *ret_bus: if systemd has loaded the unit. */
static int open_unit(sd_bus **ret_bus)
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	_cleanup_(freep) char *state = NULL;
	int err = open_bus(&bus);

	if (err < 0)
		return err;
	state = property_text(bus, MANAGER ".Unit", "LoadState");
	if (!state || strcmp(state, "loaded"))
		return -ENOENT;
	*ret_bus = TAKE_PTR(bus);
	return 0;
}

int unit_limits(uint64_t *ret_open, uint64_t *ret_kept)
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	uint32_t kept = 0;
	int err = open_unit(&bus);

	err = err ?: property_number(bus, "LimitNOFILESoft", 't', ret_open);
	err = err ?: property_number(bus, "FileDescriptorStoreMax", 'u', &kept);
	*ret_kept = kept;
	return err;
}

int unit_rights(uint64_t *ret_rights)
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	_cleanup_(freep) char *user = NULL;
	bool is_root;
	int err = open_unit(&bus);

	if (err < 0)
		return err;
	user = property_text(bus, MANAGER ".Service", "User");
	if (!user)
		return -ENOENT;
	is_root = !*user || !strcmp(user, "root") || !strcmp(user, "0");
	return property_number(bus, is_root ? "CapabilityBoundingSet" : "AmbientCapabilities", 't', ret_rights);
}

int unit_apply(struct buf *why)
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *job = NULL;
	sd_bus_error error = SD_BUS_ERROR_NULL;
	int err = open_bus(&bus);

	if (err >= 0)
		err = sd_bus_call_method(bus, MANAGER, MANAGER_AT, MANAGER ".Manager", "Reload",
					 &error, NULL, "");
	if (err >= 0)
		err = sd_bus_call_method(bus, MANAGER, MANAGER_AT, MANAGER ".Manager", "TryRestartUnit", &error, &job, "ss",
					 UNIT_NAME, "replace");
	if (err < 0)
		buf_append_text(why, error.message ?: strerror(-err));
	sd_bus_error_free(&error);
	return err < 0 ? err : 0;
}

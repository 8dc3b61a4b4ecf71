/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "collector/label/unit.h"
#include "config/config.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct {
	const char *path, *attribute, *value;
} names[] = {
	/* nothing that has a name of its own */
	{ "/", "process.linux.cgroup", "/" },
	{ "/system.slice", "process.linux.cgroup", "/system.slice" },
	{ "/user.slice/user-1000.slice", "process.linux.cgroup", "/user.slice/user-1000.slice" },
	{ "/mine/theirs", "process.linux.cgroup", "/mine/theirs" },
	{ "/.service", "process.linux.cgroup", "/.service" },
	{ "/a.servicex", "process.linux.cgroup", "/a.servicex" },
	/* units, at whatever depth, and what lies below them */
	{ "/init.scope", "systemd.unit.name", "init.scope" },
	{ "/system.slice/nginx.service", "systemd.unit.name", "nginx.service" },
	{ "/system.slice/nginx.service/worker/1", "systemd.unit.name", "nginx.service" },
	{ "/system.slice/system-getty.slice/getty@tty1.service", "systemd.unit.name", "getty@tty1.service" },
	{ "/system.slice/dbus.socket", "systemd.unit.name", "dbus.socket" },
	{ "/system.slice/home.mount", "systemd.unit.name", "home.mount" },
	{ "/system.slice/dev-sda2.swap", "systemd.unit.name", "dev-sda2.swap" },
	{ "/user.slice/user-1000.slice/session-3.scope", "systemd.unit.name", "session-3.scope" },
	{ "/system.slice/outer.service/inner.service", "systemd.unit.name", "outer.service" },
	/* a user's manager and the units that it runs */
	{ "/user.slice/user-1000.slice/user@1000.service", "systemd.unit.name", "user@1000.service" },
	{ "/user.slice/user-1000.slice/user@1000.service/init.scope", "systemd.unit.name", "user@1000.service" },
	{ "/user.slice/user-1000.slice/user@1000.service/app.slice", "systemd.unit.name", "user@1000.service" },
	{ "/user.slice/user-1000.slice/user@1000.service/app.slice/firefox.service", "systemd.unit.name", "user@1000.service/firefox.service" },
	{ "/user.slice/user-1000.slice/user@1000.service/app.slice/app-a.slice/b@1.service/x", "systemd.unit.name", "user@1000.service/b@1.service" },
	{ "/user.slice/user-1000.slice/user@1000.service/app.slice/_cpu.service", "systemd.unit.name", "user@1000.service/cpu.service" },
	/* there a user makes what he likes, so it is neither a unit of the system nor a container */
	{ "/user.slice/user-1000.slice/user@1000.service/nginx.service", "systemd.unit.name", "user@1000.service/nginx.service" },
	{ "/user.slice/user-1000.slice/user@1000.service/user@0.service/a.service", "systemd.unit.name", "user@1000.service/user@0.service" },
	{ "/user.slice/user-1000.slice/user@1000.service/" ID, "systemd.unit.name", "user@1000.service" },
	{ "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope/container", "systemd.unit.name",
	  "user@1000.service/libpod-" ID ".scope" },
	/* escapes: the underscore is cgroupfs's, the rest is the unit's own name */
	{ "/system.slice/_cpu.service", "systemd.unit.name", "cpu.service" },
	{ "/system.slice/__a.service", "systemd.unit.name", "_a.service" },
	{ "/system.slice/systemd-fsck@dev-disk-by\\x2duuid-1.service", "systemd.unit.name", "systemd-fsck@dev-disk-by\\x2duuid-1.service" },
	/* containers of docker, podman, cri-o, containerd, in slices or without */
	{ "/system.slice/docker-" ID ".scope", "container.id", ID },
	{ "/system.slice/docker-" ID ".scope/init.scope", "container.id", ID },
	{ "/docker/" ID, "container.id", ID },
	{ "/machine.slice/libpod-" ID ".scope/container", "container.id", ID },
	{ "/machine.slice/libpod-conmon-" ID ".scope", "container.id", ID },
	{ "/kubepods.slice/kubepods-pod1.slice/crio-" ID ".scope", "container.id", ID },
	{ "/kubepods.slice/kubepods-pod1.slice/cri-containerd-" ID ".scope", "container.id", ID },
	{ "/kubepods/burstable/pod1/" ID, "container.id", ID },
	{ "/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:" ID, "container.id", ID },
	/* nspawn: the machine, whatever runs inside */
	{ "/machine.slice/machine-debian.scope", "systemd.unit.name", "machine-debian.scope" },
	{ "/machine.slice/systemd-nspawn@debian.service/payload/system.slice/ssh.service", "systemd.unit.name",
	  "systemd-nspawn@debian.service" },
	/* 63, 65 digits and capitals are no id */
	{ "/docker/0" ID, "process.linux.cgroup", "/docker/0" ID },
	{ "/docker/23456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "process.linux.cgroup",
	  "/docker/23456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" },
	{ "/docker/ABCDEF6789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "process.linux.cgroup",
	  "/docker/ABCDEF6789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" },
};

static void a_path_means_a_unit_a_container_or_itself(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char text[512];

		assert_string_equal(unit_name(names[i].path, text, sizeof(text)), names[i].attribute);
		assert_string_equal(text, names[i].value);
	}
}

static void a_name_longer_than_its_room_is_cut(void **state)
{
	char text[8];

	assert_string_equal(unit_name("/system.slice/nginx.service", text, sizeof(text)), "systemd.unit.name");
	assert_string_equal(text, "nginx.s");
	assert_string_equal(unit_name("/docker/" ID, text, sizeof(text)), "container.id");
	assert_string_equal(text, "0123456");
	assert_string_equal(unit_name("/a/long/path", text, sizeof(text)), "process.linux.cgroup");
	assert_string_equal(text, "/a/long");
}

static const char *choose(const struct config_agent *agent, const char *name)
{
	return unit_choose(&agent->names.units, name) ?: "(unwanted)";
}

static void set(struct config_agent *agent, const char *key, const char *value)
{
	const struct assignment assignment = { key, value, "c", 1, 0 };
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;

	assert_ok(setting_table_set(&config_agent_settings, agent, &assignment, &diag));
	assert_string_equal(buf_text(&diag.text), "");
}

static const struct {
	const char *name, *chosen; /* chosen NULL: it keeps its own */
} folded[] = {
	{ "session-3.scope", "session-*.scope" },
	{ "session-c1.scope", "session-*.scope" },
	{ "run-u42.service", "run-*" },
	{ "run-r6dfb8e25bfd0418d9ea2ae6a0e3a0d5f.scope", "run-*" },
	{ "run-p4711-i4811.service", "run-*" },
	{ "ssh@4-192.0.2.1:22-192.0.2.2:50000.service", "ssh*@*" },
	{ "sshd@4-192.0.2.1:22-192.0.2.2:50000.service", "ssh*@*" },
	{ "systemd-coredump@2-4711-0.service", "*coredump@*" },
	{ "dbus-:1.2-org.freedesktop.problems@0.service", "dbus-:*" },
	{ "polkit-agent-helper@1-2-1000.service", "polkit-*@*" },
	{ "user@1000.service/app-gnome-firefox-4711.scope", "user@*/app-*" },
	{ "user@1000.service/run-u1.service", "user@*/run-*" },
	{ "user@1000.service/vte-spawn-68d635ed-58e5-4522-95ee-2deb64da991a.scope", "user@*/vte-*" },
	/* what lasts */
	{ "init.scope", NULL },
	{ "ssh.service", NULL },
	{ "sshd.service", NULL },
	{ "cron.service", NULL },
	{ "dbus.service", NULL },
	{ "polkit.service", NULL },
	{ "packagekit.service", NULL },
	{ "getty@tty1.service", NULL },
	{ "user@1000.service", NULL },
	{ "user@1000.service/pipewire.service", NULL },
	{ "machine-debian.scope", NULL },
	{ "systemd-nspawn@debian.service", NULL },
	{ "postgresql@15-main.service", NULL },
	{ ID, NULL },
	{ "/", NULL },
	{ "/mine/theirs", NULL },
};

static void units_with_numbers_are_folded_by_default(void **state)
{
	struct config_agent agent = { 0 };

	assert_ok(setting_table_init(&config_agent_settings, &agent));
	for (size_t i = 0; i < ARRAY_SIZE(folded); i++)
		assert_string_equal(choose(&agent, folded[i].name), folded[i].chosen ?: folded[i].name);
	set(&agent, "fold_units", "job-?.service");
	assert_string_equal(choose(&agent, "job-1.service"), "job-?.service");
	assert_string_equal(choose(&agent, "job-12.service"), "job-12.service");
	assert_string_equal(choose(&agent, "session-3.scope"), "session-3.scope");
	set(&agent, "fold_units", "");
	assert_string_equal(choose(&agent, "job-1.service"), "job-1.service");
	setting_table_done(&config_agent_settings, &agent);
}

static void patterns_choose_units(void **state)
{
	struct config_agent agent = { 0 };

	assert_ok(setting_table_init(&config_agent_settings, &agent));
	set(&agent, "include_units", "nginx.service, postgres*  session-*.scope /mine/*");
	set(&agent, "exclude_units", "postgresql@1*.service session-7.scope disk\\x2d*");
	assert_string_equal(choose(&agent, "nginx.service"), "nginx.service");
	assert_string_equal(choose(&agent, "nginx.service2"), "(unwanted)");
	assert_string_equal(choose(&agent, "postgresql.service"), "postgresql.service");
	assert_string_equal(choose(&agent, "postgresql@15.service"), "(unwanted)");
	assert_string_equal(choose(&agent, "/mine/theirs/deeper"), "/mine/theirs/deeper");
	/* The name counts that a unit has before it is folded. */
	assert_string_equal(choose(&agent, "session-6.scope"), "session-*.scope");
	assert_string_equal(choose(&agent, "session-7.scope"), "(unwanted)");
	set(&agent, "include_units", "");
	assert_string_equal(choose(&agent, "disk\\x2d1.mount"), "(unwanted)");
	assert_string_equal(choose(&agent, "diskx2d1.mount"), "diskx2d1.mount");
	setting_table_done(&config_agent_settings, &agent);
}

static void a_cgroup_of_our_own_is_a_unit(void **state)
{
	static char all[] = "*";
	const struct unit_choice choice = { .exclude = { (char *[]){ all }, 1, false }, .own = "own-12" };
	static const struct {
		const char *path;
		bool is_own;
	} paths[] = {
		{ "/own-12", true },		  { "/a.service/own-12", true },   { "/a.scope/own-12/b.service/x", true },
		{ "/a.service/own-123", false }, { "/my-own-12/own-123", false }, { "/x/own-1", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		const char *attribute;
		char *text;

		assert_ok(unit_of_path(&choice, paths[i].path, &attribute, &text));
		assert_int_equal(text != NULL, paths[i].is_own);
		if (text) {
			assert_string_equal(text, "own-12");
			assert_string_equal(attribute, "process.linux.cgroup");
		}
		free(text);
	}
}

static void the_topmost_cgroup_of_a_unit_is_not_within_it(void **state)
{
	static const struct {
		const char *path, *own;
		bool is_top;
	} cases[] = {
		{ "/", NULL, true },
		{ "/system.slice", NULL, true },
		{ "/mine/theirs", NULL, true },
		{ "/system.slice/nginx.service", NULL, true },
		{ "/system.slice/nginx.service/worker", NULL, false },
		{ "/system.slice/outer.service/inner.service", NULL, false },
		{ "/user.slice/user-1000.slice/user@1000.service", NULL, true },
		{ "/user.slice/user-1000.slice/user@1000.service/app.slice", NULL, false },
		{ "/user.slice/user-1000.slice/user@1000.service/init.scope", NULL, false },
		{ "/user.slice/user-1000.slice/user@1000.service/app.slice/a.service", NULL, true },
		{ "/system.slice/docker-" ID ".scope", NULL, true },
		{ "/system.slice/docker-" ID ".scope/init.scope", NULL, false },
		{ "/a.service/own", "own", true },
		{ "/a.service/own/b.service", "own", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct unit_choice choice = { .own = cases[i].own };

		assert_int_equal(unit_is_top(&choice, cases[i].path), cases[i].is_top);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_topmost_cgroup_of_a_unit_is_not_within_it),
		cmocka_unit_test(a_path_means_a_unit_a_container_or_itself),
		cmocka_unit_test(a_name_longer_than_its_room_is_cut),
		cmocka_unit_test(units_with_numbers_are_folded_by_default),
		cmocka_unit_test(patterns_choose_units),
		cmocka_unit_test(a_cgroup_of_our_own_is_a_unit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

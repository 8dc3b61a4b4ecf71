/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "collector/label/unit.h"
#include "config/config.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID2 "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

static const struct {
	const char *path, *unit, *container; /* neither: its name is process.linux.cgroup, … */
	const char *cgroup;		     /* … which is this, or NULL: the whole path */
} names[] = {
	/* nothing that has a name of its own */
	{ "/" },
	{ "/system.slice" },
	{ "/user.slice/user-1000.slice" },
	{ "/mine/theirs" },
	{ "/.service" },
	{ "/a.servicex" },
	{ "/openrc.web" },
	/* units, at whatever depth, and what lies below them */
	{ "/init.scope", "init.scope" },
	{ "/system.slice/nginx.service", "nginx.service" },
	{ "/system.slice/nginx.service/worker/1", "nginx.service" },
	{ "/system.slice/system-getty.slice/getty@tty1.service", "getty@tty1.service" },
	{ "/system.slice/dbus.socket", "dbus.socket" },
	{ "/system.slice/home.mount", "home.mount" },
	{ "/system.slice/dev-sda2.swap", "dev-sda2.swap" },
	{ "/user.slice/user-1000.slice/session-3.scope", "session-3.scope" },
	{ "/system.slice/outer.service/inner.service", "outer.service" },
	{ "/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0", "slurmstepd.scope" },
	{ "/system.slice/apptainer-4711.scope", "apptainer-4711.scope" },
	{ "/nomad.slice/share.slice/7f0c6a3e-1b2d-4c5e-8f90-a1b2c3d4e5f6.web.scope",
	  "7f0c6a3e-1b2d-4c5e-8f90-a1b2c3d4e5f6.web.scope" },
	{ "/mine/theirs.service/x", "theirs.service" },
	/* what is in a unit called the cgroups there what it liked */
	{ "/system.slice/runner.service/" ID, "runner.service" },
	{ "/system.slice/runner.service/docker/" ID, "runner.service" },
	{ "/system.slice/runner.service/docker-" ID ".scope", "runner.service" },
	{ "/system.slice/runner.service/a.slice/b.service", "runner.service" },
	{ "/system.slice/runner.service/a.slice:b:" ID, "runner.service" },
	{ "/system.slice/runner.service/lxc.payload.c1/x", "runner.service" },
	{ "/system.slice/runner.service/containerd.service/" ID, "runner.service" },
	{ "/system.slice/my-user@1000.service/a.service", "my-user@1000.service" },
	{ "/system.slice/user@.service/a.service", "user@.service" },
	{ "/user.slice/user-1000.slice/session-3.scope/" ID, "session-3.scope" },
	/* a container that is a unit: Quadlet, podman --cgroups=split */
	{ "/system.slice/shop.service/libpod-payload-" ID, "shop.service" },
	{ "/system.slice/shop.service/runtime", "shop.service" },
	{ "/user.slice/user-1000.slice/user@1000.service/app.slice/shop.service/libpod-payload-" ID,
	  "user@1000.service/shop.service" },
	/* a user's manager and the units that it runs */
	{ "/user.slice/user-1000.slice/user@1000.service", "user@1000.service" },
	{ "/user.slice/user-1000.slice/user@1000.service/init.scope", "user@1000.service" },
	{ "/user.slice/user-1000.slice/user@1000.service/app.slice", "user@1000.service" },
	{ "/user.slice/user-1000.slice/user@1000.service/app.slice/firefox.service", "user@1000.service/firefox.service" },
	{ "/user.slice/user-1000.slice/user@1000.service/app.slice/app-a.slice/b@1.service/x", "user@1000.service/b@1.service" },
	{ "/user.slice/user-1000.slice/user@1000.service/app.slice/_cpu.service", "user@1000.service/cpu.service" },
	/* there a user makes what he likes, so it is neither a unit of the system nor a container nor a guest */
	{ "/user.slice/user-1000.slice/user@1000.service/nginx.service", "user@1000.service/nginx.service" },
	{ "/user.slice/user-1000.slice/user@1000.service/user@0.service/a.service", "user@1000.service/user@0.service" },
	{ "/user.slice/user-1000.slice/user@1000.service/" ID, "user@1000.service" },
	{ "/user.slice/user-1000.slice/user@1000.service/docker/" ID, "user@1000.service" },
	{ "/user.slice/user-1000.slice/user@1000.service/a.slice:b:" ID, "user@1000.service" },
	{ "/user.slice/user-1000.slice/user@1000.service/containerd.service/" ID, "user@1000.service/containerd.service" },
	{ "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope/container",
	  "user@1000.service/libpod-" ID ".scope" },
	{ "/user.slice/user-1000.slice/user@1000.service/lxc.payload.c1/system.slice/cron.service", "user@1000.service" },
	{ "/user.slice/user-1000.slice/user@1000.service/lxc/c1/cron.service", "user@1000.service" },
	{ "/user.slice/user-1000.slice/user@1000.service/machine.slice/machine-box.scope/a.service",
	  "user@1000.service/machine-box.scope" },
	/* escapes: the underscore is cgroupfs's, the rest is the unit's own name */
	{ "/system.slice/_cpu.service", "cpu.service" },
	{ "/system.slice/__a.service", "_a.service" },
	{ "/system.slice/systemd-fsck@dev-disk-by\\x2duuid-1.service", "systemd-fsck@dev-disk-by\\x2duuid-1.service" },
	/* Docker and what is in its containers, with systemd and without; kind and k3d are of this kind */
	{ "/system.slice/docker-" ID ".scope", NULL, ID },
	{ "/system.slice/docker-" ID ".scope/init.scope", NULL, ID },
	{ "/system.slice/docker-" ID ".scope/kubelet.slice/kubelet-kubepods.slice/cri-containerd-" ID2 ".scope", NULL, ID },
	{ "/docker/" ID, NULL, ID },
	{ "/docker/" ID "/docker/" ID2, NULL, ID },
	{ "/docker/" ID "/system.slice/cron.service", NULL, ID },
	{ "/mine/docker/" ID, NULL, ID },
	{ "/docker/buildkit/k3v9x2m1q8r7t6y5u4i3o2p1a" },
	{ "/docker/cron.service" },
	{ "/mine/" ID, NULL, ID },
	/* Podman: the slice of a pod is no container, nor are its digits without systemd; conmon is a unit */
	{ "/machine.slice/libpod-" ID ".scope/container", NULL, ID },
	{ "/machine.slice/machine-libpod_pod_" ID2 ".slice/libpod-" ID ".scope/container", NULL, ID },
	{ "/machine.slice/machine-libpod_pod_" ID2 ".slice" },
	{ "/libpod_parent/" ID2 "/libpod-" ID, NULL, ID },
	{ "/libpod_parent/libpod-" ID "/ctr", NULL, ID },
	{ "/libpod_parent/" ID2 },
	{ "/libpod_parent/conmon" },
	{ "/libpod-payload-" ID, NULL, ID },
	{ "/machine.slice/libpod-conmon-" ID ".scope", "libpod-conmon-" ID ".scope" },
	{ "/libpod_parent/libpod-conmon-" ID },
	/* Kubernetes */
	{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/cri-containerd-" ID ".scope", NULL, ID },
	{ "/kubepods.slice/kubepods-pod1.slice/crio-" ID ".scope/container", NULL, ID },
	{ "/kubepods.slice/kubepods-pod1.slice/crio-conmon-" ID ".scope", "crio-conmon-" ID ".scope" },
	{ "/kubepods.slice/kubepods-pod1.slice/docker-" ID ".scope", NULL, ID },
	{ "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1.slice" },
	{ "/kubepods/burstable/pod1/" ID, NULL, ID },
	{ "/kubepods/besteffort/pod1/crio-" ID, NULL, ID },
	{ "/kubepods/pod1/crio-conmon-" ID },
	{ "/kubelet/kubepods/pod1/" ID, NULL, ID },
	{ "/kubepods/pod1/kata_" ID, NULL, ID },
	{ "/kata_overhead/" ID, NULL, ID },
	{ "/kubepods-pod1.slice:cri-containerd:" ID, NULL, ID },
	/* a runtime's own service */
	{ "/system.slice/containerd.service", "containerd.service" },
	{ "/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:" ID, NULL, ID },
	{ "/system.slice/docker.service/docker/" ID, NULL, ID },
	{ "/system.slice/crio.service/x/crio-" ID, NULL, ID },
	{ "/system.slice/docker.service/docker/cron.service", "docker.service" },
	/* containerd alone, nerdctl, ECS */
	{ "/default/web" },
	{ "/default/" ID, NULL, ID },
	{ "/system.slice/nerdctl-" ID ".scope", NULL, ID },
	{ "/system.slice/containerd-" ID ".scope", NULL, ID },
	{ "/ecs/0123456789abcdef0123456789abcdef/" ID, NULL, ID },
	{ "/ecstasks.slice/ecstasks-0123456789abcdef0123456789abcdef.slice/docker-" ID ".scope", NULL, ID },
	/* nspawn and libvirt: the machine, whatever runs inside */
	{ "/machine.slice/machine-debian.scope", "machine-debian.scope" },
	{ "/machine.slice/machine-box.scope/payload/system.slice/cron.service", "machine-box.scope" },
	{ "/machine.slice/machine-box.scope/payload/docker/" ID, "machine-box.scope" },
	{ "/machine.slice/machine-box.scope/payload/user.slice/user@0.service/a.service", "machine-box.scope" },
	{ "/machine.slice/systemd-nspawn@debian.service/payload/system.slice/ssh.service", "systemd-nspawn@debian.service" },
	{ "/machine.slice/systemd-nspawn@debian.service/payload/docker-" ID ".scope", "systemd-nspawn@debian.service" },
	{ "/machine.slice/machine-qemu\\x2d7\\x2dweb.scope/libvirt/vcpu0", "machine-qemu\\x2d7\\x2dweb.scope" },
	{ "/machine.slice/machine-lxc\\x2d4711\\x2dbox.scope/system.slice/cron.service", "machine-lxc\\x2d4711\\x2dbox.scope" },
	{ "/machine/qemu-3-web.libvirt-qemu/emulator" },
	{ "/machine/lxc-4711-box.libvirt-lxc/system.slice/cron.service", NULL, NULL, "/machine/lxc-4711-box.libvirt-lxc" },
	{ "/qemu.slice/100.scope", "100.scope" },
	/* the path of a cgroup above */
	{ "/system.slice/shop.service/", "shop.service" },
	{ "/mine/theirs/", NULL, NULL, "/mine/theirs" },
	/* LXC, Incus and Proxmox: the guest, whatever runs inside */
	{ "/lxc.payload.c1" },
	{ "/lxc.payload.c1/.lxc", NULL, NULL, "/lxc.payload.c1" },
	{ "/lxc.payload.c1/init.scope", NULL, NULL, "/lxc.payload.c1" },
	{ "/lxc.payload.c1/system.slice/cron.service", NULL, NULL, "/lxc.payload.c1" },
	{ "/lxc.payload.c1/machine.slice/machine-box.scope", NULL, NULL, "/lxc.payload.c1" },
	{ "/lxc.payload.c1/user.slice/user-1000.slice/user@1000.service/a.service", NULL, NULL, "/lxc.payload.c1" },
	{ "/lxc.payload.c1/docker/" ID, NULL, NULL, "/lxc.payload.c1" },
	{ "/lxc.payload.c1/lxc.payload.c2/a.service", NULL, NULL, "/lxc.payload.c1" },
	{ "/lxc.payload.web.service/system.slice/cron.service", NULL, NULL, "/lxc.payload.web.service" },
	{ "/lxc.payload." ID "/a.service", NULL, NULL, "/lxc.payload." ID },
	{ "/lxc.payload.project_c1/ns/a.service", NULL, NULL, "/lxc.payload.project_c1" },
	{ "/lxc.payload/c1/a.service", NULL, NULL, "/lxc.payload/c1" },
	{ "/lxc.payload/docker/" ID, NULL, NULL, "/lxc.payload/docker" },
	{ "/lxc/101/ns/system.slice/cron.service", NULL, NULL, "/lxc/101" },
	{ "/lxc/" ID "/a.service", NULL, NULL, "/lxc/" ID },
	{ "/lxc/a.service", NULL, NULL, "/lxc/a.service" },
	{ "/lxc" },
	{ "/lxc/", NULL, NULL, "/lxc" },
	{ "/mine/lxc/101/ns/init.scope", NULL, NULL, "/mine/lxc/101" },
	{ "/lxc.monitor.c1" },
	{ "/lxc.monitor/101" },
	{ "/system.slice/lxc@c1.service/lxc.payload.c1/system.slice/cron.service", "lxc@c1.service" },
	/* 63, 65 digits, capitals, and digits that something else is around, are no id */
	{ "/docker/0" ID },
	{ "/docker/23456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" },
	{ "/docker/ABCDEF6789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" },
	{ "/docker/" ID "-" ID2 },
	{ "/docker/_" ID },
	{ "/mine/docker-" ID },
	{ "/mine/libpod-" ID "x" },
	{ "/a.slice:" ID },
	{ "/a.slice::" ID },
	{ "/system.slice/docker-0" ID ".scope", "docker-0" ID ".scope" },
	{ "/system.slice/xdocker-" ID ".scope", "xdocker-" ID ".scope" },
	{ "/system.slice/docker-" ID ".service", "docker-" ID ".service" },
	/* odd ones */
	{ "" },
	{ "//system.slice//a.service//b", "a.service" },
	{ "//lxc//101//a.service", NULL, NULL, "//lxc//101" },
	{ "/system.slice/..service", "..service" },
	{ "/system.slice/bad\xff.service", "bad\xff.service" },
	{ "/unknown/x" },
	{ "/*/#/*.slice:*:#" },
};

static void a_path_means_a_unit_a_container_or_itself(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *attribute = names[i].unit ? "systemd.unit.name" :
					names[i].container ? "container.id" : "process.linux.cgroup";
		char text[512];

		assert_string_equal(unit_name(names[i].path, text, sizeof(text)), attribute);
		assert_string_equal(text, names[i].unit ?: names[i].container ?: names[i].cgroup ?: names[i].path);
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
	{ "run-u42.service", "run-u[0-9]*" },
	{ "run-r6dfb8e25bfd0418d9ea2ae6a0e3a0d5f.scope", "run-r????????????????????????????????.s*" },
	{ "run-p4711-i4811.service", "run-p[0-9]*-i[0-9]*" },
	{ "ssh@4-192.0.2.1:22-192.0.2.2:50000.service", "ssh*@[0-9]*-*" },
	{ "sshd@4-192.0.2.1:22-192.0.2.2:50000.service", "ssh*@[0-9]*-*" },
	{ "systemd-coredump@2-4711-0.service", "systemd-coredump@[0-9]*-*" },
	{ "dbus-:1.2-org.freedesktop.problems@0.service", "dbus-:*" },
	{ "polkit-agent-helper@1-2-1000.service", "polkit-*@[0-9]*-*" },
	{ "libpod-conmon-" ID ".scope", "libpod-conmon-*.scope" },
	{ "crio-conmon-" ID ".scope", "crio-conmon-*.scope" },
	{ "snap.router.tool-11111111-2222-3333-4444-555555555555.scope", "snap.*.scope" },
	{ "11111111-2222-3333-4444-555555555555.web.scope", "[0-9a-f]???????" "-????" "-????" "-????" "-????????????.*.scope" },
	{ "apptainer-4711.scope", "apptainer-[0-9]*.scope" },
	{ "user@1000.service/app-gnome-firefox-4711.scope", "user@*/app-*.scope" },
	{ "user@1000.service/app-firefox@0123456789abcdef0123456789abcdef.service", "user@*/app-*@*" },
	{ "user@1000.service/gnome-launched-org.example.Files.desktop-4711.scope", "user@*/gnome-launched-*" },
	{ "user@1000.service/snap.editor.editor-11111111-2222-3333-4444-555555555555.scope",
	  "user@*/snap.*.scope" },
	{ "user@1000.service/dbus-:1.2-org.example.Files@17.service", "user@*/dbus-:*" },
	{ "user@1000.service/run-u1.service", "user@*/run-u[0-9]*" },
	{ "user@1000.service/vte-spawn-68d635ed-58e5-4522-95ee-2deb64da991a.scope", "user@*/vte-*" },
	{ "user@1000.service/tmux-spawn-68d635ed-58e5-4522-95ee-2deb64da991a.scope", "user@*/tmux-spawn-*" },
	/* what lasts */
	{ "user@1000.service/apptainer-4711.scope", "user@*/apptainer-[0-9]*.scope" },
	{ "user@1000.service/libpod-conmon-" ID ".scope", "user@*/libpod-conmon-*.scope" },
	{ "user@1000.service/x-coredump@1-2.service", NULL },
	{ "backup-web-eu-1-daily.x.scope", NULL },
	{ "run-web.service", NULL },
	{ "run-crawler.service", NULL },
	{ "run-reports.service", NULL },
	{ "run-p2p.service", NULL },
	{ "user@1000.service/run-web.service", NULL },
	{ "user@1000.service/app-server.service", NULL },
	{ "ssh-tunnel@office.service", NULL },
	{ "snap.router.daemon.service", NULL },
	{ "apptainer.service", NULL },
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
		{ "/system.slice/shop.service/libpod-payload-" ID, NULL, false },
		{ "/lxc.payload.c1", NULL, true },
		{ "/lxc.payload.c1/system.slice/cron.service", NULL, false },
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>

#include "alloc.h"
#include "collector/label/cgroup.h"
#include "tree.h"

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

		assert_string_equal(cgroup_name(names[i].path, text, sizeof(text)), names[i].attribute);
		assert_string_equal(text, names[i].value);
	}
}

static void a_name_longer_than_its_room_is_cut(void **state)
{
	char text[8];

	assert_string_equal(cgroup_name("/system.slice/nginx.service", text, sizeof(text)), "systemd.unit.name");
	assert_string_equal(text, "nginx.s");
	assert_string_equal(cgroup_name("/docker/" ID, text, sizeof(text)), "container.id");
	assert_string_equal(text, "0123456");
	assert_string_equal(cgroup_name("/a/long/path", text, sizeof(text)), "process.linux.cgroup");
	assert_string_equal(text, "/a/long");
}

static uint64_t make(const struct tree *tree, const char *name)
{
	struct stat status;

	tree_make_parents(tree_path(tree, name));
	mkdir(tree_path(tree, name), 0755);
	assert_ok(stat(tree_path(tree, name), &status));
	return status.st_ino;
}

static void assert_unknown(struct cgroups *cgroups, uint64_t id)
{
	const char *path = "";

	assert_int_equal(cgroups_get(cgroups, id, &path), 1);
	assert_null(path);
}

static void assert_name(struct cgroups *cgroups, uint64_t id, const char *attribute, const char *value)
{
	const char *path = NULL;
	char text[512];

	assert_ok(cgroups_get(cgroups, id, &path));
	assert_string_equal(cgroup_name(path, text, sizeof(text)), attribute);
	assert_string_equal(text, value);
}

static void ids_are_the_inodes_of_directories(void **state)
{
	_cleanup_(tree_done) struct tree tree;
	_cleanup_(cgroups_freep) struct cgroups *cgroups = NULL;
	uint64_t unit, slice;

	tree_init(&tree);
	unit = make(&tree, "system.slice/nginx.service");
	slice = make(&tree, "system.slice");
	tree_write(&tree, "system.slice/cgroup.procs", "1\n");
	assert_ok(cgroups_new(tree.path, &cgroups));
	assert_name(cgroups, unit, "systemd.unit.name", "nginx.service");
	assert_name(cgroups, slice, "process.linux.cgroup", "/system.slice");
	assert_name(cgroups, make(&tree, "."), "process.linux.cgroup", "/");
}

static void the_tree_is_walked_once_a_collection(void **state)
{
	_cleanup_(tree_done) struct tree tree;
	_cleanup_(cgroups_freep) struct cgroups *cgroups = NULL;
	uint64_t early, late;

	tree_init(&tree);
	early = make(&tree, "early.service");
	assert_ok(cgroups_new(tree.path, &cgroups));
	assert_ok(cgroups_walk(cgroups));
	late = make(&tree, "late.service");
	assert_name(cgroups, early, "systemd.unit.name", "early.service");
	assert_unknown(cgroups, late);
	/* The next collection looks for it again. */
	cgroups_begin(cgroups);
	assert_name(cgroups, late, "systemd.unit.name", "late.service");
}

static void what_is_gone_keeps_its_name(void **state)
{
	_cleanup_(tree_done) struct tree tree;
	_cleanup_(cgroups_freep) struct cgroups *cgroups = NULL;
	uint64_t id;

	tree_init(&tree);
	id = make(&tree, "a.slice/short.service");
	assert_ok(cgroups_new(tree.path, &cgroups));
	assert_ok(cgroups_walk(cgroups));
	assert_false(cgroups_is_gone(cgroups, id));
	assert_ok(rmdir(tree_path(&tree, "a.slice/short.service")));
	assert_false(cgroups_is_gone(cgroups, id)); /* looked for once a collection */
	cgroups_begin(cgroups);
	assert_true(cgroups_is_gone(cgroups, id));
	cgroups_begin(cgroups);
	assert_name(cgroups, id, "systemd.unit.name", "short.service");
	assert_true(cgroups_is_gone(cgroups, id));
}

static void another_of_the_same_path_is_another(void **state)
{
	_cleanup_(tree_done) struct tree tree;
	_cleanup_(cgroups_freep) struct cgroups *cgroups = NULL;
	uint64_t first, second;

	tree_init(&tree);
	first = make(&tree, "again.service");
	assert_ok(cgroups_new(tree.path, &cgroups));
	assert_ok(cgroups_walk(cgroups));
	assert_ok(rename(tree_path(&tree, "again.service"), tree_path(&tree, "kept")));
	second = make(&tree, "again.service");
	assert_true(cgroups_is_gone(cgroups, first));
	cgroups_begin(cgroups);
	assert_false(cgroups_is_gone(cgroups, second));
	assert_name(cgroups, second, "systemd.unit.name", "again.service");
}

/* The tree may be that of a namespace, which does not show all. */
static void an_id_that_nobody_knows_is_not_gone(void **state)
{
	_cleanup_(tree_done) struct tree tree;
	_cleanup_(cgroups_freep) struct cgroups *cgroups = NULL;
	uint64_t late;

	tree_init(&tree);
	assert_ok(cgroups_new(tree.path, &cgroups));
	assert_unknown(cgroups, 1);
	assert_false(cgroups_is_gone(cgroups, 1));
	/* It was made after the walk of this collection. */
	late = make(&tree, "late.service");
	assert_false(cgroups_is_gone(cgroups, late));
	cgroups_begin(cgroups);
	assert_false(cgroups_is_gone(cgroups, late));
	assert_ok(rmdir(tree_path(&tree, "late.service")));
	cgroups_begin(cgroups);
	assert_true(cgroups_is_gone(cgroups, late));
}

static void the_whole_tree_shows_what_is_gone(void **state)
{
	_cleanup_(fclosep) FILE *mounts = fopen("/proc/self/mounts", "re");
	_cleanup_(freep) char *root = cgroups_find_root(mounts);
	_cleanup_(cgroups_freep) struct cgroups *cgroups = NULL;
	struct stat status;

	if (!root || stat(root, &status) || status.st_ino != 1)
		skip();
	assert_ok(cgroups_new(root, &cgroups));
	assert_name(cgroups, 1, "process.linux.cgroup", "/");
	assert_false(cgroups_is_gone(cgroups, 1));
	assert_true(cgroups_is_gone(cgroups, UINT64_MAX));
}

static void a_mount_point_may_have_blanks(void **state)
{
	static const char text[] = "/dev/sda /mnt ext4 rw 0 0\n"
				   "cgroup2 /mnt/a\\040b\\134c\\0111\\8 cgroup2 rw,noatime 0 0\n";
	_cleanup_(fclosep) FILE *f = fmemopen((void *)text, sizeof(text) - 1, "r");
	_cleanup_(freep) char *root = cgroups_find_root(f);

	assert_string_equal(root, "/mnt/a b\\c\t1\\8");
	assert_null(cgroups_find_root(f));
}

static void links_are_not_followed(void **state)
{
	_cleanup_(tree_done) struct tree tree;
	_cleanup_(cgroups_freep) struct cgroups *cgroups = NULL;
	uint64_t id;

	tree_init(&tree);
	id = make(&tree, "real.service");
	tree_link(&tree, "aaa.service", "real.service");
	tree_link(&tree, "real.service/loop", "..");
	assert_ok(cgroups_new(tree.path, &cgroups));
	assert_name(cgroups, id, "systemd.unit.name", "real.service");
}

static void a_tree_deeper_than_the_limit_is_left_out_below_it(void **state)
{
	_cleanup_(tree_done) struct tree tree;
	_cleanup_(cgroups_freep) struct cgroups *cgroups = NULL;
	uint64_t deepest, below;
	char path[256];

	tree_init(&tree);
	for (int i = 0; i < 65; i++)
		memcpy(path + 2 * i, "/d", 3);
	below = make(&tree, path + 1);
	path[2 * 64] = '\0';
	deepest = make(&tree, path + 1);
	assert_ok(cgroups_new(tree.path, &cgroups));
	assert_name(cgroups, deepest, "process.linux.cgroup", path);
	assert_unknown(cgroups, below);
}

static void what_is_not_known_takes_no_room(void **state)
{
	_cleanup_(tree_done) struct tree tree;
	_cleanup_(cgroups_freep) struct cgroups *cgroups = NULL;
	uint64_t known;

	tree_init(&tree);
	known = make(&tree, "a.service");
	assert_ok(cgroups_new(tree.path, &cgroups));
	for (int round = 0; round < 3; round++) {
		for (uint64_t id = 1ull << 50; id < (1ull << 50) + 9000; id++) {
			assert_unknown(cgroups, id);
		}
		assert_name(cgroups, known, "systemd.unit.name", "a.service");
		cgroups_begin(cgroups);
	}
}

static int name_once(const char *root, uint64_t id)
{
	_cleanup_(cgroups_freep) struct cgroups *cgroups = NULL;
	const char *path;
	int err = cgroups_new(root, &cgroups), again;

	if (err)
		return err;
	err = cgroups_get(cgroups, id, &path);
	/* A failure leaves nothing half done that the next use would fall over. */
	again = cgroups_get(cgroups, id, &path);
	return err < 0 ? err : again < 0 ? again : 0;
}

static void a_failed_allocation_is_an_error_and_no_leak(void **state)
{
	_cleanup_(tree_done) struct tree tree;
	uint64_t id;

	tree_init(&tree);
	id = make(&tree, "a.slice/b.service");
	assert_survives_failing_allocations(name_once(tree.path, id), );
	assert_survives_failing_allocations(name_once(tree.path, 1), );
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_means_a_unit_a_container_or_itself),
		cmocka_unit_test(a_name_longer_than_its_room_is_cut),
		cmocka_unit_test(ids_are_the_inodes_of_directories),
		cmocka_unit_test(the_tree_is_walked_once_a_collection),
		cmocka_unit_test(what_is_gone_keeps_its_name),
		cmocka_unit_test(another_of_the_same_path_is_another),
		cmocka_unit_test(an_id_that_nobody_knows_is_not_gone),
		cmocka_unit_test(the_whole_tree_shows_what_is_gone),
		cmocka_unit_test(a_mount_point_may_have_blanks),
		cmocka_unit_test(links_are_not_followed),
		cmocka_unit_test(a_tree_deeper_than_the_limit_is_left_out_below_it),
		cmocka_unit_test(what_is_not_known_takes_no_room),
		cmocka_unit_test(a_failed_allocation_is_an_error_and_no_leak),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

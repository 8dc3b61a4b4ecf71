/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <sys/mman.h>

#include "alloc.h"
#include "collector/adopt/state.h"
#include "collector/label/cgroup.h"
#include "collector/label/cgroup-root.h"
#include "collector/label/unit.h"
#include "tree.h"

static const struct unit_choice all;

static uint64_t make(const struct tree *tree, const char *name)
{
	struct stat status;

	tree_make_parents(tree_path(tree, name));
	mkdir(tree_path(tree, name), 0755);
	assert_ok(stat(tree_path(tree, name), &status));
	return status.st_ino;
}

static void assert_unit(struct cgroups *cgroups, uint64_t id, int known, const char *attribute, const char *value)
{
	struct cgroup_unit unit = { "", "" };

	assert_int_equal(cgroups_get(cgroups, id, &unit), known);
	assert_string_equal(unit.attribute, attribute);
	assert_string_equal(unit.text, value);
}

static void assert_unknown(struct cgroups *cgroups, uint64_t id)
{
	assert_unit(cgroups, id, 1, "process.linux.cgroup", "unknown");
}

static void assert_name(struct cgroups *cgroups, uint64_t id, const char *attribute, const char *value)
{
	assert_unit(cgroups, id, 0, attribute, value);
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
	assert_ok(cgroups_new(tree.path, &all, &cgroups));
	assert_name(cgroups, unit, "systemd.unit.name", "nginx.service");
	assert_name(cgroups, slice, "process.linux.cgroup", "/system.slice");
	/* Its inode number is not that of the root of all cgroups. */
	assert_name(cgroups, make(&tree, "."), "process.linux.cgroup", "/.");
}

static void assert_place(struct cgroups *cgroups, uint64_t id, enum cgroup_place place)
{
	struct cgroup_unit unit = { .place = CGROUP_UNKNOWN };

	(void)cgroups_get(cgroups, id, &unit);
	assert_int_equal(unit.place, place);
}

static void the_topmost_cgroup_of_a_unit_is_known(void **state)
{
	_cleanup_(tree_done) struct tree tree;
	_cleanup_(cgroups_freep) struct cgroups *cgroups = NULL;
	uint64_t inner, top;

	tree_init(&tree);
	inner = make(&tree, "system.slice/nginx.service/worker");
	top = make(&tree, "system.slice/nginx.service");
	assert_ok(cgroups_new(tree.path, &all, &cgroups));
	assert_place(cgroups, inner, CGROUP_INNER);
	assert_place(cgroups, top, CGROUP_TOP);
	assert_place(cgroups, make(&tree, "system.slice"), CGROUP_TOP);
	cgroups_tell(cgroups, 1ull << 40, 0, "/a.scope");
	cgroups_tell(cgroups, 1ull << 41, 0, "/a.scope/b");
	assert_place(cgroups, 1ull << 40, CGROUP_TOP);
	assert_place(cgroups, 1ull << 41, CGROUP_INNER);
	assert_place(cgroups, 1ull << 42, CGROUP_UNKNOWN);
}

static void the_tree_is_walked_once_a_collection(void **state)
{
	_cleanup_(tree_done) struct tree tree;
	_cleanup_(cgroups_freep) struct cgroups *cgroups = NULL;
	uint64_t early, late;

	tree_init(&tree);
	early = make(&tree, "early.service");
	assert_ok(cgroups_new(tree.path, &all, &cgroups));
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
	assert_ok(cgroups_new(tree.path, &all, &cgroups));
	assert_ok(cgroups_walk(cgroups));
	assert_false(cgroups_is_gone(cgroups, id));
	assert_ok(rmdir(tree_path(&tree, "a.slice/short.service")));
	assert_false(cgroups_is_gone(cgroups, id)); /* looked for once a collection */
	cgroups_begin(cgroups);
	assert_true(cgroups_is_gone(cgroups, id));
	for (int i = 0; i < 100; i++) {
		cgroups_begin(cgroups);
		assert_name(cgroups, id, "systemd.unit.name", "short.service");
	}
	assert_true(cgroups_is_gone(cgroups, id));
}

static void another_of_the_same_path_is_another(void **state)
{
	_cleanup_(tree_done) struct tree tree, elsewhere;
	_cleanup_(cgroups_freep) struct cgroups *cgroups = NULL;
	uint64_t first, second;

	tree_init(&tree);
	first = make(&tree, "again.service");
	assert_ok(cgroups_new(tree.path, &all, &cgroups));
	assert_ok(cgroups_walk(cgroups));
	tree_init(&elsewhere);
	assert_ok(rename(tree_path(&tree, "again.service"), tree_path(&elsewhere, "kept")));
	second = make(&tree, "again.service");
	cgroups_begin(cgroups);
	assert_true(cgroups_is_gone(cgroups, first));
	assert_false(cgroups_is_gone(cgroups, second));
	assert_name(cgroups, second, "systemd.unit.name", "again.service");
}

static void what_the_kernel_tells_is_known_at_once(void **state)
{
	_cleanup_(tree_done) struct tree tree;
	_cleanup_(cgroups_freep) struct cgroups *cgroups = NULL;

	tree_init(&tree);
	assert_ok(cgroups_new(tree.path, &all, &cgroups));
	assert_ok(cgroups_walk(cgroups));
	cgroups_tell(cgroups, 1ull << 40, 0, "/system.slice/told.service");
	assert_name(cgroups, 1ull << 40, "systemd.unit.name", "told.service");
	assert_false(cgroups_is_gone(cgroups, 1ull << 40));
	cgroups_tell(cgroups, 1ull << 40, 0, "");
	assert_true(cgroups_is_gone(cgroups, 1ull << 40));
	assert_name(cgroups, 1ull << 40, "systemd.unit.name", "told.service");
	cgroups_tell(cgroups, 1ull << 41, 0, ""); /* one that was made before anybody listened */
	assert_unknown(cgroups, 1ull << 41);
}

/* In the namespace of a guest or a container, the kernel still tells whole paths. */
static void paths_of_the_kernel_begin_at_our_root(void **state)
{
	static const char above[] = "/machine.slice/machine-box.scope/payload";
	_cleanup_(tree_done) struct tree tree;
	_cleanup_(cgroups_freep) struct cgroups *cgroups = NULL;
	uint64_t id;
	char path[128];

	tree_init(&tree);
	assert_ok(cgroups_new(tree.path, &all, &cgroups));
	assert_ok(cgroups_walk(cgroups));
	id = make(&tree, "system.slice/new.service");
	snprintf(path, sizeof(path), "%s/system.slice/new.service", above);
	cgroups_tell(cgroups, id, 0, path);
	assert_name(cgroups, id, "systemd.unit.name", "new.service");
	/* It is known from now on, of those that are gone as well. */
	snprintf(path, sizeof(path), "%s/system.slice/brief.service", above);
	cgroups_tell(cgroups, 1ull << 40, 0, path);
	assert_name(cgroups, 1ull << 40, "systemd.unit.name", "brief.service");
	/* One with a path of ours that is not below our root is not ours. */
	cgroups_tell(cgroups, 1ull << 41, 0, "/system.slice/new.service");
	assert_name(cgroups, 1ull << 41, "process.linux.cgroup", "unknown");
	cgroups_tell(cgroups, 1ull << 41, 0, "");
	assert_true(cgroups_is_gone(cgroups, 1ull << 41));
	/* Of one whose path is too long for the kernel, our root may be all that is known. */
	snprintf(path, sizeof(path), "%s/", above);
	cgroups_tell(cgroups, 1ull << 42, 0, path);
	assert_name(cgroups, 1ull << 42, "process.linux.cgroup", "/.");
}

/* It was told of after the last save, and both the cgroup and the process that heard of it are gone. */
static void what_was_told_is_known_to_a_later_process(void **state)
{
	static const char path[] = "/system.slice/told.service";
	static const uint64_t id = 1ull << 40;
	_cleanup_(tree_done) struct tree tree;
	_cleanup_(cgroups_freep) struct cgroups *cgroups = NULL;
	struct store_tail tail;
	struct store store;
	uint64_t bytes = 0;
	int fd = memfd_create("test", MFD_CLOEXEC);

	tree_init(&tree);
	assert_ok(cgroups_new(tree.path, &all, &cgroups));
	assert_ok(stores_open(fd, &store, 1));
	close(fd);
	tail = (struct store_tail){ &store, store.size, &bytes };
	store_number(&store, id);
	store_text(&store, path);
	store_tail_end(&tail);
	store_number(&store, id + 1); /* killed before its text */
	cgroups_record(cgroups, &tail);
	assert_name(cgroups, id, "systemd.unit.name", "told.service");
	stores_close(&store, 1);
}

static void a_unit_is_called_as_somebody_chose(void **state)
{
	char *excluded[] = { (char *)"secret.service" }, *folded[] = { (char *)"job-*" };
	const struct unit_choice choice = { .exclude = { excluded, 1, false }, .fold = { folded, 1, false } };
	_cleanup_(tree_done) struct tree tree;
	_cleanup_(cgroups_freep) struct cgroups *cgroups = NULL;
	struct cgroup_unit unit;

	tree_init(&tree);
	assert_ok(cgroups_new(tree.path, &choice, &cgroups));
	cgroups_tell(cgroups, 1ull << 40, 0, "/a.slice/job-1.service");
	cgroups_tell(cgroups, 1ull << 41, 0, "/a.slice/secret.service/below");
	assert_name(cgroups, 1ull << 40, "systemd.unit.name", "job-*");
	assert_ok(cgroups_get(cgroups, 1ull << 41, &unit));
	assert_null(unit.text);
	assert_unknown(cgroups, 1ull << 42);
}

static void tell_of_short(struct cgroups *cgroups, uint64_t first, uint64_t n)
{
	for (uint64_t id = first; id < first + n; id++) {
		cgroups_tell(cgroups, id, 0, "/a.slice/short.service");
		cgroups_tell(cgroups, id, 0, "");
	}
}

/* Of ids from first on, so many are known. */
static size_t count_known(struct cgroups *cgroups, uint64_t first, uint64_t n)
{
	struct cgroup_unit unit;
	size_t n_known = 0;

	for (uint64_t id = first; id < first + n; id++)
		n_known += !cgroups_get(cgroups, id, &unit);
	return n_known;
}

static void what_is_gone_is_forgotten_when_nobody_asks(void **state)
{
	_cleanup_(tree_done) struct tree tree;
	_cleanup_(cgroups_freep) struct cgroups *cgroups = NULL;
	const uint64_t asked = 1ull << 40, others = 1ull << 41, living = 1ull << 42, latest = 1ull << 43, n = 5000;

	tree_init(&tree);
	assert_ok(cgroups_new(tree.path, &all, &cgroups));
	assert_ok(cgroups_walk(cgroups));
	tell_of_short(cgroups, asked, 1);
	tell_of_short(cgroups, others, n);
	for (uint64_t id = living; id < living + n; id++)
		cgroups_tell(cgroups, id, 0, "/a.slice/long.service");
	tell_of_short(cgroups, latest, n);
	for (int i = 0; i < 20; i++) {
		assert_name(cgroups, asked, "systemd.unit.name", "short.service");
		cgroups_begin(cgroups);
	}
	assert_int_equal(count_known(cgroups, others, n), 0);
	assert_int_equal(count_known(cgroups, latest, n), 1024);
	assert_int_equal(count_known(cgroups, latest + n - 1, 1), 1);
	assert_int_equal(count_known(cgroups, asked, 1), 1);
	assert_int_equal(count_known(cgroups, living, n), n);
}

static void a_flood_of_short_ones_takes_bounded_room(void **state)
{
	_cleanup_(tree_done) struct tree tree;
	_cleanup_(cgroups_freep) struct cgroups *cgroups = NULL;
	const uint64_t first = 1ull << 40, n = 300000;

	tree_init(&tree);
	assert_ok(cgroups_new(tree.path, &all, &cgroups));
	assert_ok(cgroups_walk(cgroups));
	tell_of_short(cgroups, first, n);
	/* Within one collection: the oldest are forgotten. */
	assert_in_range(count_known(cgroups, first, n), 65536, 131072);
	assert_int_equal(count_known(cgroups, first + n - 65536, 65536), 65536);
}

static void a_large_tree_is_walked_a_part_at_a_time(void **state)
{
	_cleanup_(tree_done) struct tree tree;
	_cleanup_(cgroups_freep) struct cgroups *cgroups = NULL;
	static uint64_t ids[2100];
	size_t n_known = 0, n_collections = 0;

	tree_init(&tree);
	assert_ok(cgroups_new(tree.path, &all, &cgroups));
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		struct stat status;
		char name[32];

		snprintf(name, sizeof(name), "%zu.service", i);
		assert_ok(mkdir(tree_path(&tree, name), 0755));
		assert_ok(stat(tree_path(&tree, name), &status));
		ids[i] = status.st_ino;
	}
	for (; n_known < ARRAY_SIZE(ids) && n_collections < 10; n_collections++) {
		struct cgroup_unit unit;

		cgroups_begin(cgroups);
		for (size_t i = n_known = 0; i < ARRAY_SIZE(ids); i++)
			n_known += !cgroups_get(cgroups, ids[i], &unit);
		assert_false(cgroups_is_gone(cgroups, ids[0]));
	}
	assert_int_equal(n_known, ARRAY_SIZE(ids));
	assert_int_equal(n_collections, 2); /* of 8000 steps each, with four for each directory */
}

/* What cannot be read is not gone. */
static void a_walk_that_was_not_whole_proves_nothing(void **state)
{
	_cleanup_(tree_done) struct tree tree;
	_cleanup_(cgroups_freep) struct cgroups *cgroups = NULL;
	uint64_t id;

	tree_init(&tree);
	id = make(&tree, "root/a.service");
	assert_ok(cgroups_new(tree_path(&tree, "root"), &all, &cgroups));
	assert_name(cgroups, id, "systemd.unit.name", "a.service");
	assert_ok(rmdir(tree_path(&tree, "root/a.service")));
	assert_ok(rename(tree_path(&tree, "root"), tree_path(&tree, "away")));
	cgroups_begin(cgroups);
	assert_false(cgroups_is_gone(cgroups, id));
	assert_ok(rename(tree_path(&tree, "away"), tree_path(&tree, "root")));
	cgroups_begin(cgroups);
	assert_true(cgroups_is_gone(cgroups, id));
}

/* The tree may be that of a namespace, which does not show all. */
static void an_id_that_nobody_knows_is_not_gone(void **state)
{
	_cleanup_(tree_done) struct tree tree;
	_cleanup_(cgroups_freep) struct cgroups *cgroups = NULL;
	uint64_t late;

	tree_init(&tree);
	assert_ok(cgroups_new(tree.path, &all, &cgroups));
	assert_unknown(cgroups, UINT64_MAX);
	assert_false(cgroups_is_gone(cgroups, UINT64_MAX));
	/* It was made after the walk of this collection. */
	late = make(&tree, "late.service");
	assert_false(cgroups_is_gone(cgroups, late));
	cgroups_begin(cgroups);
	assert_false(cgroups_is_gone(cgroups, late));
	assert_ok(rmdir(tree_path(&tree, "late.service")));
	cgroups_begin(cgroups);
	assert_true(cgroups_is_gone(cgroups, late));
}

/* That of a namespace or of a container has another inode number; where nothing is mounted, nothing has one. */
static void the_root_of_all_has_its_name_whatever_is_mounted(void **state)
{
	_cleanup_(tree_done) struct tree tree;
	const char *roots[] = { NULL, "/dev/null/none" };

	tree_init(&tree);
	roots[0] = tree.path;
	for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
		_cleanup_(cgroups_freep) struct cgroups *cgroups = NULL;

		assert_ok(cgroups_new(roots[i], &all, &cgroups));
		assert_ok(cgroups_walk(cgroups));
		for (int round = 0; round < 20; round++) {
			assert_name(cgroups, 1, "process.linux.cgroup", "/");
			assert_false(cgroups_is_gone(cgroups, 1));
			cgroups_begin(cgroups);
		}
	}
}

static void the_whole_tree_shows_what_is_gone(void **state)
{
	_cleanup_(fclosep) FILE *mounts = fopen("/proc/self/mounts", "re");
	_cleanup_(freep) char *root = cgroups_find_root(mounts);
	_cleanup_(cgroups_freep) struct cgroups *cgroups = NULL;
	struct stat status;

	if (!root || stat(root, &status) || status.st_ino != 1)
		skip();
	assert_ok(cgroups_new(root, &all, &cgroups));
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
	assert_ok(cgroups_new(tree.path, &all, &cgroups));
	assert_name(cgroups, id, "systemd.unit.name", "real.service");
}

#define LEVELS_MAX 300

/* Each level has two directories. Goes from one to the next, as the whole path may be longer than a path can be. */
static void make_levels(int *fds, int n, char name[static 2], uint64_t ids[static 2])
{
	struct stat status;

	for (int i = 0; i < n; i++) {
		for (int k = 0; k < 2; k++) {
			name[0] = (char)('a' + k);
			assert_ok(mkdirat(fds[i], name, 0755));
			assert_ok(fstatat(fds[i], name, &status, 0));
			ids[2 * i + k] = status.st_ino;
		}
		fds[i + 1] = openat(fds[i], name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(fds[i + 1] >= 0);
	}
}

static void remove_levels(int *fds, int n, char name[static 2])
{
	for (int i = n - 1; i >= 0; i--) {
		close(fds[i + 1]);
		for (int k = 0; k < 2; k++) {
			name[0] = (char)('a' + k);
			assert_ok(unlinkat(fds[i], name, AT_REMOVEDIR));
		}
	}
	close(fds[0]);
}

/* There are more levels than a walk has directories open, or their paths are too long. */
static void what_is_too_deep_has_the_name_of_what_is_above(void **state)
{
	static const struct {
		int n_levels, n_bytes;
	} trees[] = { { LEVELS_MAX, 1 }, { 60, 1 }, { 61, 1 }, { 62, 1 }, { 63, 1 }, { LEVELS_MAX, 200 }, { 20, 240 } };

	for (size_t i = 0; i < ARRAY_SIZE(trees); i++) {
		_cleanup_(tree_done) struct tree tree;
		_cleanup_(cgroups_freep) struct cgroups *cgroups = NULL;
		int fds[LEVELS_MAX + 1], n = trees[i].n_levels;
		uint64_t ids[2 * LEVELS_MAX];
		char name[256] = { 0 };

		tree_init(&tree);
		make(&tree, "system.slice/hidden.service");
		fds[0] = open(tree_path(&tree, "system.slice/hidden.service"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		memset(name, 'x', (size_t)trees[i].n_bytes);
		make_levels(fds, n, name, ids);
		assert_ok(cgroups_new(tree.path, &all, &cgroups));
		assert_ok(cgroups_walk(cgroups));
		for (int k = 0; k < 2 * n; k++) {
			assert_name(cgroups, ids[k], "systemd.unit.name", "hidden.service");
			assert_place(cgroups, ids[k], CGROUP_INNER);
		}
		cgroups_begin(cgroups);
		remove_levels(fds, n, name);
		assert_false(cgroups_is_gone(cgroups, make(&tree, "system.slice")));
		cgroups_begin(cgroups);
		assert_true(cgroups_is_gone(cgroups, ids[2 * n - 1]));
	}
}

static void what_is_not_known_takes_no_room(void **state)
{
	_cleanup_(tree_done) struct tree tree;
	_cleanup_(cgroups_freep) struct cgroups *cgroups = NULL;
	uint64_t known;

	tree_init(&tree);
	known = make(&tree, "a.service");
	assert_ok(cgroups_new(tree.path, &all, &cgroups));
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
	struct cgroup_unit unit;
	int err = cgroups_new(root, &all, &cgroups), again;

	if (err)
		return err;
	err = cgroups_get(cgroups, id, &unit);
	/* A failure leaves nothing half done that the next use would fall over. */
	again = cgroups_get(cgroups, id, &unit);
	return err < 0 ? err : again < 0 ? again : 0;
}

static void a_failed_allocation_is_an_error_and_no_leak(void **state)
{
	_cleanup_(tree_done) struct tree tree;

	tree_init(&tree);
	make(&tree, "a.slice/b.service");
	assert_survives_failing_allocations(name_once(tree.path, UINT64_MAX), );
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_are_the_inodes_of_directories),
		cmocka_unit_test(the_topmost_cgroup_of_a_unit_is_known),
		cmocka_unit_test(the_tree_is_walked_once_a_collection),
		cmocka_unit_test(what_is_gone_keeps_its_name),
		cmocka_unit_test(another_of_the_same_path_is_another),
		cmocka_unit_test(what_the_kernel_tells_is_known_at_once),
		cmocka_unit_test(paths_of_the_kernel_begin_at_our_root),
		cmocka_unit_test(what_was_told_is_known_to_a_later_process),
		cmocka_unit_test(a_unit_is_called_as_somebody_chose),
		cmocka_unit_test(what_is_gone_is_forgotten_when_nobody_asks),
		cmocka_unit_test(a_flood_of_short_ones_takes_bounded_room),
		cmocka_unit_test(a_large_tree_is_walked_a_part_at_a_time),
		cmocka_unit_test(a_walk_that_was_not_whole_proves_nothing),
		cmocka_unit_test(an_id_that_nobody_knows_is_not_gone),
		cmocka_unit_test(the_root_of_all_has_its_name_whatever_is_mounted),
		cmocka_unit_test(the_whole_tree_shows_what_is_gone),
		cmocka_unit_test(a_mount_point_may_have_blanks),
		cmocka_unit_test(links_are_not_followed),
		cmocka_unit_test(what_is_too_deep_has_the_name_of_what_is_above),
		cmocka_unit_test(what_is_not_known_takes_no_room),
		cmocka_unit_test(a_failed_allocation_is_an_error_and_no_leak),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

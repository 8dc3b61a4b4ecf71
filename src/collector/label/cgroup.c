/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names come from two sides. A BPF program tells of each cgroup that is made or removed,
 * through a ring buffer that is read at each collection. A walk of the tree finds those that are
 * older than the program. It is repeated if the ring had no room for a record or for a path; and,
 * without a ring, in each collection that needs it.
 *
 * A walk that has seen the whole tree also shows which cgroups are gone. A cgroup that is gone is
 * forgotten when no key has asked for it for some time.
 */
#include "collector/label/cgroup.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "collector/label/cgroup-root.h"
#include "collector/label/unit.h"
#include "collector/label/walk.h"
#include "collector/label/watch.h"
#include "metric/attribute.h"
#include "util/array.h"
#include "util/hash.h"
#include "util/index.h"
#include "util/store.h"

#define RING_PATH_BYTES	 1024 /* of a path that the kernel may have cut */
#define UNKNOWN		 "unknown"
#define STEPS_FIRST	 5000000 /* of the first walk: 50 for each cgroup, 13 µs together */
#define STEPS_MORE	 8000	 /* of each collection: 2 to 5 ms */
#define FORGET_AFTER	 8	 /* collections in which nobody asked for a cgroup that is gone … */
#define RECENT		 1024	 /* … except for this many that were made last */
/* beyond that, the older half of those that are gone is forgotten at once */
#define KNOWN_MAX	 131072

struct cgroup {
	uint64_t id;
	const char *attribute; /* its name: systemd.unit.name … */
	char *text;	       /* … and its value; NULL: nobody wants it */
	char *path;	       /* NULL: not kept, or not known */
	uint32_t asked;	       /* cgroups->n_begun when it was last asked for, or made … */
	uint32_t seen;	       /* … and cgroups->n_walks when it was last seen */
	enum cgroup_place place;
	bool is_gone;
	bool is_cut; /* its name is that of one above it, until a walk has ended */
};

struct cgroups {
	struct cgroup_root root;
	const struct unit_choice *choice;
	struct ring_buffer *ring; /* NULL: none */
	struct store_tail *told; /* NULL: what it tells is not recorded */
	const uint64_t *lost; /* mapped: reading it is not a system call, see table.h */
	uint64_t n_lost;      /* as lost said last */
	struct watches watches; /* maps that hold some of the cgroups */
	struct walk *walk; /* NULL: none is under way */
	bool is_due;	   /* a walk has to begin */
	/* whole: the last one began at the root of all, not at that of a namespace */
	bool keeps_paths, is_whole;
	uint32_t n_walks;
	unsigned int n_steps; /* that this collection's walk may still take */
	uint32_t n_begun;     /* calls of cgroups_begin() */
	struct cgroup *items; /* the oldest first */
	size_t n;
	size_t n_limit; /* of items, before some are forgotten */
	struct index index; /* of items, by id */
};

int cgroups_new(const char *root, const struct unit_choice *choice, struct cgroups **ret_cgroups)
{
	_cleanup_(cgroups_freep) struct cgroups *cgroups = calloc(1, sizeof(*cgroups));
	int err;

	if (!cgroups)
		return -ENOMEM;
	cgroups->choice = choice;
	cgroups->is_due = true;
	cgroups->n_steps = STEPS_FIRST;
	cgroups->n_limit = KNOWN_MAX;
	err = cgroup_root_init(&cgroups->root, root);
	if (err)
		return err;
	*ret_cgroups = TAKE_PTR(cgroups);
	return 0;
}

static void free_texts(const struct cgroup *cgroup)
{
	free(cgroup->text);
	free(cgroup->path);
}

void cgroups_free(struct cgroups *cgroups)
{
	if (!cgroups)
		return;
	array_for_each (cgroup, cgroups->items, cgroups->n)
		free_texts(cgroup);
	ring_buffer__free(cgroups->ring);
	if (cgroups->lost)
		munmap((void *)cgroups->lost, sizeof(*cgroups->lost));
	index_done(&cgroups->index);
	free(cgroups->items);
	walk_free(cgroups->walk);
	cgroup_root_done(&cgroups->root);
	free(cgroups);
}

static struct cgroup *find_cgroup(const struct cgroups *cgroups, uint64_t id)
{
	uint32_t i;

	index_for_each(i, &cgroups->index, hash_bytes(&id, sizeof(id)))
		if (cgroups->items[i].id == id)
			return &cgroups->items[i];
	return NULL;
}

static void forget_gone(struct cgroups *cgroups)
{
	size_t n_older = cgroups->n >= cgroups->n_limit ? cgroups->n / 2 : 0, n = 0;

	for (size_t i = 0; i < cgroups->n; i++) {
		struct cgroup *cgroup = &cgroups->items[i];

		if (cgroup->is_gone && (i < n_older || (i + RECENT < cgroups->n &&
							cgroups->n_begun -
							cgroup->asked > FORGET_AFTER))) {
			free_texts(cgroup);
		} else {
			cgroups->items[n++] = *cgroup;
		}
	}
	cgroups->n_limit = n + KNOWN_MAX / 2;
	if (n == cgroups->n)
		return;
	array_shrink(&cgroups->items, cgroups->n, n, sizeof(*cgroups->items));
	cgroups->n = n;
	index_done(&cgroups->index);
	/* A walk finds again those for which the index has no memory. */
	for (size_t i = 0; i < n; i++)
		cgroups->is_due |= index_add(&cgroups->index,
					     hash_bytes(&cgroups->items[i].id, sizeof(uint64_t)),
					     (uint32_t)i) != 0;
}

/* Takes the texts of new over. */
static int add_new(struct cgroups *cgroups, struct cgroup new)
{
	struct cgroup *cgroup = array_add(&cgroups->items, &cgroups->n, sizeof(*cgroup));

	if (cgroup && !index_add(&cgroups->index, hash_bytes(&new.id, sizeof(new.id)),
				 (uint32_t)cgroups->n - 1)) {
		*cgroup = new;
		return 0;
	}
	cgroups->n -= cgroup != NULL;
	free_texts(&new);
	return -ENOMEM;
}

static enum cgroup_place place_of(const struct cgroups *cgroups, const char *path)
{
	return unit_is_top(cgroups->choice, path) ? CGROUP_TOP : CGROUP_INNER;
}

static int name_cgroup(const struct cgroups *cgroups, const char *path, struct cgroup *cgroup)
{
	int err;

	if (!path) {
		cgroup->attribute = "process.linux.cgroup";
		cgroup->place = CGROUP_INNER;
		cgroup->text = strdup(UNKNOWN);
		return cgroup->text ? 0 : -ENOMEM;
	}
	err = unit_of_path(cgroups->choice, path, &cgroup->attribute, &cgroup->text);
	if (!err && cgroups->keeps_paths)
		cgroup->path = strdup(path);
	cgroup->place = place_of(cgroups, path);
	return err;
}

/*
 * It exists: the walk has seen it, or it has just been made. A path that ends in "/" is that of a
 * cgroup above it. NULL: it is not below our root, where others may have the same path.
 */
static int add_cgroup(struct cgroups *cgroups, uint64_t id, const char *path)
{
	struct cgroup new = { .id = id, .asked = cgroups->n_begun, .seen = cgroups->n_walks };
	struct cgroup *cgroup = find_cgroup(cgroups, id);
	int err;

	if (path)
		watches_tell(&cgroups->watches, cgroups->root.path, id, path);
	if (cgroup && !(cgroup->is_cut && path && !unit_is_from_above(path))) {
		cgroup->seen = cgroups->n_walks;
		if (path && !cgroup->place) /* it was restored */
			cgroup->place = place_of(cgroups, path);
		if (path && !cgroup->path && cgroups->keeps_paths) /* it was restored */
			cgroup->path = strdup(path);
		/* The ring knows better than a walk that was on its way when the cgroup went. */
		cgroup->is_gone &= cgroups->ring != NULL;
		return 0;
	}
	err = name_cgroup(cgroups, path, &new); /* once for each cgroup */
	if (!err && !cgroup)
		return add_new(cgroups, new);
	free_texts(err ? &new : cgroup);
	if (!err)
		*cgroup = new;
	return err;
}

void cgroups_tell(struct cgroups *cgroups, uint64_t id, uint64_t parent, const char *path)
{
	struct cgroup *cgroup = *path ? NULL : find_cgroup(cgroups, id);
	bool is_cut;

	if (cgroup)
		cgroup->is_gone = true;
	if (!*path) {
		watches_tell(&cgroups->watches, cgroups->root.path, id, NULL);
		return;
	}
	cgroup_root_learn(&cgroups->root, id, parent, path);
	path = cgroup_root_below(&cgroups->root, path);
	if (cgroups->n >= cgroups->n_limit)
		forget_gone(cgroups);
	is_cut = path && unit_is_from_above(path);
	/* a walk may see the whole path */
	cgroups->is_due |= add_cgroup(cgroups, id, path) || is_cut;
	cgroup = is_cut ? find_cgroup(cgroups, id) : NULL;
	if (cgroup)
		cgroup->is_cut = true;
}

/* An id, a path, and the id of the parent. */
static int take_record(void *user, void *data, size_t size)
{
	const char *path = (const char *)data + sizeof(uint64_t);
	struct cgroups *cgroups = user;
	char text[RING_PATH_BYTES];
	uint64_t id, parent = 0;
	size_t n;

	n = size > sizeof(id) ? strnlen(path, size - sizeof(id)) + 1 : size;
	if (sizeof(id) + n > size || (*path && *path != '/')) {
		cgroups->is_due = true;
		return 0;
	}
	memcpy(&id, data, sizeof(id));
	if (*path == '/' && sizeof(id) + n + sizeof(parent) == size)
		memcpy(&parent, path + n, sizeof(parent));
	memcpy(text, path, n < RING_PATH_BYTES ? n : RING_PATH_BYTES);
	/* the kernel had no room for more: as that of a walk, it ends with its last "/" */
	if (n >= RING_PATH_BYTES)
		strrchr(text, '/')[1] = '\0';
	if (*text && cgroups->told && cgroups->told->store) { /* a walk shows what is gone */
		store_number(cgroups->told->store, id);
		store_text(cgroups->told->store, text);
		store_tail_end(cgroups->told);
	}
	cgroups_tell(cgroups, id, parent, text);
	return 0;
}

void cgroups_record(struct cgroups *cgroups, struct store_tail *told)
{
	struct stored in = store_tail_read(told);

	while (in.at < in.end && !in.is_bad) {
		uint64_t id = stored_number(&in);
		const char *path = stored_text(&in);

		cgroups_tell(cgroups, id, 0, in.is_bad ? "" : path);
	}
	cgroups->told = told;
}

int cgroups_listen(struct cgroups *cgroups, int ring_fd, int lost_fd)
{
	void *lost;

	if (cgroups->ring)
		return 0;
	lost = mmap(NULL, sizeof(*cgroups->lost), PROT_READ, MAP_SHARED, lost_fd, 0);
	if (lost == MAP_FAILED)
		return -errno;
	cgroups->lost = lost;
	cgroups->ring = ring_buffer__new(ring_fd, take_record, cgroups, NULL);
	return cgroups->ring ? 0 : -errno;
}

void cgroups_hear_out(struct cgroups *cgroups, int ring_fd)
{
	struct ring_buffer *ring = ring_buffer__new(ring_fd, take_record, cgroups, NULL);

	(void)(ring && ring_buffer__consume(ring));
	ring_buffer__free(ring);
}

int cgroups_wake_fd(const struct cgroups *cgroups)
{
	return cgroups->ring ? ring_buffer__epoll_fd(cgroups->ring) : -1;
}

void cgroups_catch_up(struct cgroups *cgroups)
{
	uint64_t n_lost;

	if (!cgroups->ring)
		return;
	ring_buffer__consume(cgroups->ring);
	n_lost = __atomic_load_n(cgroups->lost, __ATOMIC_RELAXED);
	cgroups->is_due |= n_lost != cgroups->n_lost;
	cgroups->n_lost = n_lost;
}

void cgroups_begin(struct cgroups *cgroups)
{
	cgroups->n_begun++;
	cgroups->n_steps = STEPS_MORE;
	cgroups->is_due |= !cgroups->ring && !cgroups->walk;
	cgroups_catch_up(cgroups);
	if (!LIST_EMPTY(&cgroups->watches))
		(void)cgroups_walk(cgroups);
	forget_gone(cgroups);
}

static int walk_begin(struct cgroups *cgroups)
{
	cgroups->walk = walk_new(cgroups->root.path ?: "");
	if (!cgroups->walk)
		return -ENOMEM;
	cgroups->n_walks++;
	cgroups->is_due = false;
	cgroups->is_whole = false;
	/*
	 * The root of all is never gone, even where no tree is mounted, or only that of a
	 * namespace.
	 */
	return add_cgroup(cgroups, CGROUPS_ROOT_INODE, "/");
}

static int walk_on(struct cgroups *cgroups)
{
	const char *path;
	uint64_t id;

	if (!walk_step(cgroups->walk, &id, &path))
		return 0;
	cgroups->is_whole |= id == CGROUPS_ROOT_INODE;
	if (!*path)
		path = id == CGROUPS_ROOT_INODE ? "/" : CGROUPS_PART_ROOT;
	return add_cgroup(cgroups, id, path);
}

/*
 * Cgroups that a whole walk has not seen are gone. But the tree of a namespace does not have all
 * that the ring has.
 */
static void walk_end(struct cgroups *cgroups)
{
	bool is_judge = !walk_is_partial(cgroups->walk) && (cgroups->is_whole || !cgroups->ring);

	array_for_each (cgroup, cgroups->items, cgroups->n) {
		/* It is gone, or no path is long enough for it, unless another walk follows. */
		cgroup->is_cut &= cgroups->is_due;
		if (!is_judge || cgroup->seen == cgroups->n_walks)
			continue;
		cgroup->is_gone = true;
		watches_tell(&cgroups->watches, cgroups->root.path, cgroup->id, NULL);
	}
	walk_free(cgroups->walk);
	cgroups->walk = NULL;
}

int cgroups_walk(struct cgroups *cgroups)
{
	int err = 0;

	for (; (cgroups->walk || cgroups->is_due) && cgroups->n_steps && !err; cgroups->n_steps--) {
		if (!cgroups->walk)
			err = walk_begin(cgroups);
		else if (walk_is_over(cgroups->walk))
			walk_end(cgroups);
		else
			err = walk_on(cgroups);
	}
	/* One that is left out is looked for again. */
	cgroups->is_due |= err != 0;
	return err;
}

/* *ret_cgroup becomes NULL if nobody knows it. */
static int look_up(struct cgroups *cgroups, uint64_t id, struct cgroup **ret_cgroup)
{
	struct cgroup *cgroup = find_cgroup(cgroups, id);
	int err = 0;

	if (!cgroup)
		cgroups_catch_up(cgroups);
	cgroup = find_cgroup(cgroups, id);
	if (!cgroup || cgroup->is_cut) {
		err = cgroups_walk(cgroups);
		cgroup = find_cgroup(cgroups, id);
	}
	if (cgroup)
		cgroup->asked = cgroups->n_begun;
	*ret_cgroup = cgroup;
	return cgroup ? 0 : err;
}

int cgroups_get(struct cgroups *cgroups, uint64_t id, struct cgroup_unit *ret_unit)
{
	struct cgroup *cgroup;
	int err = look_up(cgroups, id, &cgroup);

	if (err)
		return err;
	*ret_unit = cgroup ?
		    (struct cgroup_unit){ cgroup->attribute, cgroup->text, cgroup->path,
					  cgroup->place, cgroup->is_cut } :
			     (struct cgroup_unit){ "process.linux.cgroup", UNKNOWN };
	return !cgroup;
}

void cgroups_keep_paths(struct cgroups *cgroups)
{
	cgroups->keeps_paths = true;
}

bool cgroups_is_gone(struct cgroups *cgroups, uint64_t id)
{
	struct cgroup *cgroup;

	if (cgroups_walk(cgroups) || look_up(cgroups, id, &cgroup))
		return false;
	return cgroup ? cgroup->is_gone : !cgroups->walk && !cgroups->is_due && cgroups->is_whole;
}

struct watches *cgroups_watches(struct cgroups *cgroups)
{
	return &cgroups->watches;
}

void cgroups_walk_again(struct cgroups *cgroups)
{
	cgroups->is_due = true;
	(void)cgroups_walk(cgroups);
	cgroups->is_due |= !cgroups->ring; /* some may come before it tells of them */
}

const char *cgroups_complaint(struct cgroups *cgroups)
{
	return cgroup_root_complaint(&cgroups->root);
}

size_t cgroups_count(const struct cgroups *cgroups)
{
	size_t n = 0;

	for (size_t i = 0; i < cgroups->n; i++)
		n += !cgroups->items[i].is_gone;
	return n;
}

void cgroups_save(const struct cgroups *cgroups, struct store *out)
{
	store_number(out, cgroups->n);
	for (const struct cgroup *cgroup = cgroups->items;
	     cgroup < cgroups->items + cgroups->n; cgroup++) {
		store_number(out, cgroup->id);
		store_number(out, cgroup->is_gone);
		store_text(out, cgroup->attribute);
		store_text(out, cgroup->text ?: "");
	}
}

int cgroups_restore(struct cgroups *cgroups, struct stored *in, bool has_other_choice)
{
	int err = 0;

	cgroups->is_due = true;
	for (uint64_t n = stored_number(in); n && !err; n--) {
		struct cgroup new = { .id = stored_number(in), .asked = cgroups->n_begun };
		const char *text;

		new.is_gone = stored_number(in);
		new.attribute = attribute_owner(stored_text(in));
		text = stored_text(in);
		if (in->is_bad || !new.attribute)
			return -EINVAL;
		if (find_cgroup(cgroups, new.id))
			continue;
		if (has_other_choice)
			text = unit_choose(cgroups->choice, text) ?: "";
		new.text = *text ? strdup(text) : NULL;
		err = *text && !new.text ? -ENOMEM : add_new(cgroups, new);
	}
	return err;
}

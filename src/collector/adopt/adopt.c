/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/adopt/adopt.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "collector/binding/bindings.h"
#include "collector/hook/file.h"
#include "collector/kernel/kernel.h"
#include "collector/start.h"
#include "util/array.h"
#include "util/hash.h"
#include "util/kept.h"
#include "util/rights.h"
#include "util/store.h"

/*
 * To be changed with what is saved of programs, and with what they and the agent agree on outside
 * the object.
 */
#define LAYOUT "3"
#define NAME_BYTES 256

/* What it says of metrics and labels does not decide what is loaded. */
static uint64_t hash_descriptor(uint64_t hash, const struct descriptor *descriptor)
{
	_cleanup_(freep) char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (f) {
		descriptor_dump(descriptor, f);
		fclose(f);
	}
	for (const char *line = text; line && *line; line = strchr(line, '\n') + 1)
		if (!strncmp(line, "[param", 6) || !strncmp(line, "[program", 8) || !strncmp(line, "[cgroups", 8))
			hash = hash_stable(hash, line, strcspn(line, "\n") + 1);
	return hash;
}

/* The capabilities without which a program of the object might be refused. */
static uint64_t rights_that_matter(const struct object *object)
{
	static const unsigned int capabilities[] = { CAP_SYS_ADMIN, CAP_NET_ADMIN };
	uint64_t rights = 0;

	array_for_each (program, object->programs.items, object->programs.n)
		array_for_each (capability, capabilities, ARRAY_SIZE(capabilities))
			if (refusal_lack(program->section, ~(UINT64_C(1) << *capability)))
				rights |= UINT64_C(1) << *capability;
	return rights;
}

/*
 * All that decides what is loaded and attached, except what the kernel is like. rights: of those
 * that matter.
 */
static uint64_t hash_of(const struct object *object, uint64_t rights)
{
	uint64_t hash = hash_text(hash_text(hash_text(HASH_STABLE_START, LAYOUT), object->path),
				  object->kernel_types);
	struct bpf_map *map;

	hash = hash_stable(hash, &rights, sizeof(rights));
	hash = hash_stable(hash, object->bytes, object->n_bytes);
	hash = hash_stable(hash, object->variables.data, object->variables.size_bytes);
	for (size_t i = 0; i < object->n_collectors; i++)
		hash = hash_descriptor(hash_text(hash, object->collectors[i]->name),
				       object->collectors[i]->descriptor);
	array_for_each (program, object->programs.items, object->programs.n) {
		program->file = file_identity(program->section);
		hash = hash_stable(hash, &program->file, sizeof(program->file));
	}
	bpf_object__for_each_map (map, object->bpf) {
		uint32_t max_entries = bpf_map__max_entries(map);
		size_t size = 0;
		const void *initial = bpf_map__is_internal(map) ?
				      bpf_map__initial_value(map, &size) : NULL;

		hash = hash_stable(hash, &max_entries, sizeof(max_entries));
		hash = hash_stable(hash, initial, initial ? size : 0);
	}
	return hash;
}

struct name {
	char text[NAME_BYTES];
};

static struct name name_at(const struct object *object, uint64_t hash, const char *kind,
			   const char *name)
{
	struct name full;

	snprintf(full.text, sizeof(full.text), "%s.%016" PRIx64 ".%s%s", bpf_object__name(object->bpf), hash,
		 kind, name);
	return full;
}

static struct name name_of(const struct object *object, const char *kind, const char *name)
{
	return name_at(object, object->hash, kind, name);
}

static int adopt_programs(struct object *object, struct kept *kept)
{
	struct programs *programs = &object->programs;
	struct store store;
	struct stored in;
	int err = stores_open(kept_find(kept, name_of(object, "o", "").text), &store, 1);

	if (err)
		return err;
	in = (struct stored){ store.data, store.data + STORE_BYTES, false };
	programs_choose(object, true);
	array_for_each (program, programs->items, programs->n) {
		const char *error = stored_text(&in);

		free(program->error);
		program->error = *error ? strdup(error) : NULL;
		program->err = -(int)stored_number(&in);
		program->state = (enum program_state)stored_number(&in);
		in.is_bad |= program->state > PROGRAM_ATTACHED;
		if (program->state != PROGRAM_ATTACHED)
			continue;
		program->fd = kept_find(kept, name_of(object, "p.", program->name).text);
		program->link_fd = kept_find(kept, name_of(object, "l.", program->name).text);
		in.is_bad |= program->fd < 0 || program->link_fd < 0;
	}
	stores_close(&store, 1);
	return in.is_bad ? -EINVAL : 0;
}

/* Is what has been kept a map like this one, of any size? */
static int compare_map(const struct bpf_map *map, int fd, uint32_t *ret_entries)
{
	struct bpf_map_info info = { 0 };
	uint32_t size = sizeof(info);

	if (fd < 0)
		return -ENOENT;
	if (bpf_obj_get_info_by_fd(fd, &info, &size))
		return -errno;
	*ret_entries = info.max_entries;
	return info.type == bpf_map__type(map) && info.key_size == bpf_map__key_size(map) &&
	       info.value_size == bpf_map__value_size(map) ? 0 : -EINVAL;
}

static int adopt_map(struct bpf_map *map, int fd)
{
	uint32_t entries;
	int err = compare_map(map, fd, &entries);

	if (err)
		return err;
	/* The kernel makes some larger. */
	return entries < bpf_map__max_entries(map) ? -EINVAL : bpf_map__reuse_fd(map, fd);
}

static int adopt_parts(struct object *object, struct kept *kept)
{
	struct bpf_map *map;
	int err = adopt_programs(object, kept);

	bpf_object__for_each_map (map, object->bpf)
		err = err ?:
		      adopt_map(map, kept_find(kept, name_of(object, "m.", bpf_map__name(map)).text));
	return err ?: object_bind(object, object->bpf);
}

static bool is_kept_with(struct object *object, struct kept *kept, uint64_t rights)
{
	object->hash = hash_of(object, rights);
	return kept_find(kept, name_of(object, "o", "").text) >= 0;
}

/*
 * A process that has given up its rights had some of those that matter, and finds what it has kept
 * with them.
 */
bool object_is_kept(struct object *object, struct kept *kept)
{
	uint64_t matter = rights_that_matter(object), permitted = rights_permitted();
	bool is_kept = is_kept_with(object, kept, permitted & matter);

	for (uint64_t rights = matter; !permitted && !is_kept && rights;
	     rights = (rights - 1) & matter)
		is_kept = is_kept_with(object, kept, rights);
	return is_kept;
}

int object_adopt(struct object *object, struct kept *kept)
{
	bool is_whole = object_is_kept(object, kept);
	struct name name = name_of(object, "", "");
	int err;

	if (!kept_has(kept, name.text)) {
		snprintf(name.text, sizeof(name.text), "%s.", bpf_object__name(object->bpf));
		return kept_has(kept, name.text) ? -ESTALE : 1;
	}
	err = is_whole ? adopt_parts(object, kept) : -ENODATA;
	object->is_adopted = object->is_tried = !err;
	for (uint32_t i = 0; err && i < object->programs.n; i++)
		object->programs.items[i].fd = object->programs.items[i].link_fd = -1;
	if (err)
		kept_drop(kept, name_of(object, "", "").text);
	return err;
}

static int save_programs(const struct object *object, struct kept *kept)
{
	_cleanup_(closep) int fd = memfd_create("bpfpush-programs", MFD_CLOEXEC);
	struct store store;
	int err = fd < 0 ? -errno : stores_open(fd, &store, 1);

	if (err)
		return err;
	array_for_each (program, object->programs.items, object->programs.n) {
		store_text(&store, program->error ?: "");
		store_number(&store, (uint64_t)-program->err);
		store_number(&store, program->state);
	}
	stores_close(&store, 1);
	return kept_put(kept, name_of(object, "o", "").text, fd);
}

/* 1: a link has no descriptor. */
static int keep_all(const struct object *object, struct kept *kept)
{
	const struct programs *programs = &object->programs;
	struct bpf_map *map;
	int err = 0;

	bpf_object__for_each_map (map, object->bpf) {
		/* The kernel's side of a perf event array ends with the process. */
		if (bpf_map__type(map) == BPF_MAP_TYPE_PERF_EVENT_ARRAY &&
		    binding_of(object, bpf_map__name(map)))
			err = 1;
		if (bpf_map__fd(map) >= 0 && !err)
			err = kept_put(kept, name_of(object, "m.", bpf_map__name(map)).text,
				       bpf_map__fd(map));
	}
	for (uint32_t i = 0; i < programs->n && !err; i++) {
		const struct program *program = &programs->items[i];

		if (program->state != PROGRAM_ATTACHED)
			continue;
		err = program->link_fd < 0 ? 1 :
		      kept_put(kept, name_of(object, "p.", program->name).text, program->fd);
		err = err ?:
		      kept_put(kept, name_of(object, "l.", program->name).text, program->link_fd);
	}
	return err ?: save_programs(object, kept);
}

size_t object_count_kept(const struct object *object)
{
	const struct programs *programs = &object->programs;
	size_t n = 1; /* the states of the programs */
	struct bpf_map *map;

	bpf_object__for_each_map (map, object->bpf)
		n++;
	/* Of alternatives, one is attached. */
	for (size_t i = 0; i < programs->n; i++)
		if (programs->items[i].state != PROGRAM_OFF &&
		    (!i || strcmp(programs->items[i].hook, programs->items[i - 1].hook)))
			n += 2;
	return n;
}

int object_keep(struct object *object, struct kept *kept)
{
	int err = object->is_adopted ? 0 : keep_all(object, kept);

	if (err) {
		kept_drop(kept, name_of(object, "", "").text);
		object->hash = 0;
	}
	for (uint32_t i = 0; i < object->programs.n; i++)
		object->programs.items[i].is_kept = !err;
	return err < 0 ? err : 0;
}

int past_find(const struct past *past, const char *kind, const char *name)
{
	return kept_look(past->kept, name_at(past->object, past->hash, kind, name).text);
}

static int find_map(const struct past *past, const struct bpf_map *map, int *ret_fd,
		    uint32_t *ret_entries)
{
	*ret_fd = past_find(past, "m.", bpf_map__name(map));
	return compare_map(map, *ret_fd, ret_entries);
}

struct reader *past_open(const struct past *past, const char *map, const struct reader *now,
			 uint32_t base)
{
	struct reader *reader = malloc(sizeof(*reader));
	struct table_parts parts = { .more = bpf_object__find_map_by_name(past->object->bpf, map) };
	uint32_t n_values = 0, unused;
	int err = 0;

	/* A ring does not tell twice what it held. */
	if (!reader || now->records) {
		free(reader);
		return NULL;
	}
	*reader = *now;
	reader->memory = NULL;
	reader->table = (struct table){ 0 };
	if (now->is_table && table_find(past->object->bpf, map, &parts)) {
		struct table *table = &reader->table;

		*table = table_from_parts(&parts);
		table->base = base;
		table->is_past = true;
		err = find_map(past, parts.words, &table->words_fd, &unused);
		err = err ?: find_map(past, parts.keys, &table->keys_fd, &table->capacity);
		err = err ?: find_map(past, parts.values, &table->values_fd, &n_values);
		table->columns = n_values / (table->capacity ?: 1);
	}
	err = err ?: find_map(past, parts.more, &reader->fd, &unused);
	err = err ?: reader_open(reader);
	return err ? reader_free(reader) : reader;
}

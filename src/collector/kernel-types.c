/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/kernel-types.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Its name in the library, of all versions from 0.0.1 on; the header of 1.1 has only a name that came with 1.5. */
const void *btf_ext__get_raw_data(const struct btf_ext *extension, uint32_t *size);

/* What an object names: sorted, without the ___flavour. */
struct wanted {
	char *path;
	char **names;
	size_t n;
	bool is_left_out;
};

struct kernel_types {
	struct wanted *objects;
	size_t n_objects;
	int fd;
	char path[64];
	struct btf *all; /* what btf__load_vmlinux_btf() gives while these types live */
};

static struct btf *all_types;

/*
 * In place of libbpf's own, for libbpf too: it loads the kernel's types once an object, 1 300 reads and
 * 5 MiB each time, though all it asks is the numbers of a few hooks, and has no way to be given them. An
 * empty extension of what has been read already is all of it, and is freed alone. Where the linker keeps
 * libbpf from seeing this one (-Bsymbolic), a start takes longer.
 */
struct btf *btf__load_vmlinux_btf(void)
{
	return all_types ? btf__new_empty_split(all_types) : btf__parse("/sys/kernel/btf/vmlinux", NULL);
}

/* The work of kernel_types_read(). */
struct extract {
	const struct btf *from;
	struct btf *to;
	uint32_t *ids;	 /* of each type of from: the id in to; before: 1, if it is wanted */
	uint32_t *queue; /* ids of wanted types whose parts have not been looked at */
	uint32_t n_queue, n;
};

/* The head of .BTF.ext (Documentation/bpf/btf.rst, section 3.2 "BTF_EXT"). */
struct extension_head {
	uint16_t magic;
	uint8_t version, flags;
	uint32_t bytes;
	uint32_t function_offset, function_bytes, line_offset, line_bytes, relocation_offset, relocation_bytes;
};

int kernel_types_new(struct kernel_types **ret_types)
{
	struct kernel_types *types = calloc(1, sizeof(*types));

	if (!types)
		return -ENOMEM;
	types->fd = -1;
	*ret_types = types;
	return 0;
}

static void wanted_done(struct wanted *wanted)
{
	for (size_t i = 0; i < wanted->n; i++)
		free(wanted->names[i]);
	free(wanted->names);
	free(wanted->path);
}

struct kernel_types *kernel_types_free(struct kernel_types *types)
{
	if (!types)
		return NULL;
	for (size_t i = 0; i < types->n_objects; i++)
		wanted_done(&types->objects[i]);
	free(types->objects);
	if (types->fd >= 0)
		close(types->fd);
	if (types->all == all_types)
		all_types = NULL;
	btf__free(types->all);
	free(types);
	return NULL;
}

/* "task_struct___before_5_14" is task_struct: three underscores, neither fewer nor more, part them. */
static size_t essential_length(const char *name)
{
	size_t n = strlen(name);

	for (size_t i = n; i-- > 5;)
		if (!memcmp(name + i - 4, "___", 3) && name[i - 5] != '_' && name[i - 1] != '_')
			return i - 4;
	return n;
}

static int by_text(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

static bool is_composite(const struct btf_type *type)
{
	return type && (btf_is_composite(type) || btf_is_any_enum(type));
}

static int wanted_add(struct wanted *wanted, const char *name)
{
	char *text = strndup(name, essential_length(name)), **names;

	for (size_t i = 0; text && i < wanted->n; i++)
		if (!strcmp(wanted->names[i], text)) {
			free(text);
			return 0;
		}
	names = text ? reallocarray(wanted->names, wanted->n + 1, sizeof(*names)) : NULL;
	if (!names) {
		free(text);
		return -ENOMEM;
	}
	wanted->names = names;
	names[wanted->n++] = text;
	return 0;
}

static int want_relocation(struct wanted *wanted, const struct btf *btf, const struct bpf_core_relo *relocation)
{
	const struct btf_type *type = btf__type_by_id(btf, relocation->type_id);
	const char *name = type ? btf__name_by_offset(btf, type->name_off) : NULL;

	if (relocation->kind == BPF_CORE_TYPE_ID_LOCAL)
		return 0;
	if (relocation->kind == BPF_CORE_TYPE_ID_TARGET || relocation->kind == BPF_CORE_TYPE_MATCHES ||
	    !is_composite(type) || !name || !*name) {
		wanted->is_left_out = true;
		return 0;
	}
	return wanted_add(wanted, name);
}

/* All sections of relocations: how large a record is, then for each a name, a number of records, the records. */
static int want_relocations(struct wanted *wanted, const struct btf *btf, const struct btf_ext *extension)
{
	struct extension_head head;
	uint32_t size, record_bytes, n, at;
	const uint8_t *raw = btf_ext__get_raw_data(extension, &size);
	int err = 0;

	if (!raw || size < sizeof(head))
		return -EINVAL;
	memcpy(&head, raw, sizeof(head));
	if (head.bytes < sizeof(head) || head.relocation_bytes < sizeof(record_bytes) ||
	    (uint64_t)head.bytes + head.relocation_offset + head.relocation_bytes > size)
		return -ENOENT;
	raw += head.bytes + head.relocation_offset;
	memcpy(&record_bytes, raw, sizeof(record_bytes));
	if (record_bytes < sizeof(struct bpf_core_relo))
		return -EINVAL;
	for (at = sizeof(record_bytes); at + 8 <= head.relocation_bytes && !err;) {
		memcpy(&n, raw + at + 4, sizeof(n));
		for (at += 8; n && at + record_bytes <= head.relocation_bytes && !err; n--, at += record_bytes)
			err = want_relocation(wanted, btf, (const struct bpf_core_relo *)(raw + at));
		if (n && !err)
			return -EINVAL;
	}
	return err;
}

int kernel_types_want(struct kernel_types *types, const char *path)
{
	struct wanted wanted = { 0 }, *objects;
	struct btf_ext *extension = NULL;
	struct btf *btf = btf__parse(path, &extension);
	int err = !btf ? -errno : !extension ? -ENOENT : want_relocations(&wanted, btf, extension);

	btf_ext__free(extension);
	btf__free(btf);
	if (!err) {
		wanted.path = strdup(path);
		objects = reallocarray(types->objects, types->n_objects + 1, sizeof(*objects));
		types->objects = objects ? objects : types->objects;
		err = wanted.path && objects ? 0 : -ENOMEM;
	}
	if (err) {
		wanted_done(&wanted);
		return err;
	}
	qsort(wanted.names, wanted.n, sizeof(*wanted.names), by_text);
	types->objects[types->n_objects++] = wanted;
	return 0;
}

static void mark(struct extract *extract, uint32_t id)
{
	if (!id || extract->ids[id])
		return;
	extract->ids[id] = 1;
	extract->queue[extract->n_queue++] = id;
}

/* Of a pointer only that it is one: no relocation looks behind it. */
static void for_each_part(const struct btf_type *type, void (*visit)(void *user, uint32_t *id), void *user)
{
	struct btf_type *part = (struct btf_type *)type;

	if (btf_is_composite(type)) {
		for (unsigned int i = 0; i < btf_vlen(type); i++)
			visit(user, &btf_members(part)[i].type);
	} else if (btf_is_array(type)) {
		visit(user, &btf_array(part)->type);
		visit(user, &btf_array(part)->index_type);
	} else if (btf_is_mod(type) || btf_is_typedef(type)) {
		visit(user, &part->type);
	}
}

static void mark_part(void *user, uint32_t *id)
{
	struct extract *extract = user;
	const struct btf_type *type = btf__type_by_id(extract->from, *id);

	if (!btf_is_func_proto(type))
		mark(extract, *id);
}

static void rename_part(void *user, uint32_t *id)
{
	*id = ((struct extract *)user)->ids[*id];
}

static bool is_named(const struct wanted *wanted, const char *name)
{
	return bsearch(&name, wanted->names, wanted->n, sizeof(*wanted->names), by_text);
}

/* What an object names and the kernel has not may be in a module. */
static void leave_out_strangers(struct kernel_types *types, char *const *found, size_t n_found)
{
	for (size_t i = 0; i < types->n_objects; i++)
		for (size_t j = 0; j < types->objects[i].n; j++)
			if (!bsearch(&types->objects[i].names[j], found, n_found, sizeof(*found), by_text))
				types->objects[i].is_left_out = true;
}

/* Marks the types that some object names, and tells which names there are. */
static int mark_named(struct kernel_types *types, struct extract *extract)
{
	char text[128], **found = calloc(extract->n, sizeof(*found));
	size_t n_found = 0;

	if (!found)
		return -ENOMEM;
	for (uint32_t id = 1; id < extract->n; id++) {
		const struct btf_type *type = btf__type_by_id(extract->from, id);
		const char *name = is_composite(type) ? btf__name_by_offset(extract->from, type->name_off) : "";
		bool is_wanted = false;

		snprintf(text, sizeof(text), "%.*s", (int)essential_length(name), name);
		for (size_t i = 0; i < types->n_objects && *text && !is_wanted; i++)
			is_wanted = !types->objects[i].is_left_out && is_named(&types->objects[i], text);
		if (!is_wanted)
			continue;
		mark(extract, id);
		found[n_found] = strdup(text);
		n_found += found[n_found] != NULL;
	}
	qsort(found, n_found, sizeof(*found), by_text);
	leave_out_strangers(types, found, n_found);
	while (n_found)
		free(found[--n_found]);
	free(found);
	return 0;
}

static int copy_marked(struct extract *extract)
{
	while (extract->n_queue)
		for_each_part(btf__type_by_id(extract->from, extract->queue[--extract->n_queue]), mark_part, extract);
	for (uint32_t id = 1; id < extract->n; id++) {
		int copy = extract->ids[id] ?
				   btf__add_type(extract->to, extract->from, btf__type_by_id(extract->from, id)) : 0;

		if (copy < 0)
			return copy;
		extract->ids[id] = (uint32_t)copy;
	}
	for (uint32_t id = 1; id < btf__type_cnt(extract->to); id++) {
		struct btf_type *type = (struct btf_type *)btf__type_by_id(extract->to, id);

		if (btf_is_ptr(type))
			type->type = 0;
		else
			for_each_part(type, rename_part, extract);
	}
	return 0;
}

static int write_file(struct kernel_types *types, const struct btf *btf)
{
	uint32_t size;
	const void *data = btf__raw_data(btf, &size);

	if (!data)
		return -ENOMEM;
	types->fd = memfd_create("bpfpush-kernel-types", MFD_CLOEXEC);
	if (types->fd < 0 || write(types->fd, data, size) != (ssize_t)size)
		return errno ? -errno : -EIO;
	snprintf(types->path, sizeof(types->path), "/proc/self/fd/%d", types->fd);
	return 0;
}

int kernel_types_read(struct kernel_types *types)
{
	struct btf *kernel = types->all = btf__load_vmlinux_btf();
	struct extract extract = { .from = kernel, .to = btf__new_empty(), .n = kernel ? btf__type_cnt(kernel) : 0 };
	int err = kernel ? 0 : -errno;

	extract.ids = calloc(extract.n + 1, sizeof(*extract.ids));
	extract.queue = calloc(extract.n + 1, sizeof(*extract.queue));
	if (!err && (!extract.to || !extract.ids || !extract.queue))
		err = -ENOMEM;
	if (!err)
		err = mark_named(types, &extract);
	if (!err)
		err = copy_marked(&extract);
	if (!err)
		err = write_file(types, extract.to);
	if (err)
		*types->path = '\0';
	else if (!all_types)
		all_types = kernel;
	free(extract.ids);
	free(extract.queue);
	btf__free(extract.to);
	return err;
}

const char *kernel_types_path(const struct kernel_types *types, const char *path)
{
	for (size_t i = 0; i < types->n_objects && *types->path; i++)
		if (!strcmp(types->objects[i].path, path))
			return types->objects[i].is_left_out ? NULL : types->path;
	return NULL;
}

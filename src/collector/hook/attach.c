/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kind of section is a row in ways[], unless bpf_program__attach() does. For most of them it
 * would do, but it knows only what the object says, not what a descriptor has added to it.
 */
#include "collector/hook/attach.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/perf_event.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collector/descriptor.h"
#include "collector/hook/file.h"
#include "collector/hook/perf.h"
#include "collector/hook/target.h"
#include "collector/kernel/kernel.h"
#include "collector/program.h"
#include "util/array.h"
#include "util/cleanup.h"

/*
 * The last declaration. libbpf refuses padding that is not 0, which LIBBPF_OPTS leaves to the
 * compiler.
 */
#define OPTIONS(type, name)                      \
	struct type name;                        \
	memset(&(name), 0, sizeof(name));        \
	(name).sz = sizeof(name)

/* The errno of libbpf if there is neither a link nor an fd of one. */
static int take_link(struct program *program, struct bpf_link *link, int fd)
{
	const struct hook_link item = { .link = link, .fd = fd };
	int err = link || fd >= 0 ? array_append(&program->links, &program->n_links, &item) :
		  -errno;

	if (!err)
		return 0;
	bpf_link__destroy(link);
	closep(&fd);
	return err;
}

static int attach_iterator(const struct bpf_object *object, struct program *program,
			   struct bpf_program *bpf)
{
	const struct bpf_map *map = program->map ?
				    bpf_object__find_map_by_name(object, program->map) : NULL;
	bool is_cgroups = !strcmp(target_of(program->section), "cgroup");
	union bpf_iter_link_info info = { .map.map_fd = map ? (uint32_t)bpf_map__fd(map) : 0 };
	OPTIONS(bpf_iter_attach_opts, options);

	options.link_info = &info;
	options.link_info_len = sizeof(info);
	if (is_cgroups)
		info.cgroup.order = BPF_CGROUP_ITER_DESCENDANTS_PRE;
	return take_link(program,
			 bpf_program__attach_iter(bpf, map || is_cgroups ? &options : NULL), -1);
}

static bool is_return(const struct program *program)
{
	return section_is(program->section, " kretprobe kretprobe.multi uretprobe ");
}

static bool are_told(const unsigned long *addresses, size_t n)
{
	while (n && addresses[n - 1])
		n--;
	return !n;
}

/*
 * libbpf would look the function up in lists that only root can read; the kernel itself finds it by
 * name.
 */
static int attach_functions(const struct bpf_object *object, struct program *program,
			    struct bpf_program *bpf)
{
	const char *target = target_of(program->section);
	bool is_name = !strpbrk(target, "*?");
	unsigned long addresses[KERNEL_PLACES];
	size_t n = is_name ? kernel_find_functions(target, addresses) : 0;
	int err;
	OPTIONS(bpf_kprobe_multi_opts, options);

	options.retprobe = is_return(program);
	if (n > 1) { /* the kernel would take the first */
		options.addrs = addresses;
		options.cnt = n;
		if (n > KERNEL_PLACES || !are_told(addresses, n))
			return -EADDRNOTAVAIL;
	} else {
		options.syms = is_name ? &target : NULL;
		options.cnt = is_name;
	}
	err = take_link(program,
			bpf_program__attach_kprobe_multi_opts(bpf, is_name ? NULL : target,
							      &options), -1);
	program->n_places = err ? 0 : n;
	return err && n > 1 ? -EADDRNOTAVAIL : err;
}

static int attach_function(const struct bpf_object *object, struct program *program,
			   struct bpf_program *bpf)
{
	unsigned long addresses[KERNEL_PLACES];
	char name[TARGET_BYTES];
	OPTIONS(bpf_kprobe_opts, options);

	options.retprobe = is_return(program);
	options.offset = target_offset(target_of(program->section), name);
	if (kernel_find_functions(name, addresses) > 1)
		return -EADDRNOTAVAIL;
	return take_link(program, bpf_program__attach_kprobe_opts(bpf, name, &options), -1);
}

static int attach_user_function(const struct bpf_object *object, struct program *program,
				struct bpf_program *bpf)
{
	char path[TARGET_BYTES], name[TARGET_BYTES];
	const char *function = file_split(program->section, path);
	size_t offset, begin;
	OPTIONS(bpf_uprobe_opts, options);

	if (!function)
		return -ENOENT;
	options.retprobe = is_return(program);
	offset = target_offset(function, name);
	/* libbpf 1.1 refuses a name that has several versions (pthread_create). */
	begin = *name ? file_offset(path, name) : 0;
	options.func_name = *name && !begin ? name : NULL;
	/* What this process calls (post_attach_mark) does not concern others. */
	return take_link(program,
			 bpf_program__attach_uprobe_opts(bpf, strcmp(path, "/proc/self/exe") ? -1 : 0, path,
								  begin + offset, &options), -1);
}

static int attach_user_mark(const struct bpf_object *object, struct program *program,
			    struct bpf_program *bpf)
{
	char path[TARGET_BYTES], provider[TARGET_BYTES];
	const char *rest = file_split(program->section, path),
		*name = rest ? target_split(rest, 0, provider) : NULL;
	const struct bpf_map *places = bpf_object__find_map_by_name(object, "mark_places");
	struct mark *marks;
	size_t n;
	int err;
	OPTIONS(bpf_uprobe_opts, options);

	if (!name)
		return -ENOENT;
	if (!places) /* it reads the arguments as <bpf/usdt.bpf.h> does */
		return take_link(program,
				 bpf_program__attach_usdt(bpf, -1, path, provider, name, NULL), -1);
	err = marks_find(path, rest, &marks, &n);
	for (uint32_t i = 0; i < n && !err; i++) {
		options.bpf_cookie = i;
		options.ref_ctr_offset = marks[i].semaphore;
		err = bpf_map_update_elem(bpf_map__fd(places), &i, marks[i].arguments, BPF_ANY);
		if (!err)
			err = take_link(program,
					bpf_program__attach_uprobe_opts(bpf, -1, path,
									marks[i].offset,
										 &options), -1);
	}
	program->n_places = n > 1 ? n : 0;
	array_free(&marks, &n);
	return err || program->n_links ? err : -ENOENT;
}

/* A classic one has a category. */
static int attach_tracepoint(const struct bpf_object *object, struct program *program,
			     struct bpf_program *bpf)
{
	const char *target = target_of(program->section), *name = strchr(target, '/');
	char category[TARGET_BYTES];

	snprintf(category, sizeof(category), "%.*s", (int)strcspn(target, "/"), target);
	return take_link(program, name ? bpf_program__attach_tracepoint(bpf, category, name + 1) :
					 bpf_program__attach_raw_tracepoint(bpf, target), -1);
}

/* "*" is each interface that there is. */
static int attach_packets(const struct bpf_object *object, struct program *program,
			  struct bpf_program *bpf)
{
	const struct descriptor_program *how = program->how;
	const char *mode = how ? how->mode : NULL;
	struct descriptor_item target = { .text = target_of(program->section) };
	struct descriptor_list one = { &target, 1 },
		names = how && how->interfaces.n ? how->interfaces : one;
	struct if_nameindex *all = if_nameindex();
	size_t n = 0;
	int err = 0;
	OPTIONS(bpf_link_create_opts, options);

	if (mode)
		options.flags = strcmp(mode, "native") ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE;
	for (const struct if_nameindex *at = all; at && at->if_index; at++)
		array_for_each (name, names.items, names.n)
			if (!err &&
			    (!strcmp(name->text, "*") ||
			     if_nametoindex(name->text) == at->if_index)) {
				err = take_link(program, NULL,
						bpf_link_create(bpf_program__fd(bpf),
								(int)at->if_index, BPF_XDP,
								&options));
				n++;
			}
	if (all)
		if_freenameindex(all);
	return !err && n < names.n ? -ENODEV : err;
}

static const struct way {
	const char *types;
	int (*attach)(const struct bpf_object *object, struct program *program,
		      struct bpf_program *bpf);
} ways[] = {
	{ " iter ", attach_iterator },
	{ " kprobe kretprobe ", attach_function },
	{ " kprobe.multi kretprobe.multi ", attach_functions },
	{ " uprobe uretprobe ", attach_user_function },
	{ " usdt ", attach_user_mark },
	{ " tp tracepoint raw_tp raw_tracepoint ", attach_tracepoint },
	{ " perf_event ", perf_attach },
	{ " xdp ", attach_packets },
};

int hook_attach(const struct bpf_object *object, struct program *program, struct bpf_program *bpf)
{
	const struct way *way = ways, *end = ways + ARRAY_SIZE(ways);
	const struct hook_link *only;
	int err;

	while (way < end && !section_is(program->section, way->types))
		way++;
	err = way < end ? way->attach(object, program, bpf) :
	      take_link(program, bpf_program__attach(bpf), -1);
	program->file = file_identity(program->section);
	only = program->links;
	if (err)
		hook_detach(program);
	else if (program->n_links != 1 || hook_is_everywhere(program))
		program->link_fd = -1;
	else if (!only->link)
		program->link_fd = only->fd;
	else
		/* that of libbpf's USDT is none */
		program->link_fd = bpf_link__fd(only->link) ?: -1;
	return err;
}

bool hook_is_everywhere(const struct program *program)
{
	return program->n_links && section_is(program->section, " perf_event ");
}

void hook_detach(struct program *program)
{
	array_for_each (item, program->links, program->n_links) {
		/*
		 * Of some kinds of hooks libbpf would switch off what other descriptors of the link
		 * still have on.
		 */
		if (item->link && program->is_kept)
			bpf_link__disconnect(item->link);
		if (!item->link && item->fd > 0)
			close(item->fd);
		bpf_link__destroy(item->link);
	}
	array_free(&program->links, &program->n_links);
	program->fd = program->link_fd = -1;
}

static int try_classic(const char *event)
{
	struct perf_event_attr attributes = { .type = PERF_TYPE_TRACEPOINT,
					      .size = sizeof(attributes) };
	_cleanup_(fclosep) FILE *f = NULL;
	_cleanup_(closep) int fd = -1;
	char name[TARGET_BYTES];

	snprintf(name, sizeof(name), "events/%s/id", event);
	f = target_open_trace(name);
	if (!f)
		return -errno;
	if (fscanf(f, "%llu", &attributes.config) != 1)
		return -EIO;
	fd = (int)syscall(SYS_perf_event_open, &attributes, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : 0;
}

int hook_try(const struct program *program, struct bpf_program *bpf)
{
	const char *name = target_of(program->section);
	int err;

	/*
	 * From 7.0 on the kernel takes a storage from its socket while this walk may still look at
	 * it: then it uses a NULL pointer in __bpf_sk_storage_map_seq_show(), and stops (seen on
	 * 7.3).
	 */
	if (!strcmp(program->section, "iter/bpf_sk_storage_map") && kernel_is_since(7, 0))
		return -EOPNOTSUPP;
	if (section_is(program->section, KERNEL_FUNCTIONS) && !kernel_traces_functions())
		return -ECANCELED;
	if (*name && section_is(program->section, " tp tracepoint "))
		return try_classic(name);
	if (!*name || bpf_program__type(bpf) != BPF_PROG_TYPE_TRACING)
		return 0;
	/* libbpf keeps what it finds. Other errors are those of the load. */
	err = bpf_program__set_attach_target(bpf, 0, name);
	return err == -ESRCH ? err : 0;
}

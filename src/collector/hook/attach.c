/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kind of section is a row in ways[]. For most of them bpf_program__attach() would do, but it knows only what the
 * object says, not what a descriptor has added to it.
 */
#include "collector/hook/hook.h"

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
#include "collector/hook/perf.h"
#include "collector/hook/target.h"
#include "collector/kernel/kernel.h"
#include "collector/program.h"
#include "util/array.h"
#include "util/cleanup.h"

/* Where a program goes. */
struct site {
	const struct bpf_object *object;
	struct program *program;
	struct bpf_program *bpf;
	const char *target; /* what follows the "/" of its section */
	bool is_return;
};

/* The errno of libbpf if there is no link. */
static int take(const struct site *site, struct bpf_link *link)
{
	struct hook_link *item = link ? array_add(&site->program->links, &site->program->n_links, sizeof(*item)) : NULL;

	if (item)
		*item = (struct hook_link){ .link = link };
	else if (link)
		bpf_link__destroy(link);
	return item ? 0 : link ? -ENOMEM : -errno;
}

static int attach_iterator(const struct site *site)
{
	const char *name = site->program->map;
	const struct bpf_map *map = name ? bpf_object__find_map_by_name(site->object, name) : NULL;
	bool is_cgroups = !strcmp(site->target, "cgroup");
	union bpf_iter_link_info info = { .map.map_fd = map ? (uint32_t)bpf_map__fd(map) : 0 };
	LIBBPF_OPTS(bpf_iter_attach_opts, options, .link_info = &info, .link_info_len = sizeof(info));

	if (is_cgroups)
		info.cgroup.order = BPF_CGROUP_ITER_DESCENDANTS_PRE;
	return take(site, bpf_program__attach_iter(site->bpf, map || is_cgroups ? &options : NULL));
}

/* libbpf would look the function up in lists that only root can read; the kernel itself finds it by name. */
static int attach_functions(const struct site *site)
{
	bool is_name = !strpbrk(site->target, "*?");
	LIBBPF_OPTS(bpf_kprobe_multi_opts, options, .retprobe = site->is_return);

	if (is_name) {
		options.syms = (const char **)&site->target;
		options.cnt = 1;
	}
	return take(site, bpf_program__attach_kprobe_multi_opts(site->bpf, is_name ? NULL : site->target, &options));
}

static int attach_function(const struct site *site)
{
	LIBBPF_OPTS(bpf_kprobe_opts, options, .retprobe = site->is_return);
	char name[TARGET_BYTES];

	options.offset = target_offset(site->target, name);
	return take(site, bpf_program__attach_kprobe_opts(site->bpf, name, &options));
}

static int attach_user_function(const struct site *site)
{
	LIBBPF_OPTS(bpf_uprobe_opts, options, .retprobe = site->is_return);
	char path[TARGET_BYTES], name[TARGET_BYTES];
	const char *function = target_split(site->target, 0, path);
	size_t offset;

	if (!function || !target_find_file(path))
		return -ENOENT;
	offset = target_offset(function, name);
	options.func_name = *name ? name : NULL;
	/* What this process calls (post_attach_mark) does not concern others. */
	return take(site, bpf_program__attach_uprobe_opts(site->bpf, strcmp(path, "/proc/self/exe") ? -1 : 0, path, offset,
							  &options));
}

static int attach_user_mark(const struct site *site)
{
	char path[TARGET_BYTES], provider[TARGET_BYTES];
	const char *rest = target_split(site->target, 1, path), *name = rest ? target_split(rest, 0, provider) : NULL;

	if (!name || !target_find_file(path))
		return -ENOENT;
	return take(site, bpf_program__attach_usdt(site->bpf, -1, path, provider, name, NULL));
}

static int attach_classic(const struct site *site)
{
	char category[TARGET_BYTES];
	const char *name = strchr(site->target, '/');

	snprintf(category, sizeof(category), "%.*s", (int)strcspn(site->target, "/"), site->target);
	return take(site, bpf_program__attach_tracepoint(site->bpf, category, name ? name + 1 : ""));
}

static int attach_raw(const struct site *site)
{
	return take(site, bpf_program__attach_raw_tracepoint(site->bpf, site->target));
}

static int attach_event(const struct site *site)
{
	return perf_attach(site->program, site->bpf);
}

static int attach_interface(const struct site *site, unsigned int interface)
{
	const struct descriptor_program *how = site->program->how;
	LIBBPF_OPTS(bpf_link_create_opts, options);
	struct hook_link *item;
	int fd;

	if (how && how->mode)
		options.flags = strcmp(how->mode, "native") ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE;
	fd = bpf_link_create(bpf_program__fd(site->bpf), (int)interface, BPF_XDP, &options);
	if (fd < 0)
		return fd;
	item = array_add(&site->program->links, &site->program->n_links, sizeof(*item));
	if (item)
		*item = (struct hook_link){ .fd = fd };
	else
		close(fd);
	return item ? 0 : -ENOMEM;
}

/* "*": all that there are. */
static int attach_interfaces(const struct site *site, const char *name)
{
	struct if_nameindex *all = strcmp(name, "*") ? NULL : if_nameindex();
	unsigned int interface = all ? 0 : if_nametoindex(name);
	int err = 0;

	for (size_t i = 0; all && all[i].if_index && !err; i++)
		err = attach_interface(site, all[i].if_index);
	if (all)
		if_freenameindex(all);
	else
		err = interface ? attach_interface(site, interface) : -ENODEV;
	return err;
}

static int attach_packets(const struct site *site)
{
	const struct descriptor_program *how = site->program->how;
	int err = how && how->interfaces.n ? 0 : attach_interfaces(site, site->target);

	for (size_t i = 0; how && i < how->interfaces.n && !err; i++)
		err = attach_interfaces(site, how->interfaces.items[i].text);
	return err;
}

static int attach_other(const struct site *site)
{
	return take(site, bpf_program__attach(site->bpf));
}

static const struct way {
	const char *type;
	int (*attach)(const struct site *site);
	bool is_return;
} ways[] = {
	{ "iter", attach_iterator },
	{ "kprobe", attach_function },
	{ "kretprobe", attach_function, true },
	{ "kprobe.multi", attach_functions },
	{ "kretprobe.multi", attach_functions, true },
	{ "uprobe", attach_user_function },
	{ "uretprobe", attach_user_function, true },
	{ "usdt", attach_user_mark },
	{ "tp", attach_classic },
	{ "tracepoint", attach_classic },
	{ "raw_tp", attach_raw },
	{ "raw_tracepoint", attach_raw },
	{ "perf_event", attach_event },
	{ "xdp", attach_packets },
	{ "", attach_other },
};

/* -1: it has none, like the links of a USDT, or those of a perf event, which has to be renewed. */
static int link_fd(const struct hook_link *item)
{
	if (!item->link)
		return item->fd;
	return item->fd ? -1 : bpf_link__fd(item->link) ?: -1;
}

int hook_attach(const struct bpf_object *object, struct program *program)
{
	const char *target = strchr(program->section, '/');
	struct bpf_program *bpf = bpf_object__find_program_by_name(object, program->name);
	struct site site = { object, program, bpf, target ? target + 1 : "" };
	const struct way *way = ways;
	char type[64];
	int err;

	snprintf(type, sizeof(type), "%.*s", (int)strcspn(program->section, "/"), program->section);
	while (*way->type && strcmp(way->type, type))
		way++;
	site.is_return = way->is_return;
	if (!bpf)
		return -ENOENT;
	err = way->attach(&site);
	if (err)
		hook_detach(program);
	else if (program->n_links == 1)
		program->link_fd = link_fd(program->links);
	return err;
}

bool hook_is_everywhere(const struct program *program)
{
	return program->n_links && !strncmp(program->section, "perf_event/", 11);
}

int hook_renew(const struct bpf_object *object, struct program *program)
{
	return perf_attach(program, bpf_object__find_program_by_name(object, program->name));
}

void hook_detach(struct program *program)
{
	array_for_each (item, program->links, program->n_links) {
		/* Of some kinds of hooks libbpf would switch off what other descriptors of the link still have on. */
		if (item->link && program->is_kept)
			bpf_link__disconnect(item->link);
		if (!item->link && item->fd > 0)
			close(item->fd);
		bpf_link__destroy(item->link);
	}
	free(program->links);
	program->links = NULL;
	program->n_links = 0;
	program->fd = program->link_fd = -1;
}

void hook_add_sections(void)
{
	static bool is_done;

	if (!is_done) {
		libbpf_register_prog_handler("perf_event+", BPF_PROG_TYPE_PERF_EVENT, 0, NULL);
		libbpf_register_prog_handler("xdp+", BPF_PROG_TYPE_XDP, BPF_XDP, NULL);
	}
	is_done = true;
}

static FILE *open_id(const char *event)
{
	static const char *const places[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	int err = ENOENT; /* unless one of them is there, but cannot be read */
	char path[256];
	FILE *f = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(places) && !f; i++) {
		snprintf(path, sizeof(path), "%s/events/%s/id", places[i], event);
		f = fopen(path, "re");
		err = !f && errno != ENOENT ? errno : err;
	}
	errno = err;
	return f;
}

static int try_classic(const char *event)
{
	struct perf_event_attr attributes = { .type = PERF_TYPE_TRACEPOINT, .size = sizeof(attributes) };
	_cleanup_(fclosep) FILE *f = open_id(event);
	_cleanup_(closep) int fd = -1;

	if (!f)
		return -errno;
	if (fscanf(f, "%llu", &attributes.config) != 1)
		return -EIO;
	fd = (int)syscall(SYS_perf_event_open, &attributes, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : 0;
}

/*
 * From 7.0 on the kernel takes a storage from its socket while this walk may still look at it: then it uses a NULL
 * pointer in __bpf_sk_storage_map_seq_show(), and stops (seen on 7.3).
 */
static bool can_stop_kernel(const char *section)
{
	return !strcmp(section, "iter/bpf_sk_storage_map") && kernel_is_since(7, 0);
}

int hook_try(const struct program *program, struct bpf_program *bpf)
{
	const char *section = program->section, *name = strchr(section, '/');
	int err;

	if (!name)
		return 0;
	if (can_stop_kernel(section))
		return -EOPNOTSUPP;
	if (!strncmp(section, "tp/", 3) || !strncmp(section, "tracepoint/", 11))
		return try_classic(name + 1);
	if (bpf_program__type(bpf) != BPF_PROG_TYPE_TRACING)
		return 0;
	/* libbpf keeps what it finds. Other errors are those of the load. */
	err = bpf_program__set_attach_target(bpf, 0, name + 1);
	return err == -ESRCH ? err : 0;
}

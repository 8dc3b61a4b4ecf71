/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/hook/hook.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collector/kernel/kernel.h"
#include "collector/program.h"
#include "util/cleanup.h"

static struct bpf_link *attach_iterator(const struct bpf_object *object, const char *map_name, struct bpf_program *bpf)
{
	const struct bpf_map *map = bpf_object__find_map_by_name(object, map_name);
	union bpf_iter_link_info info = { .map.map_fd = map ? (uint32_t)bpf_map__fd(map) : 0 };
	LIBBPF_OPTS(bpf_iter_attach_opts, options, .link_info = &info, .link_info_len = sizeof(info));

	return bpf_program__attach_iter(bpf, &options);
}

/* libbpf would look the function up in lists that only root can read; the kernel itself finds it by name. */
static struct bpf_link *attach_by_name(struct bpf_program *bpf, const char *function, bool is_return)
{
	LIBBPF_OPTS(bpf_kprobe_multi_opts, options, .syms = &function, .cnt = 1, .retprobe = is_return);

	return bpf_program__attach_kprobe_multi_opts(bpf, NULL, &options);
}

int hook_attach(const struct bpf_object *object, const struct program *program, struct bpf_link **ret_link)
{
	struct bpf_program *bpf = bpf_object__find_program_by_name(object, program->name);
	const char *section = program->section, *function = strchr(section, '/');
	bool is_return = !strncmp(section, "kretprobe.multi/", 16);
	struct bpf_link *link;

	if (!bpf)
		return -ENOENT;
	if (program->map)
		link = attach_iterator(object, program->map, bpf);
	else if ((is_return || !strncmp(section, "kprobe.multi/", 13)) && !strpbrk(function, "*?"))
		link = attach_by_name(bpf, function + 1, is_return);
	else
		link = bpf_program__attach(bpf);
	if (!link)
		return -errno;
	*ret_link = link;
	return 0;
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

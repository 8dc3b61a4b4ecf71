/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/label/namespace.h"

#include <sys/stat.h>

#include "util/array.h"

/* The numbers of the initial namespaces are those of include/linux/proc_ns.h, the same in every kernel. */
static const struct {
	const char *path;
	ino_t initial;
	const char *hidden;
	bool is_of_cgroups; /* the machine's may be mounted all the same */
	bool is_of_services; /* those of systemd, too: to be said only after others */
} namespaces[] = {
	{ "/proc/self/ns/cgroup", 0xEFFFFFFB,
	  "not all units and containers outside of it have their names (--cgroupns=host)", .is_of_cgroups = true },
	{ "/proc/self/ns/pid", 0xEFFFFFFC, "with per_process, processes outside of it seem to have ended (--pid=host)" },
	{ "/proc/self/ns/uts", 0xEFFFFFFE, "host.name is its own name (--uts=host)", .is_of_services = true },
};

void namespaces_complain(bool is_part, struct buf *out)
{
	const char *before = "the container in which bpfpush runs hides a part of the machine: ";
	struct stat status;

	array_for_each (row, namespaces, ARRAY_SIZE(namespaces)) {
		if ((row->is_of_cgroups && !is_part) || (row->is_of_services && !out->size))
			continue;
		if (stat(row->path, &status) || status.st_ino == row->initial)
			continue;
		buf_printf(out, "%s%s", before, row->hidden);
		before = "; ";
	}
}

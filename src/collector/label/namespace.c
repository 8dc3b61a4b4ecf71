/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/label/namespace.h"

#include <sys/stat.h>

#include "util/array.h"

/* The numbers of the initial namespaces are those of include/linux/proc_ns.h, the same in every kernel. */
static const struct {
	const char *path;
	ino_t initial;
	const char *hidden;
} namespaces[] = {
	{ "/proc/self/ns/cgroup", 0xEFFFFFFB, "not all units and containers outside of it have their names (--cgroupns=host)" },
	{ "/proc/self/ns/pid", 0xEFFFFFFC, "with per_process, processes outside of it seem to have ended (--pid=host)" },
	{ "/proc/self/ns/uts", 0xEFFFFFFE, "host.name is its own name (--uts=host)" },
};

#define UTS 2

void namespaces_complain(bool is_part, struct buf *out)
{
	const char *before = "the container in which bpfpush runs hides a part of the machine: ";
	struct stat status;

	for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++) {
		/* The machine's cgroups may be mounted all the same, and a service may have a host name of its own. */
		if ((!i && !is_part) || (i == UTS && !out->size))
			continue;
		if (stat(namespaces[i].path, &status) || status.st_ino == namespaces[i].initial)
			continue;
		buf_printf(out, "%s%s", before, namespaces[i].hidden);
		before = "; ";
	}
}

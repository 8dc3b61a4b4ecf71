/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keeps the path of every cgroup that is made, so that the agent can name one that is gone when it
 * looks: what has counted for a millisecond belongs to somebody too. The tracepoint carries the
 * path; cgroups that are older than this program are found in the file system.
 *
 * Only of the v2 hierarchy: each hierarchy of v1 numbers its cgroups anew. In v2 no cgroup is ever
 * renamed.
 */
#include "owner.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define CGROUP_PATH_BYTES 256

struct cgroup_name {
	char path[CGROUP_PATH_BYTES]; /* from the root, "/" first; cut where it is longer */
};

/* The agent looks here for an id that it does not find in the file system. Oldest go first. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 512);
	__type(key, u64);
	__type(value, struct cgroup_name);
} cgroup_names SEC(".maps");

struct created_value {
	u64 count;
};

TABLE(created, struct owner, struct created_value, 64);

SEC("tp_btf/cgroup_mkdir")
int BPF_PROG(cgroup_mkdir, struct cgroup *cgroup, const char *path)
{
	struct created_value *value;
	struct cgroup_name name = {};
	struct owner owner;
	u64 id = cgroup->kn->id;

	if (cgroup->root->hierarchy_id)
		return 0;
	bpf_probe_read_kernel_str(name.path, sizeof(name.path), path);
	bpf_map_update_elem(&cgroup_names, &id, &name, BPF_ANY);
	owner_of_task_seldom(&owner, bpf_get_current_task_btf());
	value = created_at(&owner);
	if (value)
		value->count++;
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keeps the path of every cgroup that is made, so that the agent can name a cgroup that is gone by the
 * time it looks. Even what a cgroup counted in a millisecond then has an owner. The tracepoint carries
 * the path. The agent finds cgroups that are older than this program in the file system.
 *
 * Only for the v2 hierarchy: in v1 each hierarchy numbers its cgroups separately. In v2 a cgroup is
 * never renamed.
 */
#include "owner.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define CGROUP_PATH_BYTES 256

struct cgroup_name {
	char path[CGROUP_PATH_BYTES]; /* from the root, with a leading "/"; cut if it is longer */
};

/* The agent looks here for ids that are not in the file system. The oldest entries are evicted first. */
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

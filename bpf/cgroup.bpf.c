/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tells the agent the path of every cgroup that is made, so that it can name a cgroup that is gone
 * by the time it looks, and which cgroups are gone. Even what a cgroup counted in a millisecond
 * then has an owner. The tracepoints carry the path. The agent finds cgroups that are older than
 * this program in the file system.
 *
 * Only for the v2 hierarchy: in v1 each hierarchy numbers its cgroups separately. In v2 a cgroup is
 * never renamed.
 */
#include "owner.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define CGROUP_PATH_BYTES 1024 /* what the kernel's tracepoint has room for */
#define RING_BYTES	  (256 << 10)

struct cgroup_name {
	u64 id;
	/* from the root, with a leading "/", maybe cut; "": the cgroup is gone */
	char path[CGROUP_PATH_BYTES];
	u64 room; /* for the id that follows a path */
};

/*
 * Each record is a struct cgroup_name up to the end of its path. If that is cut, its beginning
 * still says whose the cgroup is. The id of the parent follows it, as an agent in a namespace knows
 * the parent but not the whole path.
 */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_BYTES);
} cgroup_names SEC(".maps");

/* One number: records that found no room in the ring. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} cgroup_names_lost SEC(".maps");

struct created_value {
	u64 count;
	u64 untold; /* the path found no room in the ring */
};

TABLE(created, struct owner, struct created_value, 4);

/*
 * The kernel holds a lock while it calls programs at these tracepoints, so one record at a time is
 * written.
 */
static struct cgroup_name record;

/* Set where programs count only for chosen cgroups: the agent has to choose at once. */
const volatile bool at_once = false;

/*
 * The agent reads the ring at each collection. It is woken only if half of the ring is in use
 * before that.
 */
static __noinline int record_send(u64 path_bytes)
{
	u64 waiting = bpf_ringbuf_query(&cgroup_names, BPF_RB_AVAIL_DATA);
	u64 flags = !at_once && waiting < RING_BYTES / 2 ? BPF_RB_NO_WAKEUP : BPF_RB_FORCE_WAKEUP;
	u32 only = 0;
	u64 *lost;

	if (path_bytes > sizeof(record) - sizeof(record.id))
		path_bytes = 0;
	if (!bpf_ringbuf_output(&cgroup_names, &record, sizeof(record.id) + path_bytes, flags))
		return 0;
	lost = bpf_map_lookup_elem(&cgroup_names_lost, &only);
	if (lost)
		table_add(lost, 1);
	return 1;
}

SEC("tp_btf/cgroup_mkdir")
int BPF_PROG(cgroup_mkdir, struct cgroup *cgroup, const char *path)
{
	struct created_value *value;
	struct owner owner;
	u64 path_bytes;
	bool is_lost;

	if (cgroup->root->hierarchy_id)
		return 0;
	record.id = cgroup->kn->id;
	path_bytes = bpf_probe_read_kernel_str(record.path, sizeof(record.path), path);
	if (path_bytes <= CGROUP_PATH_BYTES) {
		u64 parent = cgroup->self.parent->cgroup->kn->id;

		__builtin_memcpy(record.path + path_bytes, &parent, sizeof(parent));
		path_bytes += sizeof(parent);
	} else {
		path_bytes = 0;
	}
	is_lost = record_send(path_bytes);
	owner_of_task_seldom(&owner, bpf_get_current_task_btf());
	value = created_at(&owner);
	if (!value)
		return 0;
	table_add(&value->count, 1);
	if (is_lost)
		table_add(&value->untold, 1);
	return 0;
}

SEC("tp_btf/cgroup_rmdir")
int BPF_PROG(cgroup_rmdir, struct cgroup *cgroup)
{
	if (cgroup->root->hierarchy_id)
		return 0;
	record.id = cgroup->kn->id;
	record.path[0] = '\0';
	record_send(1);
	return 0;
}

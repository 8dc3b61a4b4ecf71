/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The collectors block and disk: how long requests to disks took, how long they waited before that,
 * how large they were.
 *
 * The kernel keeps the time at which it made a request, so the wait needs no hook of its own. Only
 * the time at which the driver got the request is kept here, until the request is complete.
 *
 * A flush has several steps. The kernel also reports the end of the whole as the completion of a
 * read or write of no bytes, which no driver ever saw: that is not counted.
 */
#include "label.h"

const volatile bool block_on = false;
const volatile bool disk_on = false;
const volatile u64 disk_rate_limit = 1000;

#define EVENT_RATE_LIMIT disk_rate_limit

#include "function.h"
#include "hist.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define REQUESTS_MAX	    16384 /* that drivers have at the same time */
#define OPERATION_MASK	    0xff  /* REQ_OP_BITS */
#define ERROR_EIO	    5
#define DISK_NAME_BYTES	    32 /* DISK_NAME_LEN */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct gendisk {
	char disk_name[DISK_NAME_BYTES];
};

struct request_queue {
	struct gendisk *disk; /* NULL: none, such as that of a SCSI host */
};

struct request {
	struct request_queue *q;
	u32 cmd_flags;
	unsigned int __data_len; /* bytes that are not complete yet */
	u64 __sector;
	u64 start_time_ns;	 /* when it was made, if it has a part */
	void *part;		 /* for which the kernel counts it, too */
};
#pragma clang attribute pop

/* enum req_op, as far as its numbers have always been the same. */
enum disk_operation {
	DISK_OPERATION_READ = 0,
	DISK_OPERATION_WRITE = 1,
	DISK_OPERATION_FLUSH = 2,
	DISK_OPERATION_DISCARD = 3,
	DISK_OPERATION_SECURE_ERASE = 5,
	DISK_OPERATION_WRITE_ZEROES = 9,
	/* zones; commands that programs or the driver itself made */
	DISK_OPERATION_OTHER = OPERATION_MASK,
};

struct disk_key {
	lbl_disk device[DISK_NAME_BYTES];
	enum disk_operation operation;
	lbl_errno error;
};

struct disk_value {
	struct hist_time duration; /* from the driver's start of the request to its end */
	struct hist_time queue;	   /* before that */
	struct hist_value size;
};

TABLE(operations, struct disk_key, struct disk_value, 1);

struct started {
	u64 start_ns;
	u64 done_bytes; /* if it is completed in parts */
	u64 sector;	/* only for disk */
};

/* By address. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, REQUESTS_MAX);
	__type(key, u64);
	__type(value, struct started);
} requests SEC(".maps");

struct no_key {
	u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, struct no_key);
	__type(value, u64);
} untimed SEC(".maps");

#include "block/disk.h"

/* address: of the request */
static __always_inline int request_start(u64 address)
{
	struct started started = { bpf_ktime_get_ns() }, *known;
	u32 only = 0;
	u64 *lost;

	if (disk_on)
		started.sector = BPF_CORE_READ((struct request *)address, __sector);
	if (!bpf_map_update_elem(&requests, &address, &started, BPF_NOEXIST))
		return 0;
	known = bpf_map_lookup_elem(&requests, &address);
	lost = known ? NULL : bpf_map_lookup_elem(&untimed, &only);
	if (known) /* the driver had put it back */
		known->start_ns = started.start_ns;
	if (lost)
		table_add(lost, 1);
	return 0;
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(block_rq_issue__btf, struct request *request)
{
	return request_start((u64)request);
}

AT_TRACEPOINT(block_rq_issue, block_rq_issue)
{
	return request_start(function_argument_2(ctx));
}

/* What BLK_STS_… means, as the kernel tells programs. From 14 on, versions of the kernel differ. */
static const u8 errors[] SEC(".rodata.errors") = { 0, 95, 110, 28, 67, 121, 52, 61, 84, 12, 5, 78, 11, 16 };

/* Since 5.17 the tracepoint has a BLK_STS_…, before that a negative errno. */
static __always_inline u32 error_number(int error)
{
	u32 status = error;

	asm volatile("" : "+r"(status));
	return error < 0 ? -error : status < sizeof(errors) ? errors[status] : ERROR_EIO;
}

static __always_inline enum disk_operation operation_of(u32 flags)
{
	const u32 known = 1 << DISK_OPERATION_READ | 1 << DISK_OPERATION_WRITE |
			  1 << DISK_OPERATION_FLUSH |
			  1 << DISK_OPERATION_DISCARD | 1 << DISK_OPERATION_SECURE_ERASE |
			  1 << DISK_OPERATION_WRITE_ZEROES;
	u32 operation = flags & OPERATION_MASK;

	return operation < 32 && known >> operation & 1 ? operation : DISK_OPERATION_OTHER;
}

/* How long it waited for the driver; 0 also where the kernel does not know when it was made. */
static __always_inline u64 waited_ns(const struct request *request, const struct started *started)
{
	u64 made_ns = request->part ? request->start_time_ns : 0;

	return made_ns && started->start_ns > made_ns ? started->start_ns - made_ns : 0;
}

/* started: NULL: it is not known */
static __always_inline void request_count(const struct disk_key *key, const struct request *request,
					  const struct started *started, u64 bytes)
{
	struct disk_value *value = operations_at(key);

	if (value && started)
		hist_time_add_atomic(&value->duration, bpf_ktime_get_ns() - started->start_ns);
	if (value && started && request->part && request->start_time_ns)
		hist_time_add_atomic(&value->queue, waited_ns(request, started));
	if (value)
		hist_value_add_atomic(&value->size, bytes);
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(block_rq_complete, struct request *request, int error, unsigned int bytes)
{
	struct disk_key key = { .operation = operation_of(request->cmd_flags),
				.error = error_number(error) };
	struct gendisk *disk = request->q->disk;
	u64 address = (u64)request, all_bytes;
	struct started *started = bpf_map_lookup_elem(&requests, &address);

	if (bytes < request->__data_len) {
		if (started)
			started->done_bytes += bytes;
		return 0;
	}
	if (!bytes && key.operation <= DISK_OPERATION_WRITE)
		return 0;
	bpf_probe_read_kernel_str(key.device, sizeof(key.device), disk->disk_name);
	all_bytes = bytes + (started ? started->done_bytes : 0);
	if (block_on)
		request_count(&key, request, started, all_bytes);
	if (disk_on && started)
		disk_report(&key, started, waited_ns(request, started), all_bytes);
	if (started)
		bpf_map_delete_elem(&requests, &address);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Key members to attributes. A label type is a row in label_table[] (label.c), found by the name of the
 * member's typedef; enums, texts and plain integers need none. Types with state (cgroups, kernel
 * symbols, processes) keep it in struct labels, one for the whole agent.
 */

#include <stdint.h>

#include "collector/shape.h"
#include "metric/attribute.h"

struct btf;
struct labels;

/* boot_ns: Unix time of boot, ns. -ENOMEM. */
int labels_new(uint64_t boot_ns, struct labels **ret_labels);
/* After the clock was set: process.creation.time follows from it. */
void labels_set_boot(struct labels *labels, uint64_t boot_ns);
/* Learns the names of what exists now (cgroups), so that what is gone at the first collection has one too. -ENOMEM. */
int labels_prime(struct labels *labels);
struct labels *labels_free(struct labels *labels);
/* Once before each collection: lets stale knowledge (a missing cgroup) be looked up once more. */
void labels_begin(struct labels *labels);
/* A hash map id -> path of cgroups made since, kept in the kernel; borrowed. -1: none. */
void labels_set_cgroup_names(struct labels *labels, int map_fd, uint32_t value_bytes, uint32_t path_offset_bytes);

struct label_context {
	struct labels *labels;
	const struct btf *btf;	     /* of the object */
	int process_names_fd;	     /* map lbl_process -> struct process_name of the same object, or -1 */
	uint32_t process_name_bytes; /* its value's size */
	uint32_t process_name_offset_bytes, process_name_text_bytes;
};

/* Is there a decoder for this member, and what does its attribute's name default to? NULL: it needs a [label]. */
bool label_is_known(const struct field *field);
const char *label_default_name(const struct field *field);

/* How many attributes it makes at most; a [label] cannot name them where it names them itself. */
unsigned int label_n_attributes(const struct field *field);
bool label_names_itself(const struct field *field);

/*
 * Adds the attributes of one member whose bytes are at raw: none, one, or several (a process). name is
 * what the descriptor calls it, or the default. 0 or -errno of attributes_add_*().
 */
int label_add(const struct label_context *context, const struct field *field, const char *name,
	      const void *raw, struct attributes *attributes);

/* Is what the member names gone for good, so that its key may be removed? False for what does not end. */
bool label_is_gone(const struct label_context *context, const struct field *field, const void *raw);

/* System calls of the ABI that this was built for. NULL, -1: unknown. */
const char *label_syscall_name(uint32_t number);
int label_syscall_number(const char *name);

DEFINE_CLEANUP(struct labels *, labels_free);

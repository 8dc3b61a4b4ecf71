/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A label is a member of a key; attributes are what it becomes. A label type is a row in label_table[]
 * (label.c), found once by the name of the member's typedef. Enums, texts and plain integers need none.
 * Types with state (cgroups, kernel symbols) keep it in struct labels, one for the whole agent.
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
/*
 * Learns the names of all cgroups that exist now, so that even those that are gone at the first
 * collection have one. -ENOMEM.
 */
int labels_prime(struct labels *labels);
struct labels *labels_free(struct labels *labels);
/* Once before each collection: cgroups and kernel functions that were unknown may be looked up again. */
void labels_begin(struct labels *labels);
#define LABEL_NAMES_VALUE_BYTES_MAX 4096

/* A hash map of the kernel side from a number (u64) to a text in its value. */
struct label_names {
	int fd; /* borrowed; -1: none */
	uint32_t value_bytes;
	uint32_t text_offset_bytes, text_bytes; /* within the value */
};

/* Paths of cgroups by id, written down when they were made. Borrowed. */
void labels_set_cgroup_names(struct labels *labels, const struct label_names *names);

struct label_context {
	struct labels *labels;
	const struct btf *btf;		  /* of the object */
	struct label_names process_names; /* of the same object: lbl_process -> name of the executable */
};

struct label;

struct label_type {
	const char *name; /* of the typedef; NULL: any, by class */
	enum field_class class;
	uint32_t size_bytes;	  /* 0: any of the class */
	const char *default_name; /* of the attribute; NULL: it has none of its own */
	int (*add)(const struct label *label);
	bool is_optional; /* 0 makes no attribute, and never ends */
	bool (*is_gone)(struct labels *labels, uint64_t value);
	unsigned int n_own; /* attributes that it names itself, so that no [label] can; 0: it makes one */
};

/* NULL: such a member cannot become an attribute. */
const struct label_type *label_type_find(const struct field *field);

/*
 * Adds the attributes of one member whose bytes are at raw: none, one, or several (a process). name is
 * what the descriptor calls it, or the default. 1: the name was not known yet, and a later collection may
 * know it. -errno of attributes_add_*().
 */
int label_add(const struct label_type *type, const struct label_context *context, const struct field *field,
	      const char *name, const void *raw, struct attributes *attributes);

/*
 * Is the thing that the member names gone for good, so that its key may be removed? False for
 * things that do not end, and as long as that is unknown.
 */
bool label_is_gone(const struct label_type *type, const struct label_context *context, const struct field *field,
		   const void *raw);

/* System calls of the ABI that this was built for. NULL, -1: unknown. */
const char *label_syscall_name(uint32_t number);
int label_syscall_number(const char *name);

DEFINE_CLEANUP(struct labels *, labels_free);

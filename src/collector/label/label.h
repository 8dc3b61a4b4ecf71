/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A label is a member of a key; attributes are what it becomes. A label type is a row in label_table[]
 * (label.c), found once by the name of the member's typedef. Enums, texts and plain integers need none.
 * Types with state (cgroups, kernel symbols) keep it in struct labels, one for the whole agent.
 */

#include <stdint.h>
#include <stdio.h>

#include "collector/label/unit.h"
#include "collector/shape.h"
#include "metric/attribute.h"

struct btf;
struct cgroups;
struct ksyms;

#define LABEL_NAMES_VALUE_BYTES_MAX 4096

/* What the configuration says about names. */
struct label_choice {
	struct unit_choice units;
	uint64_t brief_processes; /* label_is_brief(): how many of a table have their own series */
};

struct labels {
	uint64_t boot_ns; /* Unix time of boot, for process.creation.time; set again after the clock was set */
	const struct label_choice *choice; /* borrowed */
	struct cgroups *cgroups;

	/* kept by label.c */
	FILE *kallsyms;	     /* opened while we had the right to see addresses; or NULL */
	struct ksyms *ksyms; /* read on first need; NULL before, and where they cannot be read */
	uint64_t previous_ns; /* CLOCK_BOOTTIME of the previous collection */
	bool has_read_ksyms; /* since labels_begin() */
	uint8_t value[LABEL_NAMES_VALUE_BYTES_MAX]; /* room for one look-up */
	/* What was found since labels_begin(): many keys of many maps ask for the same processes. */
	struct {
		uint64_t id;
		bool is_gone;
	} processes[1024];
};

/* -ENOMEM. */
int labels_new(uint64_t boot_ns, const struct label_choice *choice, struct labels **ret_labels);
struct labels *labels_free(struct labels *labels);
/*
 * Once before each collection: cgroups and kernel functions that were unknown may be looked up again.
 * previous_ns: CLOCK_BOOTTIME of the collection before, or of the start.
 */
void labels_begin(struct labels *labels, uint64_t previous_ns);
/* A hash map of the kernel side from a number (u64) to a text in its value. */
struct label_names {
	int fd; /* borrowed; -1: none */
	uint32_t text_offset_bytes, text_bytes; /* within the value */
};

struct label_context {
	struct labels *labels;
	const struct btf *btf;		  /* of the object */
	struct label_names process_names; /* of the same object: lbl_process -> name of the executable */
};

struct member;

struct label_type {
	const char *name; /* of the typedef; NULL: any, by class */
	enum field_class class;
	uint32_t size_bytes;	  /* 0: any of the class */
	const char *default_name; /* of the attribute; NULL: it has none of its own */
	int (*add)(const struct member *member);
	bool is_optional; /* 0 makes no attribute, and never ends */
	bool (*is_gone)(struct labels *labels, uint64_t value);
	unsigned int n_own; /* attributes that it names itself, so that no [label] can; 0: it makes one */
	const char *own[4]; /* those that it may make, ended by NULL */
};

/* NULL: such a member cannot become an attribute. */
const struct label_type *label_type_find(const struct field *field);

/* A member of the keys of a map, and the attribute that it becomes. */
struct key_label {
	const struct label_type *type; /* NULL: it only fills a gap, as without an attribute */
	const struct label_context *context;
	const struct field *field;
	char *attribute; /* what the descriptor calls it, or the default */
};

#define LABEL_UNWANTED 2

/*
 * Adds the attributes of the member of one key: none, one, or several (a process). 1: the name was not known yet, and a
 * later collection may know it. LABEL_UNWANTED: the configuration excludes what has this key. -errno of
 * attributes_add_*().
 */
int label_add(const struct key_label *label, const void *key, struct attributes *attributes);

/*
 * Is the thing that the member names gone for good, so that its key may be removed? False for
 * things that do not end, and as long as that is unknown.
 */
bool label_is_gone(const struct key_label *label, const void *key);

/* If the member is a process that began after the previous collection, and has ended: its id. Else 0. */
uint64_t label_brief(const struct key_label *label, const void *key);

/* System calls of the ABI that this was built for. NULL, -1: unknown. */
const char *label_syscall_name(uint32_t number);
int label_syscall_number(const char *name, size_t length);

DEFINE_CLEANUP(struct labels *, labels_free);

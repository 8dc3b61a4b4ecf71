/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The shape of a key or a value as the object's BTF tells it: every member with its place, nested
 * structures flattened ("owner.cgroup"). BTF is the only source of sizes and offsets.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/cleanup.h"

struct btf;

enum field_class {
	FIELD_INTEGER,
	FIELD_ENUM,
	FIELD_TEXT,	 /* array of char */
	FIELD_BYTES,	 /* any other array, or a structure with a lbl_ or prm_ typedef */
	FIELD_HISTOGRAM, /* a structure with "sum" and an array "bucket" of at least 4 bytes each */
};

struct field {
	char *name;	       /* dotted; "" for a key or value that is not a structure */
	/*
	 * Of the outermost typedef, or "": "lbl_cgroup", "val_ns"; the BTF's own string. If an array has
	 * none: of its elements, where that is a lbl_.
	 */
	const char *type_name;
	enum field_class class;
	uint32_t offset_bytes;
	uint32_t size_bytes;
	bool is_signed, is_bool;
	uint32_t type_id; /* without typedefs: of the enum */
	/* FIELD_HISTOGRAM; .type_name, .offset_bytes and .size_bytes are those of sum */
	bool is_known; /* it is a struct hist_time or struct hist_value of bpf/include/hist.h */
	uint32_t bucket_offset_bytes;
	uint32_t bucket_bytes; /* of one; FIELD_BYTES, FIELD_TEXT: of an element */
	uint32_t n_buckets;
};

struct shape {
	struct field *fields;
	size_t n_fields;
	uint32_t size_bytes;
};

/*
 * -EINVAL: not a type of known size made of integers, enums, arrays and structures (a pointer, a
 * union, a bit field, nested deeper than 8 or with more than 256 members). -ENOMEM. On failure
 * *ret_culprit, if asked for and NULL before, is the member's name, to be freed by the caller.
 */
int shape_from_btf(const struct btf *btf, uint32_t type_id, struct shape *ret_shape,
		   char **ret_culprit);
const struct field *shape_find(const struct shape *shape, const char *name);
void shape_done(struct shape *shape);

/*
 * btf-check.c: is an object's BTF whole? Every type, member and parameter refers to types that
 * exist and to names that exist and can be printed, and no typedef refers to itself. libbpf before
 * 1.3 does not check: it reads address 0 for a type that does not exist. Later versions too follow
 * a typedef of itself forever. So a damaged file is refused before libbpf opens it.
 */
bool btf_is_whole(const struct btf *btf);

/* An integer of 1, 2, 4 or 8 bytes at data, as it stands in memory. */
uint64_t shape_load(const void *data, uint32_t size_bytes);
/* As much of value as the field holds, with its sign. */
int64_t shape_number(const struct field *field, uint64_t value);

/* The name of the i-th constant of an enum, and its value. NULL: there are fewer. */
const char *shape_enum_at(const struct btf *btf, uint32_t type_id, uint32_t i, int64_t *ret_value);
/*
 * Of the types of these kinds (1 << BTF_KIND_…) whose names begin with prefix, what follows that in
 * the name that is nearest to name (parse_nearest()), and not longer or shorter by more than slack.
 * NULL: there is none.
 */
const char *shape_nearest_type(const struct btf *btf, uint32_t kinds, const char *prefix,
			       const char *name, long slack);
/*
 * The value that has this name, in upper or lower case, of an enum. False: none, and *ret_value is
 * any.
 */
bool shape_enum_value(const struct btf *btf, uint32_t type_id, const char *name,
		      int64_t *ret_value);
/*
 * The name of an enum's constant without the prefix that all constants share (up to an underscore),
 * in lower case, into text of size bytes. NULL where the value has no name.
 */
const char *shape_enum_name(const struct btf *btf, uint32_t type_id, int64_t value, char *text,
			    size_t size);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What may be tuned in an object: its "const volatile" variables, set by name before it is loaded.
 * Place and type come from BTF. A text becomes a value by the type:
 *     bool               yes, no
 *     integers           decimal or 0x, within the type's range
 *     enums              a constant's name without the common prefix, in lower case
 *     char[N]            text of less than N bytes
 *     prm_ns             a duration with a unit, such as 10ms
 *     prm_syscalls       system calls by name, separated by commas; "all"; "none" or empty
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/shape.h"
#include "util/buf.h"

#define VARIABLES_SECTION ".rodata"
/* bpfpush sets these, no user does. */
#define VARIABLE_PREEMPTIBLE "hooks_preemptible" /* preempt.h */
#define VARIABLE_CHOOSING    "events_choose"	  /* event.h */

struct variable {
	const char *name; /* the BTF's own string */
	const struct variable_type *type; /* NULL: no text can set it */
	struct field field;		 /* without a name and a place; if it has a type */
	uint32_t offset_bytes, size_bytes;
	const char *text; /* that sets it, borrowed; NULL: the object's own value holds */
};

struct variables {
	const struct btf *btf; /* borrowed */
	uint8_t *data;	       /* the whole section as it will be loaded */
	size_t size_bytes;
	struct variable *items;
	size_t n;
};

/*
 * data: the object's .rodata, copied; NULL with size 0 where it has none. final: the opened
 * object's own BTF, in which libbpf has put the places of variables (compilers leave them 0); same
 * types as btf. -ENOMEM.
 */
int variables_init(const struct btf *btf, const struct btf *final, const void *data,
		   size_t size_bytes,
		  struct variables *ret_variables);
void variables_done(struct variables *variables);

struct variable *variable_find(const struct variables *variables, const char *name);
/* What is wrong, continuing the text, and valid until the next call; or NULL. */
const char *variable_set(struct variables *variables, struct variable *variable, const char *text);
/*
 * Its value as a user may write it: the text that set it, or else what the object holds. False,
 * with nothing appended, if no text can set it.
 */
bool variable_show(const struct variables *variables, const struct variable *variable,
		   struct buf *out);
/*
 * Is there one of that name, and not all of its bytes are zero? Without a name (NULL), nothing is
 * off.
 */
bool variable_is_on(const struct variables *variables, const char *name);

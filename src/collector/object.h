/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * NAME.bpf.o: one object, its types, variables and programs. Several collectors may share one, if
 * each of their descriptors says so ([collector] object = NAME); then it is opened, loaded and
 * attached once. collector.c knows what its collectors want of it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "collector/label/label.h"
#include "collector/programs.h"
#include "collector/variable.h"
#include "util/buf.h"
#include "util/diag.h"

/* To be read by all. */
struct object {
	char *path;
	uint8_t *bytes; /* the file as it was read, once */
	size_t n_bytes;
	const char *kernel_types; /* as in struct label_choice, borrowed */
	struct btf *btf;
	struct bpf_object *bpf;	  /* opened for checks; then the loaded one */
	struct variables variables; /* all its variables */
	struct programs programs;
	/*
	 * Kept by collector.c. Those that are on, in the order of their opening; the last that
	 * leaves frees it.
	 */
	struct collector **collectors;
	size_t n_collectors;
	uint64_t units; /* that its tables have room for; see collectors_size() */
	uint64_t hash;	 /* of all that decides what is loaded; 0: not kept */
	bool is_adopted; /* its maps and programs are those of the process before */
	bool has_past;	 /* maps of another layout are read once more (adopt/adopt.h) */
	bool is_tried;	/* starting it */
	int err;       /* of the start, then of the iterators' last run */
	struct buf why; /* it could not be started */
};

/* Every mistake goes to diag, and then *ret_object is NULL. needed_by: the descriptor. -ENOMEM. */
int object_open(const char *path, const char *needed_by, struct diag *diag,
		struct object **ret_object);
void object_free(struct object *object);

/* The bytes of the object, opened again. NULL and errno. */
struct bpf_object *object_open_bytes(const struct object *object);

/*
 * The map of processes' names, where the loaded object has it as owner.h does; else names stays
 * what it is.
 */
void object_find_names(const struct object *object, struct label_names *names);

DEFINE_CLEANUP(struct object *, object_free);

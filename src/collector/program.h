/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The programs of an object: which of a hook's alternatives is loaded, with which result, and the
 * kernel's statistics about its runs. alternative.h has the rules.
 */

#include <stdbool.h>
#include <stdint.h>

#include "util/cleanup.h"

struct bpf_link;
struct bpf_object;
struct buf;

enum program_state {
	PROGRAM_WAITING, /* an alternative that was not needed */
	PROGRAM_OFF,	 /* its setting is off */
	PROGRAM_REFUSED, /* the kernel did not take it */
	PROGRAM_ATTACHED,
};

struct program {
	char *name;
	char *hook;	 /* programs of one hook are alternatives … */
	char *variant;	 /* … but those of one variant belong together */
	char *section;	 /* "tp_btf/sys_exit" */
	const char *map; /* whose elements it visits, NULL: none; borrowed from the descriptor */
	int rank; /* of its section among alternatives: the least is tried first */
	bool is_doubtful; /* an alternative by its name, but perhaps not by its section */
	bool is_iterator;
	enum program_state state;
	char *error; /* PROGRAM_REFUSED: why, one line */
	int err;     /* the same as -errno */
	struct bpf_link *link;
	int fd;
	/* from the last programs_stats() */
	uint64_t runs, run_time_ns; /* while kernel.bpf_stats_enabled is on */
	uint64_t missed;	    /* events that the kernel did not deliver (recursion_misses) */
};

struct programs {
	struct program *items;
	size_t n;
};

/* The programs of an opened object. -ENOMEM. */
int programs_list(struct bpf_object *object, struct programs *ret_programs);
/* Is it an iterator over the elements of a map? It is attached to that map. */
bool program_is_over_map(const struct program *program);

struct programs_loader {
	/* A freshly opened object, settings set; called again for each try. 0 or -errno. */
	int (*open)(void *user, struct bpf_object **ret_object);
	/* The object is loaded, and nothing of it attached yet; it may be closed again. NULL: nothing to do. */
	int (*loaded)(void *user, const struct bpf_object *object);
	void *user;
};

/*
 * Opens, loads and attaches, and tries further alternatives until every hook is attached for which
 * that is possible. 0, even if some hooks could not be attached: their states say so. Or -errno if
 * none could, from the object as a whole or from its first program: -EPERM, -ENOMEM … with the
 * kernel's or libbpf's words in why.
 */
int programs_load(struct programs *programs, const struct programs_loader *loader, struct buf *why,
		  struct bpf_object **ret_object);
/* Runs each attached iterator once, to its end. The first -errno, if any. */
int programs_iterate(const struct programs *programs);
/* Do attached iterators use the map, and no other attached program? */
bool programs_is_map_of_iterators(const struct programs *programs, int map_fd);
void programs_stats(struct programs *programs);
bool programs_is_hook_attached(const struct programs *programs, const char *hook);
void programs_done(struct programs *programs);
/*
 * Turns on the kernel's statistics about all programs' runs and times, until the returned
 * descriptor is closed. This costs each run two clock readings. -errno: 5.8, CAP_SYS_ADMIN.
 */
int programs_enable_stats(void);
/* Keeps libbpf's messages off stderr; programs_load() collects them. Call it once, at the start. */
void programs_quiet(void);

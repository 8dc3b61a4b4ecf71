/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The programs of an object: which of a hook's alternatives is loaded, with which result, and the
 * kernel's statistics about its runs. alternative.h has the rules.
 */

#include "collector/program.h"

struct bpf_object;
struct buf;
struct store;
struct stored;

/* Adds the programs of an opened object. -ENOMEM. */
int programs_list(struct bpf_object *object, struct programs *programs);
/* Is it an iterator over the elements of a map? It is attached to that map. */
bool program_is_over_map(const struct program *program);

struct programs_loader {
	/* A freshly opened object, settings set; called again for each try. 0 or -errno. */
	int (*open)(void *user, struct bpf_object **ret_object);
	/*
	 * The object is loaded, and nothing of it attached yet; it may be closed again. NULL:
	 * nothing to do.
	 */
	int (*loaded)(void *user, const struct bpf_object *object);
	void *user;
};

/*
 * Opens, loads and attaches, and tries further alternatives until every hook is attached for which
 * that is possible. 0, even if hooks could not be attached: their states say so. Or -errno of the
 * object as a whole: -ENOMEM … with libbpf's words in why.
 */
int programs_load(struct programs *programs, const struct programs_loader *loader, struct buf *why,
		  struct bpf_object **ret_object);
/*
 * Are some attached where the kernel runs them only while it traces functions
 * (kernel_traces_functions())?
 */
bool programs_are_at_functions(const struct programs *programs);
/*
 * Attaches those that run on each CPU to CPUs that have come online since; a CPU that it may not
 * have is logged, and so is a program whose file was replaced. Are there any for each CPU? Then it
 * needs CAP_PERFMON. object NULL: nothing is done.
 */
bool programs_renew(struct programs *programs, const struct bpf_object *object);
/*
 * Runs each attached iterator that is due, to its end, after programs_stats(). The first -errno, if
 * any.
 */
int programs_iterate(struct programs *programs, bool is_start);
/* False also if it is not attached. */
bool program_uses_map(const struct program *program, int map_fd);
/* is_baseline: from now on it counts, as growth does. */
void programs_stats(struct programs *programs, bool is_baseline);
/* For a process that adopts them, and what it takes from that, into past. */
void programs_save(const struct programs *programs, struct store *out);
void programs_restore(struct programs *programs, struct stored *in);
/* The first of a hook's programs that is in this state, or NULL. */
const struct program *programs_find(const struct programs *programs, const char *hook,
				    enum program_state state);
void programs_done(struct programs *programs);
/*
 * Turns on the kernel's statistics about all programs' runs and times, until the returned
 * descriptor is closed. This costs each run two clock readings. -errno: 5.8, CAP_SYS_ADMIN.
 */
int programs_enable_stats(void);
/* libbpf's warnings go there from now on; NULL: nowhere. */
void programs_listen(struct buf *words);
/*
 * Keeps libbpf's messages off stderr; programs_load() collects them. And makes libbpf accept
 * perf_event/EVENT and xdp/INTERFACE. Call it before any object is opened.
 */
void programs_quiet(void);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The programs of an object: which of a hook's alternatives is loaded, with which result, and the
 * kernel's statistics about its runs. alternative.h has the rules.
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "util/cleanup.h"

struct bpf_object;
struct buf;
struct store;
struct stored;

#define PROGRAM_NAME_BYTES 256 /* of one that can be printed: object.c refuses longer ones */

enum program_state {
	PROGRAM_WAITING, /* an alternative that was not needed */
	PROGRAM_OFF,	 /* its setting is off */
	PROGRAM_REFUSED, /* the kernel did not take it */
	PROGRAM_ATTACHED,
};

/* What the kernel had counted at the baseline, or at the last reading of the process before. */
struct program_past {
	uint64_t runs, run_time_ns, skipped;
};

struct program {
	char *name;
	char hook[PROGRAM_NAME_BYTES];	  /* programs of one hook are alternatives … */
	char variant[PROGRAM_NAME_BYTES]; /* … but those of one variant belong together */
	char *section;	 /* "tp_btf/sys_exit" */
	const struct collector *collector; /* the first that uses it reports its numbers; NULL before the start */
	const struct delta_metric *events; /* the sum that grows by one with each run; NULL: there is none */
	const struct descriptor_program *how; /* event, interfaces and what belongs to them; NULL: nothing */
	const char *map; /* whose elements it visits, NULL: none; borrowed from the descriptor */
	size_t type; /* of its section, see alternative.c */
	int rank; /* of its variant among alternatives: the least is tried first */
	bool is_hook_preempted; /* the kernel preempts some of the hook's alternatives, … */
	bool is_exact;		/* … but not this one */
	bool is_doubtful; /* an alternative by its name, but perhaps not by its section */
	bool is_empty; /* it only returns, which keeps its hook on; so it has nothing to miss */
	bool is_iterator;
	char *backup; /* counts what this one misses, if it is attached; NULL: none */
	bool is_once; /* an iterator that runs only at the start … */
	bool is_seed; /* … and again after the kernel has skipped a program */
	enum program_state state;
	char *error; /* PROGRAM_REFUSED: why, one line */
	int err;     /* the same as -errno */
	int fd, link_fd; /* while it is attached; of an adopted one they are borrowed (adopt/adopt.h) */
	int past_link_fd; /* of an iterator that runs once more as it was (adopt/adopt.h), borrowed; or -1 */
	size_t n_places; /* functions of the same name that it is attached to, if there are several; or not known */
	struct hook_link *links; /* none: adopted, or not attached */
	size_t n_links;
	uint64_t file; /* that it was attached to (hook/file.h); 0: none */
	bool is_kept;	       /* the hook stays on when the process ends */
	struct program_past past;
	/* from the last programs_stats(), since past */
	uint64_t runs, run_time_ns; /* while kernel.bpf_stats_enabled is on */
	uint64_t skipped;	    /* events that the kernel did not deliver */
	uint64_t missed;	    /* the same, if it has no backup */
	uint64_t last_runs, last_missed; /* what they were before */
};

struct programs {
	struct program *items;
	size_t n;
	unsigned int n_interrupted; /* loads that were tried again */
	uint64_t n_skipped; /* events that the kernel did not deliver, counted elsewhere or not */
	uint64_t n_seeded;  /* what it was when iterators ran that run again after skips */
};

/* Adds the programs of an opened object. -ENOMEM. */
int programs_list(struct bpf_object *object, struct programs *programs);
/* Does a [program] section with this name mean it: is it the program's name, or its hook's? */
static inline bool program_is_called(const struct program *program, const char *name)
{
	return !strcmp(program->name, name) || !strcmp(program->hook, name);
}

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
 * that is possible. 0, even if hooks could not be attached: their states say so. Or -errno of the object
 * as a whole: -ENOMEM … with libbpf's words in why.
 */
int programs_load(struct programs *programs, const struct programs_loader *loader, struct buf *why,
		  struct bpf_object **ret_object);
/* Are some attached where the kernel runs them only while it traces functions (kernel_traces_functions())? */
bool programs_are_at_functions(const struct programs *programs);
/*
 * Attaches those that run on each CPU to CPUs that have come online since; a CPU that it may not have is logged, and so
 * is a program whose file was replaced. Are there any for each CPU? Then it needs CAP_PERFMON. object NULL: nothing is
 * done.
 */
bool programs_renew(struct programs *programs, const struct bpf_object *object);
/* Runs each attached iterator that is due, to its end, after programs_stats(). The first -errno, if any. */
int programs_iterate(struct programs *programs, bool is_start);
/* False also if it is not attached. */
bool program_uses_map(const struct program *program, int map_fd);
/* is_baseline: from now on it counts, as growth does. */
void programs_stats(struct programs *programs, bool is_baseline);
/* For a process that adopts them, and what it takes from that, into past. */
void programs_save(const struct programs *programs, struct store *out);
void programs_restore(struct programs *programs, struct stored *in);
/* Why this one of its hook's alternatives is attached, or NULL if nothing needs to be said. */
const char *program_choice(const struct program *program);
/* The first of a hook's programs that is in this state, or NULL. */
const struct program *programs_find(const struct programs *programs, const char *hook, enum program_state state);
void programs_done(struct programs *programs);
/*
 * Turns on the kernel's statistics about all programs' runs and times, until the returned
 * descriptor is closed. This costs each run two clock readings. -errno: 5.8, CAP_SYS_ADMIN.
 */
int programs_enable_stats(void);
/* libbpf's warnings go there from now on; NULL: nowhere. */
void programs_listen(struct buf *words);
/*
 * Keeps libbpf's messages off stderr; programs_load() collects them. And makes libbpf accept perf_event/EVENT and
 * xdp/INTERFACE. Call it before any object is opened.
 */
void programs_quiet(void);

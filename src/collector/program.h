/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A program of an object, and what becomes of it. */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct bpf_link;
struct collector;
struct delta_metric;
struct descriptor_program;

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

/* Most programs have one. */
struct hook_link {
	struct bpf_link *link;
	/*
	 * of a perf event, which is the link's; or, without a link of libbpf's, of the link itself;
	 * or 0, -1
	 */
	int fd;
	uint64_t time_ns; /* of a perf event, when it was looked at last */
};

/* Each part has a comment that names who decides it; all read it. */
struct program {
	/* The object (programs_list()); a target that the descriptor gives changes the section. */
	char *name;
	char *section; /* "tp_btf/sys_exit" */
	bool is_iterator;
	bool is_empty; /* it only returns, which keeps its hook on; so it has nothing to miss */

	/* hook/alternative.c */
	char hook[PROGRAM_NAME_BYTES];	  /* programs of one hook are alternatives … */
	char variant[PROGRAM_NAME_BYTES]; /* … but those of one variant belong together */
	size_t type; /* of its section */
	int rank; /* of its variant among alternatives: the least is tried first */
	bool is_hook_preempted; /* the kernel preempts some of the hook's alternatives, … */
	bool is_exact;		/* … but not this one */
	bool is_doubtful; /* an alternative by its name, but perhaps not by its section */

	/* What collectors want of it: programs_choose() in start.c. */
	/* the first that uses it reports its numbers; NULL before the start */
	const struct collector *collector;
	/* the sum that grows by one with each run; NULL: there is none */
	const struct delta_metric *events;
	/* event, interfaces and what belongs to them; NULL: nothing */
	const struct descriptor_program *how;
	const char *map; /* whose elements it visits, NULL: none; borrowed from the descriptor */
	char *backup; /* counts what this one misses, if it is attached; NULL: none */
	bool is_once; /* an iterator that runs only at the start … */
	bool is_seed; /* … and again after the kernel has skipped a program */

	/*
	 * Its attachment: programs_load(), hook/attach.c, or adopt/adopt.c, which also chooses what
	 * is kept.
	 */
	enum program_state state;
	char *error; /* PROGRAM_REFUSED: why, one line */
	int err;     /* the same as -errno */
	/* while it is attached; of an adopted one they are borrowed (adopt/adopt.h) */
	int fd, link_fd;
	/* of an iterator that runs once more as it was (adopt/adopt.h), borrowed; or -1 */
	int past_link_fd;
	/* functions of the same name that it is attached to, if there are several; or not known */
	size_t n_places;
	struct hook_link *links; /* none: adopted, or not attached */
	size_t n_links;
	uint64_t file; /* that it was attached to (hook/file.h); 0: none */
	bool is_kept;	       /* the hook stays on when the process ends */

	/* Counts of the kernel: programs_stats(), since past. */
	struct program_past past;
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

/* Does a [program] section with this name mean it: is it the program's name, or its hook's? */
static inline bool program_is_called(const struct program *program, const char *name)
{
	return !strcmp(program->name, name) || !strcmp(program->hook, name);
}
/*
 * Why this one of its hook's alternatives is attached, or NULL if nothing needs to be said.
 * alternative.c
 */
const char *program_choice(const struct program *program);

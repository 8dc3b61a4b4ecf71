/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The collectors that the configuration and the command line ask for: found, opened, tuned,
 * started.
 *
 * Which: those named on the command line; else [agent] collectors; else the seven that are on by
 * default and every collector in the user's own directories (all below except the last). A section
 * [collector NAME] adds NAME, and "enabled = no" removes it. The collector "cgroup", which names
 * short-lived cgroups, is added to whatever runs.
 *
 * Where: [agent] collector_directory, /etc/bpfpush/collectors, then what was installed, or, for a
 * binary in its build tree, that tree's bpf/. The first collector of a name counts.
 */

#include "collector/collector.h"
#include "config/config.h"

struct kept;

struct collector_set {
	struct collector **items;
	size_t n;
	size_t n_shown; /* all except a "cgroup" that was added only for names */
	struct labels *labels;
	struct budget *budget;
	/* that tables are to have room for; after the start, that they have room for */
	uint64_t units;
	bool is_strict; /* what collectors are unless their sections say otherwise */
	struct collector **refused; /* room for those that cannot start; NULL: they are not kept */
	size_t n_refused;
	struct buf missing; /* the names of those that cannot start, and why */
	/* the names of those that may not start without all of their hooks, and lack some */
	struct buf lacking;
	/*
	 * all of them, and the log says so: a strict one lacks a hook, or the kernel cannot do it
	 */
	bool is_refused;
	bool is_brief; /* what only costs room is not worth a message before there is none */
	bool is_cut;	/* memory does not suffice for as many as asked for */
};

/*
 * names: NULL or ended by NULL. boot_ns: Unix time of boot. Every mistake goes to diag; the set
 * holds the collectors without any. -ENOMEM.
 */
int collector_set_open(const struct config *config, const char *const *names, uint64_t boot_ns,
		       struct diag *diag, struct collector_set *ret_set);
/*
 * kept: objects that are the same as before go on with what the kernel has counted
 * (collector/adopt/adopt.h), and all that run are kept. NULL: nothing is kept. Starts all of them.
 * A collector that cannot run is logged with the reason and removed. 0 if at least one runs, else
 * the -errno of the first; or, with nothing tried and all of them still there, that of
 * kernel_check(). The reason is logged.
 */
int collector_set_start(struct collector_set *set, struct kept *kept);
/* Instead of the start: would it load nothing, because all is kept? */
bool collector_set_is_kept(struct collector_set *set, struct kept *kept);
/* What a collector has for exporters. */
enum signals collector_signals(const struct collector *collector);
/* What those that are shown, and the agent itself, have for exporters. */
enum signals collector_set_signals(const struct collector_set *set);
void collector_set_done(struct collector_set *set);

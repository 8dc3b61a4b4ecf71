/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a collector is made of, and where its parts find each other. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/descriptor.h"
#include "collector/object.h"
#include "collector/label/label.h"
#include "metric/metric.h"
#include "util/diag.h"

struct binding;

/* To be read by all, and changed through the functions of collector.h. */
struct collector {
	char *name;
	char *directory;
	char *conf_path;
	struct labels *labels;
	struct budget *budget; /* of the process */
	struct diag *diag; /* where mistakes go, while it is opened */
	struct descriptor *descriptor;
	struct object *object;
	/* those of the object's variables that are its own; the object owns the data */
	struct variables variables;
	struct binding *bindings;
	size_t n_bindings;
	struct metric **metrics; /* one for each name, each in one piece of memory */
	size_t n_metrics;
	struct collector_map *maps; /* as of the last collector_find_maps() */
	size_t n_maps;
	struct label_context context;
	const struct event_sink *sink; /* borrowed; NULL: events are not wanted */
	struct watch *watches; /* of the [cgroups] sections */
	size_t n_watches;
	bool is_strict; /* each hook has to be attached */
	bool is_default; /* nobody has asked for it */
	bool is_started;
	bool is_probe; /* its descriptor was written for it, and its object is a copy of its own */
};

/* For messages: which section has its name. */
static inline const char *collector_kind(const struct collector *collector)
{
	return collector->is_probe ? "probe" : "collector";
}

struct collector *collector_named(struct collector *const *items, size_t n, const char *name);
/* NULL: there is none of that name. */
struct metric *collector_find_metric(const struct collector *collector, const char *name);
/* The first [program] section that means the program, or NULL. */
const struct descriptor_program *collector_describes(const struct collector *collector,
						     const struct program *program);
/*
 * Is it one of the collector's programs: does a [program] section name it? Without sharing, all
 * are.
 */
bool collector_uses(const struct collector *collector, const struct program *program);
/*
 * The settings that "when" in a descriptor means: the collector's, or with VARIABLE_PREEMPTIBLE the
 * object's.
 */
const struct variables *collector_variables_for(const struct collector *collector,
						const char *when);

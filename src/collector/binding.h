/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a collector is made of once its descriptor has been laid over its object: for each map that is
 * exported, which numbers of its values are which metrics and which members of its keys which attributes.
 * Only collector*.c include this.
 */

#include "collector/collector.h"
#include "collector/descriptor.h"
#include "collector/program.h"
#include "collector/shape.h"
#include "collector/source.h"
#include "collector/setting.h"
#include "metric/delta.h"

struct bpf_map;
struct bpf_object;

/* One exported map. */
struct binding {
	const char *map; /* its name; the descriptor's string */
	unsigned int line; /* of the first section that exports it */
	struct shape key, value;
	const char **label_names; /* of each field of the key; owned where label_text has it */
	struct source source;
	struct source_run *runs;
	struct delta delta;
	struct delta_metric *metrics;		    /* delta.metrics */
	const struct descriptor_metric **described; /* the section behind each */
	const struct collector *collector;
};

struct collector {
	char *name;
	char *directory;
	char *conf_path, *object_path;
	struct labels *labels;
	size_t series_limit;
	struct descriptor *descriptor;
	struct btf *btf;
	struct bpf_object *object; /* opened for checks; then the loaded one */
	struct settings settings;
	struct programs programs;
	struct binding *bindings;
	size_t n_bindings;
	struct metric **metrics; /* one for each name, each in one piece of memory */
	size_t n_metrics;
	struct label_context context;
	bool is_started;
	uint32_t n_readings;
};

struct binder {
	struct collector *collector;
	struct diag *diag;
};

#define complain(binder, line, ...) diag_add((binder)->diag, (binder)->collector->conf_path, line, __VA_ARGS__)

struct binding *binding_find(const struct collector *collector, const char *map);

/* For complaints: "did you mean …?" or "WHOSE has a, b, c", for a name that is not there. Text of out. */
const char *binding_instead(const char *name, const char *const *names, size_t n, const char *whose, struct buf *out);
size_t binding_field_names(const struct shape *shape, const char **names, size_t max);
/* Parameters, labels, attributes and programs, once the metrics are bound. -ENOMEM. */
int bindings_check(struct binder *binder);

/* Lays the descriptor over the object; every mismatch goes to diag. -ENOMEM. */
int bindings_make(struct collector *collector, struct diag *diag);
/* Before a collector's maps are let go. */
void bindings_done(struct collector *collector);
/* After loading: the maps' descriptors, and room for their rows. */
int bindings_open(struct collector *collector);

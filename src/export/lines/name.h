/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A series' name in a line format, from its metric, its attributes, the resource and a template. All of these
 * may hold anything: what comes out has only bytes that the dialect keeps (dialect.h), no empty level and no
 * empty value, each level and value at most NAME_LEVEL_BYTES long, a path at most NAME_PATH_BYTES. What is cut
 * ends in a hash of the whole, so that two long names that begin alike stay two.
 */

#include <stdbool.h>
#include <stdint.h>

#include "export/lines/dialect.h"
#include "export/lines/template.h"
#include "metric/metric.h"
#include "util/buf.h"
#include "util/setting-table.h"

#define NAME_LEVEL_BYTES 200
#define NAME_TAG_BYTES	 64 /* of a tag's name */
#define NAME_PATH_BYTES	 1000
#define NAME_PATH_LEAST	 80 /* that limit_bytes may be */
#define NAME_SUFFIX_BYTES 40 /* of what goes behind the path of a histogram that becomes counters */
#define NAME_RESOURCE_TAGS_MAX 16

/* Tags that are ours to give; an attribute of that name gets a "_" behind it. */
#define NAME_TAG_UPPER	"upper"	 /* of a bucket's counter: the largest value that it counts */
#define NAME_TAG_SERIES "series" /* tells apart what would have one name */

struct naming {
	const struct dialect *dialect;
	struct template template;
	const struct attribute *resource;
	unsigned int n_resource;
	const struct setting_list *resource_tags; /* names of those in resource that become tags */
	size_t limit_bytes; /* of a path with all its suffixes; NAME_PATH_BYTES if nobody sets less */
	bool is_kept[256];			 /* in tags' values */
};

/* template: NULL for the dialect's own. All is borrowed. -EINVAL for a template that template_check() refuses. */
int naming_init(struct naming *naming, const struct dialect *dialect, const char *template,
		const struct attribute *resource, unsigned int n_resource, const struct setting_list *resource_tags);
/* Of resource_attributes =: as the check of struct exporter_ops; 0. */
int naming_check(const struct setting_list *resource_tags, const char *path, unsigned int line, struct diag *diag);
/* suffix goes behind the metric's own name ("_us"). At most limit_bytes less spare_bytes, which are for what follows. */
void name_append_path(const struct naming *naming, const struct series *series, const char *suffix, size_t spare_bytes,
		      struct buf *out);
/* With the separator before the first; nothing where the dialect has no tags or the series none left. */
void name_append_tags(const struct naming *naming, const struct series *series, struct buf *out);
/* One more tag behind tags, which begin at tags_at of out. Nothing is replaced in name and value. */
void name_append_tag(const struct naming *naming, size_t tags_at, const char *name, const char *value, struct buf *out);
/* Of what makes a series itself; the same in every process and on every machine. */
uint64_t name_identity(const struct series *series);

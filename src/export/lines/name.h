/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The name of a series in a line format: a path made from a template, then tags where the dialect
 * has them. It has only bytes that the dialect keeps, no empty level and no empty value. A level or
 * a value has at most NAME_LEVEL_BYTES, a tag's name NAME_TAG_BYTES, a path NAME_PATH_BYTES.
 *
 * Each series has a name of its own. The rule needs only the series and the exported metrics, so a
 * series has the same name after every restart, in whatever order series appear. "Digits" are "_"
 * and eight hexadecimal digits of a stable hash.
 *
 *  1. Letters, digits, "_" and "-" stay, in tags also what dialect.h lists. The last dot of a unit's
 *     name becomes "_".
 *  2. Any other character becomes "_", and digits of the original text follow. They also follow text
 *     that was cut, and text that could be taken for something else: one that ends in digits, "",
 *     "_" and "otel_metric_overflow". Values of the resource, which all series share, have none.
 *  3. A path ends in digits of the whole series if the series has attributes that neither path nor
 *     tags show, or that cannot be found again in a path of this template.
 *  4. So do the paths of all series of a metric whose lines could be taken for those of another
 *     metric (is_shadowed_by() in lines.c).
 *
 * In a path the rule relies on series of one metric having the same attributes. Only error.type may
 * be missing, the owner where {unit} shows it, and all of them in overflow series, which have two
 * of their own.
 */

#include "export/lines/dialect.h"
#include "metric/metric.h"
#include "util/buf.h"
#include "util/setting-table.h"

/*
 * The path of a name as `template =` in the configuration gives it: text and placeholders.
 *
 *     {metric}      the metric's name with its dots; every template has it
 *     {host}        host.name of the resource
 *     {unit}        the owner: systemd.unit.name, container.id or process.linux.cgroup
 *     {attributes}  the values of all attributes that no other placeholder takes, joined by dots
 *     {NAME}        the value of the attribute NAME, of the series or else of the resource
 */

enum template_kind { TEMPLATE_TEXT,
		     TEMPLATE_METRIC,
		     TEMPLATE_HOST,
		     TEMPLATE_UNIT,
		     TEMPLATE_ATTRIBUTES,
		     TEMPLATE_NAMED };

#define TEMPLATE_PIECES_MAX 32

struct template {
	struct template_piece {
		enum template_kind kind;
		/* of TEMPLATE_TEXT and TEMPLATE_NAMED; points into the parsed text */
		const char *text;
		size_t size;
	} pieces[TEMPLATE_PIECES_MAX];
	unsigned int n, n_of[TEMPLATE_NAMED + 1]; /* pieces in all, of each kind */
	/*
	 * Each value can be found again in a path: it fills levels of its own, and {attributes}
	 * comes after {metric}. "{unit}_{metric}" is not like that: the path a_b_c says nothing
	 * about where the unit ends.
	 */
	bool is_readable;
	bool has_values_after_metric;
};

/* text is borrowed. -EINVAL with *ret_complaint, which follows "path:line: template: ". */
int template_parse(const char *text, struct template *ret_template, const char **ret_complaint);
/* Checks a text like template_parse(), for a table of options. */
int template_check(const char *text, const char **ret_complaint);

#define NAME_LEVEL_BYTES  200
#define NAME_TAG_BYTES	  64
#define NAME_PATH_BYTES	  1000
#define NAME_PATH_LEAST	  80 /* limit_bytes is not smaller */
#define NAME_SUFFIX_BYTES 40 /* what the lines of a histogram add to its path, at most */
#define NAME_RESOURCE_TAGS_MAX 16

#define NAME_TAG_UPPER "upper" /* our own tag on a bucket: the largest value that it counts */

struct naming {
	const struct dialect *dialect;
	struct template template;
	const struct attribute *resource;
	unsigned int n_resource;
	const struct setting_list *resource_tags; /* names of those in resource that become tags */
	size_t limit_bytes;			 /* of a path with all its suffixes */
};

/* What the names of all series of a metric share. */
struct name_kind {
	const char *unit_suffix; /* after the metric's name: "_us" */
	/* ends the path, unless the metric's name or the template ends it like that already */
	const char *path_suffix;
	size_t spare_bytes;	 /* of limit_bytes, for what lines add to the path */
	bool is_shadowed;
};

/*
 * template: NULL for the dialect's own. All is borrowed. -EINVAL for a template that
 * template_check() refuses.
 */
int naming_init(struct naming *naming, const struct dialect *dialect, const char *template,
		const struct attribute *resource, unsigned int n_resource,
		const struct setting_list *resource_tags);
void name_append_path(const struct naming *naming, const struct series *series,
		      const struct name_kind *kind, struct buf *out);
/* Begins with the dialect's separator; nothing where the dialect has no tags or none are left. */
void name_append_tags(const struct naming *naming, const struct series *series, struct buf *out);

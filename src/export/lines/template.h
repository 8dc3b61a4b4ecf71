/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The path of a name as `template =` in the configuration gives it: text and placeholders.
 *
 *     {metric}      the metric's name with its dots; every template has it
 *     {host}        host.name of the resource
 *     {unit}        the owner: systemd.unit.name, container.id or process.linux.cgroup
 *     {attributes}  the values of all attributes that no other placeholder takes, joined by dots
 *     {NAME}        the value of the attribute NAME, of the series or else of the resource
 */

#include <stdbool.h>
#include <stddef.h>

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
		const char *text; /* of TEMPLATE_TEXT and TEMPLATE_NAMED; points into the parsed text */
		size_t size;
	} pieces[TEMPLATE_PIECES_MAX];
	unsigned int n, n_of[TEMPLATE_NAMED + 1]; /* pieces in all, of each kind */
	/*
	 * Each value can be found again in a path: it fills levels of its own, and {attributes} comes after {metric}.
	 * "{unit}_{metric}" is not like that: the path a_b_c says nothing about where the unit ends.
	 */
	bool is_readable;
	bool has_values_after_metric;
};

/* text is borrowed. -EINVAL with *ret_complaint, which follows "path:line: template: ". */
int template_parse(const char *text, struct template *ret_template, const char **ret_complaint);
/* The same as a check of a table of options. */
int template_check(const char *text, const char **ret_complaint);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The path of a name, as template = of the configuration says it: text and placeholders.
 *
 *     {metric}      the metric's name, dots and all; every template has it
 *     {host}        the resource's host.name
 *     {unit}        whose the number is: systemd.unit.name, container.id or process.linux.cgroup
 *     {attributes}  the values of all attributes that no other placeholder takes, with dots between them
 *     {NAME}        the value of the series' attribute NAME, else of the resource's
 */

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
		const char *text; /* of TEMPLATE_TEXT and TEMPLATE_NAMED; a part of what was parsed */
		size_t size;
	} pieces[TEMPLATE_PIECES_MAX];
	unsigned int n;
};

/* text is borrowed. -EINVAL with *ret_complaint, which goes behind "path:line: template: ". */
int template_parse(const char *text, struct template *ret_template, const char **ret_complaint);
/* The same as a check of a table of options. */
int template_check(const char *text, const char **ret_complaint);

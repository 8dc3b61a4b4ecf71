/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a [label] section makes of the text that its type has made: cuts off the prefix, replaces a value or what a
 * regular expression matches, and says what becomes of everything else.
 */

#include <regex.h>
#include <stddef.h>
#include <stdint.h>

struct btf;
struct descriptor_item;
struct descriptor_label;
struct diag;
struct label_rule;

/* Adds the regular expression of a line "match = …" to a list. Mistakes go to diag. -ENOMEM. */
int label_rule_compile(const struct descriptor_item *match, struct diag *diag, const char *path, regex_t **patterns,
		       size_t *n);
/*
 * *ret_rule becomes NULL if the section, which is borrowed, says nothing of that. kernel: for LABEL_KERNEL_ENUM, the
 * types of the running kernel; NULL: none are known, so numbers stay numbers. Mistakes go to diag. -ENOMEM.
 */
int label_rule_new(const struct descriptor_label *section, const struct btf *kernel, struct diag *diag,
		   const char *path, struct label_rule **ret_rule);
struct label_rule *label_rule_free(struct label_rule *rule);
/* For LABEL_KERNEL_ENUM: the name of the constant in the running kernel, or NULL. */
const char *label_rule_constant(const struct label_rule *rule, int64_t number);
/* What the descriptor calls the number; NULL: it does not say. rule may be NULL. */
const char *label_rule_value(const struct label_rule *rule, int64_t number);
/* What text, which is changed, becomes: a part of it or other text. NULL: its key is unwanted. */
const char *label_rule_apply(const struct label_rule *rule, char *text);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a [label] section makes of the text that its type has made: cuts off the prefix, replaces a
 * value or what a regular expression matches, and says what becomes of everything else.
 */

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

struct btf;
struct descriptor_label;
struct descriptor_list;
struct diag;
struct label_rule;

/* The regular expressions of lines "match = …". */
struct patterns {
	regex_t *items;
	size_t n;
};

/* Begins as zeroes. Mistakes go to diag. -ENOMEM. */
int patterns_compile(const struct descriptor_list *matches, struct diag *diag, const char *path,
		     struct patterns *ret_patterns);
/* The first that fits says which parts of text; n: of parts. False: none does. */
bool patterns_fit(const struct patterns *patterns, const char *text,
		  regmatch_t *ret_parts, size_t n);
void patterns_done(struct patterns *patterns);

/*
 * *ret_rule becomes NULL if the section, which is borrowed, says nothing of that. kernel: for
 * LABEL_KERNEL_ENUM, the types of the running kernel; NULL: none are known, so numbers stay
 * numbers. Mistakes go to diag. -ENOMEM.
 */
int label_rule_new(const struct descriptor_label *section, const struct btf *kernel,
		   struct diag *diag, const char *path, struct label_rule **ret_rule);
/*
 * Reports that the kernel has no enum of the name that the section, whose rule this is, gives it.
 */
void label_rule_check_enum(const struct label_rule *rule, const struct btf *kernel,
			   struct diag *diag, const char *path);
struct label_rule *label_rule_free(struct label_rule *rule);
/* For LABEL_KERNEL_ENUM: the name of the constant in the running kernel, or NULL. */
const char *label_rule_constant(const struct label_rule *rule, int64_t number);
/* What the descriptor calls the number; NULL: it does not say. rule may be NULL. */
const char *label_rule_value(const struct label_rule *rule, int64_t number);
/*
 * What text, which is changed, becomes: a part of it or other text. NULL: its key is unwanted. rule
 * may be NULL.
 */
const char *label_rule_apply(const struct label_rule *rule, char *text);

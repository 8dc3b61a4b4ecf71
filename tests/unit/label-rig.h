/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Keys of one member, and what they become. */

#include "collector/label/label.h"

static const struct label_choice choice;

struct fixture {
	struct labels *labels;
	struct label_context context;
	struct attributes attributes;
};

static void setup(struct fixture *f)
{
	*f = (struct fixture){ .context.process_names.fd = -1 };
	assert_ok(labels_new(1700000000000000000, &choice, &f->labels));
	f->context.labels = f->labels;
	attributes_init(&f->attributes);
}

static void teardown(struct fixture *f)
{
	labels_free(f->labels);
}

static struct field integer(const char *type_name, uint32_t size_bytes)
{
	return (struct field){ .name = (char *)"member", .type_name = type_name, .size_bytes = size_bytes };
}

/* The text that a key of one member becomes; "": no attribute. as, rule: NULL or what the descriptor says. */
static const char *text_as(struct fixture *f, const char *as, const struct field *field, const void *raw,
			   struct label_rule *rule)
{
	const struct key_label label = { as ? label_type_named(as, field) : label_type_find(field), &f->context, field,
					 (char *)"given.name", rule };
	static char text[ATTRIBUTE_LINES_BYTES + 1];
	_cleanup_(buf_done) struct buf out = BUF_INIT;

	assert_non_null(label.type);
	attributes_init(&f->attributes);
	assert_in_range(label_add(&label, raw, &f->attributes), 0, 1);
	if (f->attributes.n)
		attribute_append(&out, &f->attributes.items[0]);
	snprintf(text, sizeof(text), "%s", buf_text(&out));
	return text;
}

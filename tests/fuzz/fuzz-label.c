/* SPDX-License-Identifier: Apache-2.0 */
/* The input: the bytes of a key, whose only member is in turn of each type that fits, with and without a rule. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/descriptor.h"
#include "collector/binding/key.h"
#include "collector/label/rule.h"
#include "util/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(int is_true)
{
	if (!is_true)
		abort();
}

/* What is added is printable, and of one line unless it is a stack. */
static void check(const struct key_label *label, const uint8_t *key)
{
	struct attributes attributes;

	attributes_init(&attributes);
	demand(label_add(label, key, &attributes) >= 0);
	for (unsigned int i = 0; i < attributes.n; i++) {
		const char *at = attributes.items[i].text;

		while (at && *at) {
			size_t bytes = utf8_printable_bytes(at, strlen(at));

			demand(bytes || (*at == '\n' && !strcmp(label->type->name, "ksym")));
			at += bytes ? bytes : 1;
		}
	}
}

static void check_types(const struct label_context *context, struct label_rule *rule, const struct field *field,
			const uint8_t *key)
{
	/* Types of cgroups, processes and functions would read the files of this machine. */
	static const char *const types[] = { "tgid", "syscall", "errno", "ipv4", "ipv6", "hex", "dname", "bool",
					     "text", "integer", "ksym" };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct key_label label = { label_type_named(types[i], field), context, field, (char *)"a" };

		if (!label.type)
			continue;
		check(&label, key);
		label.rule = rule;
		check(&label, key);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct descriptor_item values[] = { { "1", "one" }, { "x", "y" } },
				      matches[] = { { "^a(.)(.*)$" }, { "(b|c)*d" }, { "[0-9a-f]{4}" } };
	static const struct descriptor_label section = { .prefix = "E", .values = { values, ARRAY_SIZE(values) },
							 .matches = { matches, ARRAY_SIZE(matches) }, .other = "drop" };
	static const struct label_choice choice;
	static struct label_context context = { .process_names.fd = -1 };
	static struct label_rule *rule;
	struct diag diag = DIAG_INIT;

	if (!rule) {
		demand(!labels_new(0, &choice, &context.labels));
		fclosep(&context.labels->kallsyms);
		context.labels->kallsyms = NULL;
		demand(!label_rule_new(&section, NULL, &diag, "", &rule) && !diag.n_errors);
	}
	for (uint32_t bytes = 1; bytes <= 8 && bytes <= size; bytes *= 2)
		for (int is_signed = 0; is_signed < 2; is_signed++) {
			const struct field field = { .type_name = "", .size_bytes = bytes, .is_signed = is_signed };

			check_types(&context, rule, &field, data);
		}
	for (uint32_t element = 1; element <= 8 && size && size % element == 0; element *= 8) {
		struct field field = { .type_name = "", .class = FIELD_BYTES, .size_bytes = (uint32_t)size,
				       .bucket_bytes = element };

		check_types(&context, rule, &field, data);
		field.class = element == 1 ? FIELD_TEXT : FIELD_BYTES;
		check_types(&context, rule, &field, data);
	}
	return 0;
}

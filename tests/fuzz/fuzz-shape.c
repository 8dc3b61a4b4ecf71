/* SPDX-License-Identifier: Apache-2.0 */
/* The input: the bytes of a .BTF section, as a hostile object could hold them. */
#include <bpf/btf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collector/label/label.h"
#include "collector/programs.h"
#include "collector/shape.h"
#include "collector/variable.h"

#define TYPES 200

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(int is_true)
{
	if (!is_true)
		abort();
}

/* Whoever reads a field of a key or value of the shape's size stays in it. */
static void check_field(const struct btf *btf, const struct shape *shape, const struct field *field)
{
	char text[64];

	demand(field->name && field->type_name);
	if (field->class == FIELD_HISTOGRAM) {
		uint64_t size = (uint64_t)field->n_buckets * field->bucket_bytes;

		demand(field->n_buckets >= 2 && field->bucket_offset_bytes + size <= shape->size_bytes);
	}
	demand((uint64_t)field->offset_bytes +
		       field->size_bytes <=
	       shape->size_bytes);
	if (field->class == FIELD_ENUM)
		for (int64_t value = -1; value < 3; value++)
			if (shape_enum_name(btf, field->type_id, value, text, sizeof(text)))
				demand(strlen(text) < sizeof(text));
	if (label_type_find(field))
		demand(label_type_find(field)->put || label_type_find(field)->add);
}

static void check_type(const struct btf *btf, uint32_t id)
{
	struct shape shape = { 0 };
	char *culprit = NULL;

	if (!shape_from_btf(btf, id, &shape, &culprit)) {
		demand(shape.n_fields && shape.n_fields <= 256 && !culprit);
		for (uint32_t i = 0; i < shape.n_fields; i++)
			check_field(btf, &shape, &shape.fields[i]);
	}
	free(culprit);
	shape_done(&shape);
}

static void check_variables(const struct btf *btf)
{
	static const char *const texts[] = { "", "0", "-1", "18446744073709551615", "yes", "read, openat", "all", "none" };
	static const uint8_t section[100] = { 1, 2, 3 };
	struct variables variables;

	demand(variables_init(btf, btf, section, sizeof(section), &variables) == 0);
	for (size_t i = 0; i < variables.n; i++) {
		struct variable *variable = &variables.items[i];

		demand(variable->offset_bytes + (uint64_t)variable->size_bytes <= sizeof(section));
		(void)variable_is_on(&variables, variable->name);
		for (size_t j = 0; j < ARRAY_SIZE(texts); j++) {
			const char *complaint = variable_set(&variables, variable, texts[j]);

			demand(!complaint || *complaint != '\0');
		}
	}
	variables_done(&variables);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct btf *btf;

	programs_quiet();
	btf = size <= UINT32_MAX ? btf__new(data, (uint32_t)size) : NULL;
	if (!btf)
		return 0;
	for (uint32_t id = 0; id < btf__type_cnt(btf) && id < TYPES; id++)
		check_type(btf, id);
	check_variables(btf);
	btf__free(btf);
	return 0;
}

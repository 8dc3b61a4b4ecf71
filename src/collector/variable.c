/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/variable.h"

#include <bpf/btf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/label/label.h"
#include "util/array.h"
#include "util/parse.h"
#include "util/utf8.h"

#define BYTES_MAX 4096 /* of a variable that a text can set */

static uint8_t *data_of(const struct variables *variables, const struct variable *variable)
{
	return variables->data + variable->offset_bytes;
}

static const char *set_syscalls(const struct variables *variables, const struct variable *variable,
				const char *text)
{
	uint8_t bits[BYTES_MAX] = { 0 };
	static char complaint[128];
	const char *at = text;

	if (!strcmp(text, "all"))
		memset(bits, 0xff, variable->size_bytes);
	while (strcmp(text, "all") && strcmp(text, "none") && *(at += strspn(at, ", \t"))) {
		size_t length = strcspn(at, ", \t");
		int number = label_syscall_number(at, length);

		if (number < 0 || (uint32_t)number / 8 >= variable->size_bytes) {
			snprintf(complaint, sizeof(complaint),
				 "holds \"%.*s\", which is not a system call; write names like read, openat, or all, or none",
				 (int)(length < 40 ? length : 40), at);
			return complaint;
		}
		bits[number / 8] |= (uint8_t)(1 << number % 8);
		at += length;
	}
	memcpy(data_of(variables, variable), bits, variable->size_bytes);
	return NULL;
}

static void show_syscalls(const struct variables *variables, const struct variable *variable,
			  struct buf *out)
{
	uint32_t n_set = 0;

	for (uint32_t number = 0; number < 8 * variable->size_bytes; number++) {
		const char *name = label_syscall_name(number);

		if (name && data_of(variables, variable)[number / 8] & 1 << number % 8)
			buf_printf(out, "%s%s", n_set++ ? ", " : "", name);
	}
	if (!n_set)
		buf_append_text(out, "none");
}

static const char *set_enum(const struct variables *variables, const struct variable *variable,
			    const char *text)
{
	int64_t value;

	if (!shape_enum_value(variables->btf, variable->field.type_id, text, &value))
		return "is not one of the names that the object has for it";
	memcpy(data_of(variables, variable), &value, variable->size_bytes);
	return NULL;
}

static void show_enum(const struct variables *variables, const struct variable *variable,
		      struct buf *out)
{
	int64_t value = (int64_t)shape_load(data_of(variables, variable), variable->size_bytes);
	uint32_t type_id = variable->field.type_id;
	char text[128];

	buf_append_text(out,
			shape_enum_name(variables->btf, type_id, value, text, sizeof(text)) ?: "(no name)");
}

static const char *set_integer(const struct variables *variables, const struct variable *variable,
			       const char *text)
{
	const struct field *field = &variable->field;
	uint64_t number = 0;
	bool flag;

	if (field->is_bool) {
		if (parse_bool(text, &flag))
			return "is neither yes nor no";
		number = flag;
	} else if ((field->is_signed ? parse_s64(text, (int64_t *)&number) :
		    parse_u64(text, &number)) ||
		   (uint64_t)shape_number(field, number) != number) {
		return "is not a whole number in the variable's range";
	}
	/* Little endian, as every machine that is built for. */
	memcpy(data_of(variables, variable), &number, field->size_bytes);
	return NULL;
}

static void show_integer(const struct variables *variables, const struct variable *variable,
			 struct buf *out)
{
	const struct field *field = &variable->field;
	uint64_t number = shape_load(data_of(variables, variable), variable->size_bytes);

	if (field->is_bool)
		buf_append_text(out, number ? "yes" : "no");
	else
		buf_printf(out, field->is_signed ? "%" PRId64 : "%" PRIu64,
			   shape_number(field, number));
}

static const char *set_duration(const struct variables *variables, const struct variable *variable,
				const char *text)
{
	uint64_t ns;

	if (variable->size_bytes != sizeof(ns))
		return "cannot be set: a prm_ns is a u64";
	if (parse_duration_ns(text, &ns))
		return "is not a duration, such as 10ms or 1s";
	memcpy(data_of(variables, variable), &ns, sizeof(ns));
	return NULL;
}

static void show_duration(const struct variables *variables, const struct variable *variable,
			  struct buf *out)
{
	show_integer(variables, variable, out);
	buf_append_text(out, "ns");
}

static const char *set_text(const struct variables *variables, const struct variable *variable,
			    const char *text)
{
	if (strlen(text) >= variable->size_bytes)
		return "is too long for the variable";
	memset(data_of(variables, variable), 0, variable->size_bytes);
	memcpy(data_of(variables, variable), text, strlen(text));
	return NULL;
}

static void show_text(const struct variables *variables, const struct variable *variable,
		      struct buf *out)
{
	const char *text = (const char *)data_of(variables, variable);

	buf_append(out, text, strnlen(text, variable->size_bytes));
}

/* What a text can set; the first row that fits. */
static const struct variable_type {
	const char *name; /* of the typedef; NULL: any, by class */
	enum field_class class;
	/* What is wrong, or NULL. */
	const char *(*set)(const struct variables *variables, const struct variable *variable,
			   const char *text);
	void (*show)(const struct variables *variables, const struct variable *variable,
		     struct buf *out);
} types[] = {
	{ "prm_syscalls", FIELD_BYTES, set_syscalls, show_syscalls },
	{ "prm_ns", FIELD_INTEGER, set_duration, show_duration },
	{ NULL, FIELD_INTEGER, set_integer, show_integer },
	{ NULL, FIELD_ENUM, set_enum, show_enum },
	{ NULL, FIELD_TEXT, set_text, show_text },
};

/* Sets the type of a variable. -ENOMEM. */
static int find_type(const struct btf *btf, uint32_t type_id, struct variable *variable)
{
	_cleanup_(shape_done) struct shape shape = { 0 };
	int err = shape_from_btf(btf, type_id, &shape, NULL);

	/* A structure may begin with a member that has no name, but is smaller. */
	if (err || *shape.fields->name || shape.fields->size_bytes != variable->size_bytes ||
	    variable->size_bytes > BYTES_MAX)
		return err == -ENOMEM ? err : 0;
	variable->field = *shape.fields;
	variable->field.name = NULL;
	array_for_each (type, types, ARRAY_SIZE(types))
		if (!variable->type &&
		    (type->name ? !strcmp(type->name, variable->field.type_name) :
						    type->class == variable->field.class))
			variable->type = type;
	return 0;
}

int variables_init(const struct btf *btf, const struct btf *final, const void *data,
		   size_t size_bytes,
		  struct variables *ret_variables)
{
	_cleanup_(variables_done) struct variables variables = { .btf = btf,
								 .size_bytes = size_bytes };
	int id = size_bytes ? btf__find_by_name_kind(final, VARIABLES_SECTION, BTF_KIND_DATASEC) :
		 -ENOENT;
	const struct btf_type *section = id > 0 ? btf__type_by_id(final, (uint32_t)id) : NULL;
	uint32_t n = section ? btf_vlen(section) : 0;

	variables.data = malloc(size_bytes + 1);
	variables.items = calloc(n + 1, sizeof(*variables.items));
	if (!variables.data || !variables.items)
		return -ENOMEM;
	if (size_bytes)
		memcpy(variables.data, data, size_bytes);
	array_for_each (info, section ? btf_var_secinfos(section) : NULL, n) {
		const struct btf_type *variable = btf__type_by_id(btf, info->type);
		const char *name = variable ? btf__name_by_offset(btf, variable->name_off) : NULL;

		if (!name || !btf_is_var(variable) || !info->size || info->size > size_bytes ||
		    info->offset > size_bytes - info->size)
			continue;
		variables.items[variables.n] =
			(struct variable){ .name = name, .offset_bytes = info->offset,
					   .size_bytes = info->size };
		if (find_type(btf, variable->type, &variables.items[variables.n++]))
			return -ENOMEM;
	}
	*ret_variables = variables;
	variables = (struct variables){ 0 };
	return 0;
}

void variables_done(struct variables *variables)
{
	free(variables->data);
	free(variables->items);
	*variables = (struct variables){ 0 };
}

struct variable *variable_find(const struct variables *variables, const char *name)
{
	return array_find(variables->items, variables->n, name);
}

bool variable_is_on(const struct variables *variables, const char *name)
{
	const struct variable *variable = name ? variable_find(variables, name) : NULL;

	for (uint32_t i = 0; variable && i < variable->size_bytes; i++)
		if (variables->data[variable->offset_bytes + i])
			return true;
	return !name;
}

const char *variable_set(struct variables *variables, struct variable *variable, const char *text)
{
	const char *complaint = variable->type ? variable->type->set(variables, variable, text) :
			"cannot be set: the variable is neither a number, an enum, a text nor prm_syscalls";

	if (!complaint)
		variable->text = text;
	return complaint;
}

bool variable_show(const struct variables *variables, const struct variable *variable,
		   struct buf *out)
{
	if (variable->text)
		buf_append_text(out, variable->text);
	else if (variable->type)
		variable->type->show(variables, variable, out);
	if (*buf_text(out))
		utf8_clean((char *)out->data);
	return variable->text || variable->type;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BTF describes types as the compiler knows them: a graph in which a member refers to its type, through
 * typedefs and const. What the agent needs is flat: a list of the numbers and texts in some bytes. So a type
 * is walked once, depth first; each structure gives its name to what is below it.
 *
 * An object may come from anywhere, so a walk has bounds and every place is checked against the whole.
 */
#include "collector/shape.h"

#include <bpf/btf.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX  8
#define FIELDS_MAX 256

struct walk {
	const struct btf *btf;
	struct shape shape;
	char *culprit;
};

static const char *type_name(const struct btf *btf, const struct btf_type *type)
{
	const char *name = btf__name_by_offset(btf, type->name_off);

	return name ? name : "";
}

const struct btf_type *shape_bare_type(const struct btf *btf, uint32_t *id, const char **typedef_name)
{
	for (int i = 0; i < 32; i++) {
		const struct btf_type *type = btf__type_by_id(btf, *id);

		if (!type)
			return NULL;
		if (btf_is_typedef(type) && typedef_name && !**typedef_name)
			*typedef_name = type_name(btf, type);
		if (!btf_is_mod(type) && !btf_is_typedef(type))
			return type;
		*id = type->type;
	}
	return NULL;
}

int shape_member(const struct btf *btf, uint32_t type_id, const char *name, uint32_t *ret_type_id,
		 uint32_t *ret_offset_bytes)
{
	const struct btf_type *type = shape_bare_type(btf, &type_id, NULL);

	if (!type || !btf_is_struct(type))
		return -EINVAL;
	for (uint32_t i = 0; i < btf_vlen(type); i++) {
		const struct btf_member *member = &btf_members(type)[i];
		const char *text = btf__name_by_offset(btf, member->name_off);
		uint32_t bits = btf_member_bit_offset(type, i);

		if (!text || strcmp(text, name) || bits % 8 || btf_member_bitfield_size(type, i))
			continue;
		*ret_type_id = member->type;
		*ret_offset_bytes = bits / 8;
		return 0;
	}
	return -ENOENT;
}

/* A member lies in what holds it: libbpf does not see to that, and the kernel may load an object without its BTF. */
static bool is_inside(const struct walk *walk, const struct field *field)
{
	uint64_t end = (uint64_t)field->offset_bytes + field->size_bytes, buckets_end = 0;

	if (field->class == FIELD_HISTOGRAM) {
		end = (uint64_t)field->offset_bytes + field->sum_bytes;
		buckets_end = field->bucket_offset_bytes + (uint64_t)field->n_buckets * field->bucket_bytes;
	}
	return end <= walk->shape.size_bytes && buckets_end <= walk->shape.size_bytes;
}

static int add(struct walk *walk, const char *name, struct field field)
{
	struct field *fields;

	if (walk->shape.n_fields == FIELDS_MAX || !is_inside(walk, &field))
		return -EINVAL;
	fields = reallocarray(walk->shape.fields, walk->shape.n_fields + 1, sizeof(*fields));
	if (!fields)
		return -ENOMEM;
	walk->shape.fields = fields;
	field.name = strdup(name);
	if (!field.name)
		return -ENOMEM;
	fields[walk->shape.n_fields++] = field;
	return 0;
}

bool shape_is_number_size(int64_t size_bytes)
{
	return size_bytes == 1 || size_bytes == 2 || size_bytes == 4 || size_bytes == 8;
}

bool shape_is_text(const struct btf *btf, const struct btf_type *type)
{
	const struct btf_type *element;
	const char *typedef_name = "";
	uint32_t id;

	if (!btf_is_array(type))
		return false;
	id = btf_array(type)->type;
	element = shape_bare_type(btf, &id, &typedef_name);
	return element && btf_is_int(element) && element->size == 1 && !*typedef_name &&
	       !strcmp(type_name(btf, element), "char");
}

/* By its name, for only that says what the buckets hold: "sum", a number, and "bucket", an array of numbers. */
static bool is_histogram(const struct btf *btf, uint32_t type_id, struct field *field)
{
	uint32_t sum_id, bucket_id, element_id, sum_offset, bucket_offset;
	const struct btf_type *sum, *bucket;
	const char *sum_typedef = "", *name = type_name(btf, btf__type_by_id(btf, type_id));

	if (strcmp(name, "hist_time") && strcmp(name, "hist_value"))
		return false;
	if (shape_member(btf, type_id, "sum", &sum_id, &sum_offset) ||
	    shape_member(btf, type_id, "bucket", &bucket_id, &bucket_offset))
		return false;
	sum = shape_bare_type(btf, &sum_id, &sum_typedef);
	bucket = shape_bare_type(btf, &bucket_id, NULL);
	if (!sum || !btf_is_int(sum) || !shape_is_number_size(sum->size) || !bucket || !btf_is_array(bucket))
		return false;
	element_id = btf_array(bucket)->type;
	field->n_buckets = btf_array(bucket)->nelems;
	bucket = shape_bare_type(btf, &element_id, NULL);
	if (!bucket || !btf_is_int(bucket) || !shape_is_number_size(bucket->size) || field->n_buckets < 2 ||
	    field->n_buckets > 1024)
		return false;
	field->class = FIELD_HISTOGRAM;
	field->type_name = sum_typedef;
	field->sum_bytes = sum->size;
	field->bucket_offset_bytes = field->offset_bytes + bucket_offset;
	field->bucket_bytes = bucket->size;
	field->offset_bytes += sum_offset;
	return true;
}

static int walk_type(struct walk *walk, uint32_t type_id, const char *name, uint32_t offset, unsigned int depth);

static int walk_members(struct walk *walk, const struct btf_type *type, const char *name, uint32_t offset,
			unsigned int depth)
{
	/* Each member of a structure is a field or a mistake, so FIELDS_MAX bounds the walk. */
	if (!btf_vlen(type))
		return -EINVAL;
	for (uint32_t i = 0; i < btf_vlen(type); i++) {
		const struct btf_member *member = &btf_members(type)[i];
		const char *own = btf__name_by_offset(walk->btf, member->name_off);
		uint32_t bits = btf_member_bit_offset(type, i);
		_cleanup_(freep) char *path = NULL;
		int err = 0;

		if (asprintf(&path, "%s%s%s", name, *name && own && *own ? "." : "", own ? own : "") < 0)
			return -ENOMEM;
		if (btf_member_bitfield_size(type, i) || bits % 8)
			err = -EINVAL;
		else
			err = walk_type(walk, member->type, path, offset + bits / 8, depth + 1);
		if (err == -EINVAL && !walk->culprit)
			walk->culprit = strdup(path);
		if (err)
			return err;
	}
	return 0;
}

static int walk_array(struct walk *walk, const struct btf_type *type, const char *name, struct field field)
{
	uint32_t element_id = btf_array(type)->type;
	const struct btf_type *element = shape_bare_type(walk->btf, &element_id, NULL);

	if (!element || !btf_is_int(element) || !shape_is_number_size(element->size) || field.size_bytes > 4096)
		return -EINVAL;
	field.class = shape_is_text(walk->btf, type) ? FIELD_TEXT : FIELD_BYTES;
	return add(walk, name, field);
}

static int walk_type(struct walk *walk, uint32_t type_id, const char *name, uint32_t offset, unsigned int depth)
{
	struct field field = { .type_name = "", .offset_bytes = offset };
	int64_t size = btf__resolve_size(walk->btf, type_id);
	const struct btf_type *type = shape_bare_type(walk->btf, &type_id, &field.type_name);

	if (!type || size <= 0 || size > 65536 || depth > DEPTH_MAX)
		return -EINVAL;
	field.size_bytes = (uint32_t)size;
	field.type_id = type_id;
	if (btf_is_int(type)) {
		field.is_signed = btf_int_encoding(type) & BTF_INT_SIGNED;
		return shape_is_number_size(size) ? add(walk, name, field) : -EINVAL;
	}
	if (btf_is_any_enum(type)) {
		field.class = FIELD_ENUM;
		field.is_signed = btf_kflag(type);
		return shape_is_number_size(size) ? add(walk, name, field) : -EINVAL;
	}
	if (btf_is_array(type))
		return walk_array(walk, type, name, field);
	if (!btf_is_struct(type))
		return -EINVAL;
	if (!strncmp(field.type_name, "lbl_", 4)) {
		field.class = FIELD_BYTES;
		return add(walk, name, field);
	}
	if (is_histogram(walk->btf, type_id, &field))
		return add(walk, name, field);
	return walk_members(walk, type, name, offset, depth);
}

int shape_from_btf(const struct btf *btf, uint32_t type_id, struct shape *ret_shape, char **ret_culprit)
{
	struct walk walk = { .btf = btf };
	int64_t size = btf__resolve_size(btf, type_id);
	int err;

	if (size <= 0 || size > 65536)
		return -EINVAL;
	walk.shape.size_bytes = (uint32_t)size;
	err = walk_type(&walk, type_id, "", 0, 0);
	if (err) {
		shape_done(&walk.shape);
		if (ret_culprit)
			*ret_culprit = TAKE_PTR(walk.culprit);
		free(walk.culprit);
		return err;
	}
	free(walk.culprit);
	*ret_shape = walk.shape;
	return 0;
}

const struct field *shape_find(const struct shape *shape, const char *name)
{
	for (uint32_t i = 0; i < shape->n_fields; i++)
		if (!strcmp(shape->fields[i].name, name))
			return &shape->fields[i];
	return NULL;
}

size_t shape_names(const struct shape *shape, const char **names, size_t max)
{
	size_t n = 0;

	for (; n < shape->n_fields && n < max; n++)
		names[n] = shape->fields[n].name;
	return n;
}

void shape_done(struct shape *shape)
{
	for (uint32_t i = 0; i < shape->n_fields; i++)
		free(shape->fields[i].name);
	free(shape->fields);
	*shape = (struct shape){ 0 };
}

uint64_t shape_load(const void *data, uint32_t size_bytes)
{
	uint64_t value = 0;

	memcpy(&value, data, size_bytes); /* little endian, as every machine that is built for */
	return value;
}

static bool enum_constant(const struct btf_type *type, uint32_t i, uint32_t *ret_name, int64_t *ret_value)
{
	if (btf_is_enum(type)) {
		*ret_name = btf_enum(type)[i].name_off;
		*ret_value = btf_kflag(type) ? btf_enum(type)[i].val : (int64_t)(uint32_t)btf_enum(type)[i].val;
		return true;
	}
	if (!btf_is_enum64(type))
		return false;
	*ret_name = btf_enum64(type)[i].name_off;
	*ret_value = (int64_t)btf_enum64_value(&btf_enum64(type)[i]);
	return true;
}

/* How many bytes all constants begin with, up to and with an underscore. */
static size_t common_prefix(const struct btf *btf, const struct btf_type *type)
{
	const char *first = NULL;
	size_t length = 0;
	int64_t value;
	uint32_t name;

	for (uint32_t i = 0; i < btf_vlen(type); i++) {
		const char *text = enum_constant(type, i, &name, &value) ? btf__name_by_offset(btf, name) : NULL;
		size_t n = 0;

		if (!text)
			return 0;
		if (!first) {
			first = text;
			length = strlen(text);
		}
		while (n < length && text[n] == first[n])
			n++;
		length = n;
	}
	while (length && first[length - 1] != '_')
		length--;
	return btf_vlen(type) > 1 ? length : 0;
}

const char *shape_enum_name(const struct btf *btf, uint32_t type_id, int64_t value, char *text, size_t size)
{
	const struct btf_type *type = btf__type_by_id(btf, type_id);
	size_t prefix, n = 0;
	uint32_t name_offset;
	int64_t constant;

	if (!type || !btf_is_any_enum(type) || !size)
		return NULL;
	prefix = common_prefix(btf, type);
	for (uint32_t i = 0; i < btf_vlen(type); i++) {
		const char *name;

		if (!enum_constant(type, i, &name_offset, &constant) || constant != value)
			continue;
		name = btf__name_by_offset(btf, name_offset);
		if (!name)
			return NULL;
		for (name += prefix; *name && n + 1 < size; name++)
			text[n++] = (char)tolower((unsigned char)*name);
		text[n] = '\0';
		return text;
	}
	return NULL;
}

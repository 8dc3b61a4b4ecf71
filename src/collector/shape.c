/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BTF describes types as the compiler knows them: a graph in which a member refers to its type,
 * through typedefs and const. What the agent needs is flat: a list of the numbers and texts in some
 * bytes. So a type is walked once, depth first; each structure gives its name to what is below it.
 *
 * An object may come from anywhere, so a walk has bounds and every place is checked against the
 * whole.
 */
#include "collector/shape.h"

#include <bpf/btf.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"
#include "util/parse.h"

#define DEPTH_MAX  8
#define FIELDS_MAX 256

struct walk {
	const struct btf *btf;
	struct shape shape;
	char **culprit; /* as asked for, or NULL */
};

static const char *type_name(const struct btf *btf, const struct btf_type *type)
{
	const char *name = btf__name_by_offset(btf, type->name_off);

	return name ? name : "";
}

/*
 * The type without const, volatile and typedefs, and its id. *typedef_name becomes the outermost
 * typedef's name; set it to "" before. NULL: broken or endless.
 */
static const struct btf_type *bare_type(const struct btf *btf, uint32_t *id,
					const char **typedef_name)
{
	for (int i = 0; i < 32; i++) {
		const struct btf_type *type = btf__type_by_id(btf, *id);

		if (!type)
			return NULL;
		if (btf_is_typedef(type) && !**typedef_name)
			*typedef_name = type_name(btf, type);
		if (!btf_is_mod(type) && !btf_is_typedef(type))
			return type;
		*id = type->type;
	}
	return NULL;
}

/*
 * A member lies in what holds it: libbpf does not see to that, and the kernel may load an object
 * without its BTF.
 */
static int add_field(struct walk *walk, const char *name, const struct field *field)
{
	uint64_t end = (uint64_t)field->offset_bytes + field->size_bytes;
	struct field *added;

	if (walk->shape.n_fields == FIELDS_MAX || end > walk->shape.size_bytes)
		return -EINVAL;
	added = array_add(&walk->shape.fields, &walk->shape.n_fields, sizeof(*added));
	if (!added)
		return -ENOMEM;
	*added = *field;
	added->name = strdup(name);
	return added->name ? 0 : -ENOMEM;
}

static bool is_number_size(int64_t size_bytes)
{
	return size_bytes == 1 || size_bytes == 2 || size_bytes == 4 || size_bytes == 8;
}

static int walk_type(struct walk *walk, uint32_t type_id, const char *name, uint32_t offset,
		     unsigned int depth);

static int walk_members(struct walk *walk, const struct btf_type *type, const char *name,
			uint32_t offset, unsigned int depth)
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

		const char *dot = *name && own && *own ? "." : "";

		if (asprintf(&path, "%s%s%s", name, dot, own ?: "") < 0)
			return -ENOMEM;
		if (btf_member_bitfield_size(type, i) || bits % 8)
			err = -EINVAL;
		else
			err = walk_type(walk, member->type, path, offset + bits / 8, depth + 1);
		if (err == -EINVAL && walk->culprit && !*walk->culprit)
			*walk->culprit = strdup(path);
		if (err)
			return err;
	}
	return 0;
}

static int walk_array(struct walk *walk, const struct btf_type *type, const char *name,
		      struct field *field)
{
	uint32_t element_id = btf_array(type)->type;
	const char *typedef_name = "";
	const struct btf_type *element = bare_type(walk->btf, &element_id, &typedef_name);
	bool is_text;

	if (!*field->type_name && !strncmp(typedef_name, "lbl_", 4))
		field->type_name = typedef_name;
	if (!element || !btf_is_int(element) || !is_number_size(element->size) ||
	    field->size_bytes > 4096)
		return -EINVAL;
	/*
	 * clang marks neither char nor u8 as text; any typedef (u8, __u8) says that bytes are
	 * meant.
	 */
	is_text = !*typedef_name && element->size == 1 &&
	!strcmp(type_name(walk->btf, element), "char");
	field->class = is_text ? FIELD_TEXT : FIELD_BYTES;
	field->bucket_bytes = element->size;
	return add_field(walk, name, field);
}

/* The member of a structure of that name, whose own members begin with first. */
static const struct field *find_member(const struct walk *walk, size_t first, const char *name,
				       const char *member)
{
	char path[256];

	snprintf(path, sizeof(path), "%s%s%s", name, *name ? "." : "", member);
	return array_find(walk->shape.fields + first, walk->shape.n_fields - first, path);
}

/*
 * The members "sum" and "bucket" of a structure are a histogram as well, which has the structure's
 * name. Of one of hist.h, they are nothing else: only the name of its type says what the buckets
 * hold.
 */
static int add_histogram(struct walk *walk, size_t first, const char *name, bool is_known)
{
	const struct field *bucket = find_member(walk, first, name, "bucket");
	const struct field *sum = find_member(walk, first, name, "sum");
	struct field joined;

	/* An array has at most 4096 bytes, so there are at most HISTOGRAM_BUCKETS_MAX. */
	if (!sum || sum->class != FIELD_INTEGER || !bucket || bucket->class != FIELD_BYTES ||
	    bucket->bucket_bytes < 4 || bucket->size_bytes < 2 * bucket->bucket_bytes)
		return 0;
	joined = *sum;
	joined.class = FIELD_HISTOGRAM;
	joined.is_known = is_known && walk->shape.n_fields == first + 2;
	joined.bucket_offset_bytes = bucket->offset_bytes;
	joined.bucket_bytes = bucket->bucket_bytes;
	joined.n_buckets = bucket->size_bytes / bucket->bucket_bytes;
	while (joined.is_known && walk->shape.n_fields > first)
		free(walk->shape.fields[--walk->shape.n_fields].name);
	return add_field(walk, name, &joined);
}

static int walk_struct(struct walk *walk, const struct btf_type *type, const char *name,
		       struct field *field, unsigned int depth)
{
	const char *tag = type_name(walk->btf, type);
	size_t first = walk->shape.n_fields;
	int err;

	if (!strncmp(field->type_name, "lbl_", 4) || !strncmp(field->type_name, "prm_", 4)) {
		field->class = FIELD_BYTES;
		return add_field(walk, name, field);
	}
	err = walk_members(walk, type, name, field->offset_bytes, depth);
	return err ?: add_histogram(walk, first, name, !strcmp(tag, "hist_time") || !strcmp(tag, "hist_value"));
}

static int walk_type(struct walk *walk, uint32_t type_id, const char *name, uint32_t offset,
		     unsigned int depth)
{
	struct field field = { .type_name = "", .offset_bytes = offset };
	int64_t size = btf__resolve_size(walk->btf, type_id);
	const struct btf_type *type = bare_type(walk->btf, &type_id, &field.type_name);

	if (!type || size <= 0 || size > 65536 || depth > DEPTH_MAX)
		return -EINVAL;
	field.size_bytes = (uint32_t)size;
	field.type_id = type_id;
	if (btf_is_array(type))
		return walk_array(walk, type, name, &field);
	if (btf_is_struct(type))
		return walk_struct(walk, type, name, &field, depth);
	if ((!btf_is_int(type) && !btf_is_any_enum(type)) || !is_number_size(size))
		return -EINVAL;
	field.class = btf_is_int(type) ? FIELD_INTEGER : FIELD_ENUM;
	field.is_bool = btf_is_int(type) && btf_int_encoding(type) & BTF_INT_BOOL;
	field.is_signed = btf_is_int(type) ? btf_int_encoding(type) & BTF_INT_SIGNED :
			  btf_kflag(type);
	return add_field(walk, name, &field);
}

int shape_from_btf(const struct btf *btf, uint32_t type_id, struct shape *ret_shape,
		   char **ret_culprit)
{
	int64_t size = btf__resolve_size(btf, type_id);
	struct walk walk = { .btf = btf,
			     .shape.size_bytes = size > 0 && size <= 65536 ? (uint32_t)size : 0,
			     .culprit = ret_culprit };
	int err = walk_type(&walk, type_id, "", 0, 0);

	if (!err)
		*ret_shape = walk.shape;
	else
		shape_done(&walk.shape);
	return err;
}

const struct field *shape_find(const struct shape *shape, const char *name)
{
	return array_find(shape->fields, shape->n_fields, name);
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

int64_t shape_number(const struct field *field, uint64_t value)
{
	unsigned int unused = 64 - 8 * field->size_bytes;

	value <<= unused;
	return field->is_signed ? (int64_t)value >> unused : (int64_t)(value >> unused);
}

const char *shape_enum_at(const struct btf *btf, uint32_t type_id, uint32_t i, int64_t *ret_value)
{
	const struct btf_type *type = btf__type_by_id(btf, type_id);
	const struct btf_enum64 *wide = i < btf_vlen(type) ? &btf_enum64(type)[i] : NULL;
	const struct btf_enum *narrow = wide ? &btf_enum(type)[i] : NULL;

	if (!wide)
		return NULL;
	if (btf_is_enum64(type))
		*ret_value = (int64_t)btf_enum64_value(wide);
	else
		*ret_value = btf_kflag(type) ? narrow->val : (int64_t)(uint32_t)narrow->val;
	return btf__name_by_offset(btf, btf_is_enum64(type) ? wide->name_off : narrow->name_off);
}

/* How many bytes all constants begin with, up to and with an underscore. */
static size_t common_prefix(const struct btf *btf, uint32_t type_id)
{
	const char *first = NULL, *name;
	size_t length = 0;
	int64_t unused;
	uint32_t i;

	for (i = 0; (name = shape_enum_at(btf, type_id, i, &unused)); i++) {
		size_t n = 0;

		first = first ?: name;
		while ((!i || n < length) && name[n] && name[n] == first[n])
			n++;
		length = n;
	}
	while (length && first[length - 1] != '_')
		length--;
	return i > 1 ? length : 0;
}

const char *shape_nearest_type(const struct btf *btf, uint32_t kinds, const char *prefix,
			       const char *name, long slack)
{
	_cleanup_(freep) const char **names = calloc(btf__type_cnt(btf), sizeof(*names));
	size_t n = 0, prefix_bytes = strlen(prefix), length = strlen(name);

	for (uint32_t id = 1; names && id < btf__type_cnt(btf); id++) {
		const struct btf_type *type = btf__type_by_id(btf, id);
		const char *text = kinds >> btf_kind(type) & 1 ? type_name(btf, type) : "";

		if (*text && !strncmp(text, prefix, prefix_bytes) &&
		    labs((long)(strlen(text) - prefix_bytes - length)) <= slack)
			names[n++] = text + prefix_bytes;
	}
	return names ? parse_nearest(name, names, n) : NULL;
}

bool shape_enum_value(const struct btf *btf, uint32_t type_id, const char *name, int64_t *ret_value)
{
	size_t prefix = common_prefix(btf, type_id);
	const char *constant;

	for (uint32_t i = 0; (constant = shape_enum_at(btf, type_id, i, ret_value)); i++)
		if (!strcasecmp(constant + prefix, name))
			return true;
	return false;
}

const char *shape_enum_name(const struct btf *btf, uint32_t type_id, int64_t value, char *text,
			    size_t size)
{
	const struct btf_type *type = btf__type_by_id(btf, type_id);
	int64_t constant = 0;
	const char *name;
	size_t n = 0;

	if (!type || !btf_is_any_enum(type) || !size)
		return NULL;
	for (uint32_t i = 0; (name = shape_enum_at(btf, type_id, i, &constant)); i++)
		if (constant == value)
			break;
	if (!name)
		return NULL;
	for (name += common_prefix(btf, type_id); *name && n + 1 < size; name++)
		text[n++] = (char)tolower((unsigned char)*name);
	text[n] = '\0';
	return text;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/shape.h"

#include <bpf/btf.h>
#include <stdint.h>

#include "util/cleanup.h"
#include "util/utf8.h"

#define NAME_BYTES_MAX 1024
#define CHAIN_MAX 32 /* "const volatile typedef …" of one type */

/* Names are printed as they are. Those of languages other than C may be long. */
static bool is_name(const struct btf *btf, uint32_t offset)
{
	const char *name = btf__name_by_offset(btf, offset);

	return name && utf8_is_printable(name, NAME_BYTES_MAX);
}

static bool is_type(const struct btf *btf, uint32_t id)
{
	return id < btf__type_cnt(btf);
}

static bool is_chain_finite(const struct btf *btf, const struct btf_type *type)
{
	for (int i = 0; type && i < CHAIN_MAX; i++) {
		if (!btf_is_mod(type) && !btf_is_typedef(type))
			return true;
		type = btf__type_by_id(btf, type->type);
	}
	return false;
}

/*
 * What follows a type: entries that begin with the number of a name, and some of them with that of
 * a type after it.
 */
static const struct {
	uint8_t bytes;
	bool has_type;
} entries[] = {
	[BTF_KIND_ENUM] = { sizeof(struct btf_enum), false },
	[BTF_KIND_ENUM64] = { sizeof(struct btf_enum64), false },
	[BTF_KIND_FUNC_PROTO] = { sizeof(struct btf_param), true },
	[BTF_KIND_STRUCT] = { sizeof(struct btf_member), true },
	[BTF_KIND_UNION] = { sizeof(struct btf_member), true },
};

static bool are_entries_whole(const struct btf *btf, const struct btf_type *type)
{
	uint32_t kind = btf_kind(type),
		words = kind < ARRAY_SIZE(entries) ? entries[kind].bytes / sizeof(uint32_t) : 0;
	const uint32_t *entry = (const uint32_t *)(type + 1);

	for (uint32_t i = 0; words && i < btf_vlen(type); i++, entry += words)
		if (!is_name(btf, entry[0]) || (entries[kind].has_type && !is_type(btf, entry[1])))
			return false;
	return true;
}

/* A section's entries are variables, or the prototypes of kernel functions. */
static bool is_section_whole(const struct btf *btf, const struct btf_type *type)
{
	for (uint32_t i = 0; i < btf_vlen(type); i++) {
		const struct btf_type *entry = btf__type_by_id(btf, btf_var_secinfos(type)[i].type);

		if (!entry || (!btf_is_var(entry) && !btf_is_func(entry)))
			return false;
	}
	return true;
}

/* Kinds of which a type refers to one other type. */
static const uint32_t referring = 1u << BTF_KIND_PTR | 1u << BTF_KIND_TYPEDEF |
				  1u << BTF_KIND_VOLATILE |
				  1u << BTF_KIND_CONST | 1u << BTF_KIND_RESTRICT |
				  1u << BTF_KIND_VAR |
				  1u << BTF_KIND_FUNC | 1u << BTF_KIND_FUNC_PROTO |
				  1u << BTF_KIND_DECL_TAG | 1u << BTF_KIND_TYPE_TAG;

static bool is_type_whole(const struct btf *btf, const struct btf_type *type)
{
	if (btf_is_array(type))
		return is_type(btf, btf_array(type)->type) &&
		       is_type(btf, btf_array(type)->index_type);
	if (btf_is_datasec(type))
		return is_section_whole(btf, type);
	if (!(referring >> btf_kind(type) & 1))
		return true;
	return is_type(btf, type->type) && is_chain_finite(btf, type) &&
	       (!btf_is_func(type) || btf_is_func_proto(btf__type_by_id(btf, type->type)));
}

bool btf_is_whole(const struct btf *btf)
{
	for (uint32_t id = 1; id < btf__type_cnt(btf); id++) {
		const struct btf_type *type = btf__type_by_id(btf, id);

		if (!is_name(btf, type->name_off) || !is_type_whole(btf, type) ||
		    !are_entries_whole(btf, type))
			return false;
	}
	return true;
}

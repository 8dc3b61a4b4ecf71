/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/btf-check.h"

#include <bpf/btf.h>
#include <stdint.h>

#include "util/cleanup.h"

#define CHAIN_MAX 32 /* "const volatile typedef …" of one type */

static bool is_name(const struct btf *btf, uint32_t offset)
{
	return btf__name_by_offset(btf, offset) != NULL;
}

static bool is_type(const struct btf *btf, uint32_t id)
{
	return id < btf__type_cnt(btf);
}

static bool is_chain_finite(const struct btf *btf, const struct btf_type *type)
{
	for (int i = 0; i < CHAIN_MAX; i++) {
		if (!btf_is_mod(type) && !btf_is_typedef(type))
			return true;
		type = btf__type_by_id(btf, type->type);
		if (!type)
			return false;
	}
	return false;
}

static bool check_reference(const struct btf *btf, const struct btf_type *type)
{
	return is_type(btf, type->type) && is_chain_finite(btf, type);
}

static bool check_function(const struct btf *btf, const struct btf_type *type)
{
	const struct btf_type *prototype = btf__type_by_id(btf, type->type);

	return prototype && btf_is_func_proto(prototype);
}

static bool check_array(const struct btf *btf, const struct btf_type *type)
{
	return is_type(btf, btf_array(type)->type) && is_type(btf, btf_array(type)->index_type);
}

static bool check_members(const struct btf *btf, const struct btf_type *type)
{
	for (uint32_t i = 0; i < btf_vlen(type); i++)
		if (!is_name(btf, btf_members(type)[i].name_off) || !is_type(btf, btf_members(type)[i].type))
			return false;
	return true;
}

static bool check_constants(const struct btf *btf, const struct btf_type *type)
{
	for (uint32_t i = 0; i < btf_vlen(type); i++)
		if (!is_name(btf, btf_is_enum64(type) ? btf_enum64(type)[i].name_off : btf_enum(type)[i].name_off))
			return false;
	return true;
}

static bool check_prototype(const struct btf *btf, const struct btf_type *type)
{
	for (uint32_t i = 0; i < btf_vlen(type); i++)
		if (!is_name(btf, btf_params(type)[i].name_off) || !is_type(btf, btf_params(type)[i].type))
			return false;
	return is_type(btf, type->type);
}

/* A section's entries are variables, or the prototypes of kernel functions. */
static bool check_section(const struct btf *btf, const struct btf_type *type)
{
	for (uint32_t i = 0; i < btf_vlen(type); i++) {
		const struct btf_type *entry = btf__type_by_id(btf, btf_var_secinfos(type)[i].type);

		if (!entry || (!btf_is_var(entry) && !btf_is_func(entry)))
			return false;
	}
	return true;
}

static bool (*const checks[])(const struct btf *btf, const struct btf_type *type) = {
	[BTF_KIND_PTR] = check_reference,
	[BTF_KIND_ARRAY] = check_array,
	[BTF_KIND_STRUCT] = check_members,
	[BTF_KIND_UNION] = check_members,
	[BTF_KIND_ENUM] = check_constants,
	[BTF_KIND_TYPEDEF] = check_reference,
	[BTF_KIND_VOLATILE] = check_reference,
	[BTF_KIND_CONST] = check_reference,
	[BTF_KIND_RESTRICT] = check_reference,
	[BTF_KIND_FUNC] = check_function,
	[BTF_KIND_FUNC_PROTO] = check_prototype,
	[BTF_KIND_VAR] = check_reference,
	[BTF_KIND_DATASEC] = check_section,
	[BTF_KIND_DECL_TAG] = check_reference,
	[BTF_KIND_TYPE_TAG] = check_reference,
	[BTF_KIND_ENUM64] = check_constants,
};

bool btf_is_whole(const struct btf *btf)
{
	for (uint32_t id = 1; id < btf__type_cnt(btf); id++) {
		const struct btf_type *type = btf__type_by_id(btf, id);
		uint32_t kind = btf_kind(type);

		if (!is_name(btf, type->name_off))
			return false;
		if (kind < ARRAY_SIZE(checks) && checks[kind] && !checks[kind](btf, type))
			return false;
	}
	return true;
}

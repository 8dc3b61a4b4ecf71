/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* BTF made by hand, as clang makes it. Functions return the new type's id. */

#include <bpf/btf.h>

#include "test.h"

static inline int btf_made(int id)
{
	assert_true(id > 0);
	return id;
}

struct btf_types {
	struct btf *btf;
	int u8, u16, u32, u64, s32, boolean, character; /* u8 and character are typedef and int, as in C */
};

static inline void btf_types_init(struct btf_types *t)
{
	t->btf = btf__new_empty();
	assert_non_null(t->btf);
	t->u16 = btf_made(btf__add_int(t->btf, "unsigned short", 2, 0));
	t->u32 = btf_made(btf__add_int(t->btf, "unsigned int", 4, 0));
	t->u64 = btf_made(btf__add_int(t->btf, "unsigned long long", 8, 0));
	t->s32 = btf_made(btf__add_int(t->btf, "int", 4, BTF_INT_SIGNED));
	t->boolean = btf_made(btf__add_int(t->btf, "_Bool", 1, BTF_INT_BOOL));
	t->character = btf_made(btf__add_int(t->btf, "char", 1, BTF_INT_SIGNED));
	t->u8 = btf_made(btf__add_typedef(t->btf, "u8", btf_made(btf__add_int(t->btf, "unsigned char", 1, 0))));
}

static inline void btf_types_done(struct btf_types *t)
{
	btf__free(t->btf);
}

static inline int btf_array_of(struct btf_types *t, int element, uint32_t n)
{
	return btf_made(btf__add_array(t->btf, t->u32, element, n));
}

static inline int btf_struct_of(struct btf_types *t, const char *name, uint32_t size_bytes)
{
	return btf_made(btf__add_struct(t->btf, name, size_bytes));
}

/* To the structure that was added last. */
static inline void btf_member(struct btf_types *t, const char *name, int type, uint32_t offset_bytes)
{
	assert_ok(btf__add_field(t->btf, name, type, offset_bytes * 8, 0));
}

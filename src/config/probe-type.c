/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types of the values of a [probe]: how a number lies in a register or a record, and what is shown
 * in place of it.
 */
#include "config/probe-internal.h"

#include <string.h>

#include "util/array.h"

static const struct probe_type types[] = {
	{ "s8", NULL, 1, IS_SIGNED }, { "s16", NULL, 2, IS_SIGNED }, { "s32", NULL, 4, IS_SIGNED },
					   { "s64", NULL, 8, IS_SIGNED },
	{ "u8", NULL, 1 }, { "u16", NULL, 2 }, { "u32", NULL, 4 }, { "u64", NULL, 8 },
	{ "be16", NULL, 2, IS_SWAPPED, 2 }, { "be32", NULL, 4, IS_SWAPPED, 4 },
					   { "be64", NULL, 8, IS_SWAPPED, 8 },
	{ "text", NULL, 8, IS_TEXT },
	{ "errno", "errno", 8, IS_SIGNED | IS_ERROR, 4 | 8 },
	{ "enum", NULL, 4, IS_SIGNED | IS_NAMED, 1 | 2 | 4 | 8 },
	{ "ipv4", "ipv4", 4, 0, 4 },
	{ "ipv6", "ipv6", 8, IS_WIDE, 16 },
	{ "dev", "dev", 4, 0, 4 },
	{ "ifindex", "ifindex", 4, 0, 4 },
	{ "syscall", "syscall", 4, 0, 4 | 8 },
	{ "ksym", "ksym", 8, 0, 8 },
	{ "hex", "hex", 8, 0, 1 | 2 | 4 | 8 },
};

bool probe_type_read(struct probe *probe, const char *key, char *type, struct probe_value *value)
{
	value->bytes = 8;
	value->is_signed = true;
	if (!type)
		return true;
	if (!strncmp(type, "enum=", 5)) {
		value->constants = type + 5;
		type[4] = '\0';
	}
	value->type = array_find(types, ARRAY_SIZE(types), type);
	if (!value->type) {
		complain_of_word(probe, key, "type", type, types, ARRAY_SIZE(types));
		return false;
	}
	value->bytes = value->type->bytes;
	value->is_signed = probe_value_is(value, IS_SIGNED);
	value->text = probe_value_is(value, IS_TEXT) ? "pointer" : NULL;
	return true;
}

static bool is_number(const struct probe_value *field)
{
	return !field->text && field->bytes <= 8 && !(field->bytes & (field->bytes - 1));
}

/* field: NULL, if fields cannot be read; then neither can the event be attached. */
static bool check_type(struct probe *probe, const char *key, const struct probe_value *field,
		       const struct probe_value *value)
{
	const struct probe_type *type = value->type;
	unsigned int bytes = field ? field->bytes : 0;
	const char *more = field && is_number(field) ? " or another type" : "";

	if (type && (!type->fields || (field && field->text)))
		complain(probe, key, "\"%s:%s\": a field of a tracepoint has a type already; write %s", value->name, type->name,
			 value->name);
	else if (field && field->is_placed)
		complain(probe, key, "field \"%s\" of %s is neither a number nor a text; use another one", value->name,
			 probe->target);
	else if (!type && field && field->is_array && is_number(field))
		complain(probe, key, "field \"%s\" of %s is an array of %u byte%s, not a number; \"by\" can show it, as %s:%s",
			 value->name, probe->target, field->bytes, plural(field->bytes),
			 value->name,
			 field->bytes == 4 ? "ipv4" : "hex");
	else if (!field || (!type && (field->text || is_number(field))))
		return true;
	else if (!type && bytes == 16)
		complain(probe, key, "field \"%s\" of %s has 16 bytes, too many for a number; if it is an address, write %s:ipv6",
			 value->name, probe->target, value->name);
	else if (!type)
		complain(probe, key, "field \"%s\" of %s is neither a number nor a text; use another one", value->name,
			 probe->target);
	else if (!(type->fields & bytes) || bytes & (bytes - 1))
		complain(probe, key, "\"%s:%s\": the field has %u byte%s, too few or too many for this type; write %s%s", value->name,
			 type->name, bytes, plural(bytes), *more ? value->name : "another field", more);
	else
		return true;
	return false;
}

void probe_take_field(struct probe *probe, const char *key, struct probe_value *value)
{
	const struct probe_value *field = array_find(probe->fields.items, probe->fields.n,
						     value->name);

	probe->is_classic = true;
	if (!field && probe->fields.n)
		complain_of_word(probe, key, "field", value->name, probe->fields.items, probe->fields.n);
	else if (check_type(probe, key, field, value))
		value->from = "field";
	if (!field || !value->from)
		return;
	value->offset = field->offset;
	value->bytes = field->bytes;
	value->text = field->text;
	value->is_signed = !value->type || probe_value_is(value, IS_NAMED) ? field->is_signed :
			   value->is_signed;
}

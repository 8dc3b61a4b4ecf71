/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/setting.h"

#include <bpf/btf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/label/label.h"
#include "collector/shape.h"
#include "util/array.h"
#include "util/parse.h"
#include "util/utf8.h"

int settings_init(const struct btf *btf, const struct btf *final, const void *data, size_t size_bytes,
		  struct settings *ret_settings)
{
	_cleanup_(settings_done) struct settings settings = { .btf = btf, .size_bytes = size_bytes };
	int id = size_bytes ? btf__find_by_name_kind(final, SETTINGS_SECTION, BTF_KIND_DATASEC) : -ENOENT;
	const struct btf_type *section = id > 0 ? btf__type_by_id(final, (uint32_t)id) : NULL;
	uint32_t n = section ? btf_vlen(section) : 0;

	settings.data = malloc(size_bytes + 1);
	settings.items = calloc(n + 1, sizeof(*settings.items));
	if (!settings.data || !settings.items)
		return -ENOMEM;
	if (size_bytes)
		memcpy(settings.data, data, size_bytes);
	array_for_each (info, btf_var_secinfos(section), n) {
		const struct btf_type *variable = btf__type_by_id(btf, info->type);
		const char *name = variable ? btf__name_by_offset(btf, variable->name_off) : NULL;

		if (!name || !btf_is_var(variable) || !info->size || info->size > size_bytes ||
		    info->offset > size_bytes - info->size)
			continue;
		settings.items[settings.n++] =
			(struct setting){ name, variable->type, info->offset, info->size, NULL };
	}
	*ret_settings = settings;
	settings = (struct settings){ 0 };
	return 0;
}

void settings_done(struct settings *settings)
{
	free(settings->data);
	free(settings->items);
	*settings = (struct settings){ 0 };
}

struct setting *setting_find(const struct settings *settings, const char *name)
{
	return array_find(settings->items, settings->n, name);
}

bool setting_is_on(const struct settings *settings, const char *name)
{
	const struct setting *setting = name ? setting_find(settings, name) : NULL;

	for (uint32_t i = 0; setting && i < setting->size_bytes; i++)
		if (settings->data[setting->offset_bytes + i])
			return true;
	return !name;
}

static int set_syscalls(uint8_t *to, uint32_t size, const char *text, const char **ret_complaint)
{
	_cleanup_(freep) char *copy = strdup(text);
	_cleanup_(freep) uint8_t *bits = calloc(1, size);
	static char complaint[128];
	char *rest = copy, *part;

	if (!copy || !bits)
		return -ENOMEM;
	if (!strcmp(text, "all"))
		memset(bits, 0xff, size);
	else if (strcmp(text, "none"))
		while ((part = strsep(&rest, ", \t"))) {
			int number = *part ? label_syscall_number(part) : 0;

			if (number < 0 || (uint32_t)number / 8 >= size) {
				snprintf(complaint, sizeof(complaint),
					 "holds \"%.40s\", which is not a system call; write names like read, openat, or all, or none",
					 part);
				*ret_complaint = complaint;
				return -EINVAL;
			}
			if (*part)
				bits[number / 8] |= (uint8_t)(1 << number % 8);
		}
	memcpy(to, bits, size);
	return 0;
}

static int set_enum(const struct settings *settings, const struct field *field, uint8_t *to, const char *text,
		    const char **ret_complaint)
{
	int64_t value;

	if (shape_enum_value(settings->btf, field->type_id, text, &value)) {
		memcpy(to, &value, field->size_bytes);
		return 0;
	}
	*ret_complaint = "is not one of the names that the object has for it";
	return -EINVAL;
}

static bool is_flag(const struct settings *settings, const struct field *field)
{
	return btf_int_encoding(btf__type_by_id(settings->btf, field->type_id)) & BTF_INT_BOOL;
}

static int set_integer(const struct settings *settings, const struct field *field, uint8_t *to, const char *text,
		       const char **ret_complaint)
{
	bool flag = false;
	unsigned int unused = 64 - 8 * field->size_bytes;
	int64_t signed_number = 0;
	uint64_t number = 0;
	int err;

	if (is_flag(settings, field)) {
		err = parse_bool(text, &flag);
		number = flag;
	} else if (field->is_signed) {
		err = parse_s64(text, &signed_number);
		err = err || signed_number > INT64_MAX >> unused || signed_number < INT64_MIN >> unused;
		number = (uint64_t)signed_number;
	} else {
		err = parse_u64(text, &number) || number > UINT64_MAX >> unused;
	}
	if (err) {
		*ret_complaint = is_flag(settings, field) ? "is neither yes nor no" : "is not a whole number in the variable's range";
		return -EINVAL;
	}
	memcpy(to, &number, field->size_bytes); /* little endian, as every machine that is built for */
	return 0;
}

static int set_text(uint8_t *to, uint32_t size, const char *text, const char **ret_complaint)
{
	if (strlen(text) >= size) {
		*ret_complaint = "is too long for the variable";
		return -EINVAL;
	}
	memset(to, 0, size);
	memcpy(to, text, strlen(text));
	return 0;
}

static int set(struct settings *settings, const struct setting *setting, const char *text, const char **ret_complaint)
{
	uint8_t *to = settings->data + setting->offset_bytes;
	_cleanup_(shape_done) struct shape shape = { 0 };
	int err = shape_from_btf(settings->btf, setting->type_id, &shape, NULL);
	const struct field *field = shape.fields;

	if (err == -ENOMEM)
		return err;
	if (!err && !*field->name && shape.size_bytes == setting->size_bytes) {
		if (!strcmp(field->type_name, "prm_syscalls"))
			return set_syscalls(to, setting->size_bytes, text, ret_complaint);
		if (field->class == FIELD_INTEGER)
			return set_integer(settings, field, to, text, ret_complaint);
		if (field->class == FIELD_ENUM)
			return set_enum(settings, field, to, text, ret_complaint);
		if (field->class == FIELD_TEXT)
			return set_text(to, setting->size_bytes, text, ret_complaint);
	}
	*ret_complaint = "cannot be set: the variable is neither a number, an enum, a text nor prm_syscalls";
	return -EINVAL;
}

int setting_set(struct settings *settings, struct setting *setting, const char *text, const char **ret_complaint)
{
	int err = set(settings, setting, text, ret_complaint);

	if (!err)
		setting->text = text;
	return err;
}

static void show_syscalls(const uint8_t *bits, uint32_t size, struct buf *out)
{
	uint32_t n_set = 0;

	for (uint32_t number = 0; number < 8 * size; number++) {
		const char *name = label_syscall_name(number);

		if (name && bits[number / 8] & 1 << number % 8)
			buf_printf(out, "%s%s", n_set++ ? ", " : "", name);
	}
	if (!n_set)
		buf_append_text(out, "none");
}

/* A single number, by its type; false for any other variable. */
static bool show_number(const struct settings *settings, const struct field *field, const uint8_t *data,
			struct buf *out)
{
	uint64_t number = shape_is_number_size(field->size_bytes) ? shape_load(data, field->size_bytes) : 0;
	unsigned int unused = 64 - 8 * field->size_bytes;
	char text[128];
	const char *name;

	if (field->class == FIELD_ENUM) {
		name = shape_enum_name(settings->btf, field->type_id, (int64_t)number, text, sizeof(text));
		buf_append_text(out, name ?: "(no name)");
		return true;
	}
	if (field->class != FIELD_INTEGER)
		return false;
	if (is_flag(settings, field))
		buf_append_text(out, number ? "yes" : "no");
	else if (field->is_signed)
		buf_printf(out, "%" PRId64, (int64_t)(number << unused) >> unused);
	else
		buf_printf(out, "%" PRIu64, number);
	return true;
}

bool setting_show(const struct settings *settings, const struct setting *setting, struct buf *out)
{
	const uint8_t *data = settings->data + setting->offset_bytes;
	_cleanup_(shape_done) struct shape shape = { 0 };
	const struct field *field;

	if (setting->text) {
		buf_append_text(out, setting->text);
		return true;
	}
	if (shape_from_btf(settings->btf, setting->type_id, &shape, NULL) || *shape.fields->name ||
	    shape.size_bytes != setting->size_bytes)
		return false;
	field = shape.fields;
	if (!strcmp(field->type_name, "prm_syscalls"))
		show_syscalls(data, setting->size_bytes, out);
	else if (field->class == FIELD_TEXT)
		buf_append(out, data, strnlen((const char *)data, setting->size_bytes));
	else
		return show_number(settings, field, data, out);
	if (*buf_text(out))
		utf8_clean((char *)out->data);
	return true;
}

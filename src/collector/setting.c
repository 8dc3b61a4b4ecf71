/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/setting.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/label/label.h"
#include "collector/shape.h"
#include "util/parse.h"

int settings_init(const struct btf *btf, const struct btf *final, const void *data, size_t size_bytes,
		  struct settings *ret_settings)
{
	struct settings settings = { .btf = btf, .size_bytes = size_bytes };
	int id = size_bytes ? btf__find_by_name_kind(final, ".rodata", BTF_KIND_DATASEC) : -ENOENT;
	const struct btf_type *section = id > 0 ? btf__type_by_id(final, (uint32_t)id) : NULL;
	uint32_t n = section ? btf_vlen(section) : 0;

	settings.data = malloc(size_bytes + 1);
	settings.items = calloc(n + 1, sizeof(*settings.items));
	if (!settings.data || !settings.items) {
		settings_done(&settings);
		return -ENOMEM;
	}
	if (size_bytes)
		memcpy(settings.data, data, size_bytes);
	for (uint32_t i = 0; i < n; i++) {
		const struct btf_var_secinfo *info = &btf_var_secinfos(section)[i];
		const struct btf_type *variable = btf__type_by_id(btf, info->type);
		const char *name = variable ? btf__name_by_offset(btf, variable->name_off) : NULL;

		if (!name || !btf_is_var(variable) || !info->size || info->size > size_bytes ||
		    info->offset > size_bytes - info->size)
			continue;
		settings.items[settings.n++] =
			(struct setting){ name, variable->type, info->offset, info->size, NULL, 0, NULL };
	}
	*ret_settings = settings;
	return 0;
}

void settings_done(struct settings *settings)
{
	free(settings->data);
	free(settings->items);
	*settings = (struct settings){ 0 };
}

const struct setting *setting_find(const struct settings *settings, const char *name)
{
	for (size_t i = 0; i < settings->n; i++)
		if (!strcmp(settings->items[i].name, name))
			return &settings->items[i];
	return NULL;
}

size_t settings_names(const struct settings *settings, const char **names, size_t max)
{
	size_t n = 0;

	for (; n < settings->n && n < max; n++)
		names[n] = settings->items[n].name;
	return n;
}

bool setting_is_zero(const struct settings *settings, const struct setting *setting)
{
	for (uint32_t i = 0; i < setting->size_bytes; i++)
		if (settings->data[setting->offset_bytes + i])
			return false;
	return true;
}

uint64_t setting_number(const struct settings *settings, const struct setting *setting)
{
	if (!shape_is_number_size(setting->size_bytes))
		return 0;
	return shape_load(settings->data + setting->offset_bytes, setting->size_bytes);
}

static const char not_settable[] = "cannot be set: the variable is neither a number, an enum, a text nor prm_syscalls";

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

static int set_enum(const struct settings *settings, uint32_t type_id, uint8_t *to, uint32_t size, const char *text,
		    const char **ret_complaint)
{
	char name[128];

	if (!shape_is_number_size(size)) {
		*ret_complaint = not_settable;
		return -EINVAL;
	}
	for (int64_t value = 0; value < 1024; value++)
		if (shape_enum_name(settings->btf, type_id, value, name, sizeof(name)) && !strcmp(name, text)) {
			memcpy(to, &value, size);
			return 0;
		}
	*ret_complaint = "is not one of the names that the object has for it";
	return -EINVAL;
}

static int set_integer(const struct btf_type *type, uint8_t *to, uint32_t size, const char *text,
		       const char **ret_complaint)
{
	bool is_signed = btf_int_encoding(type) & BTF_INT_SIGNED, flag;
	int64_t number = 0, limit = size < 8 ? 1ll << (8 * size - 1) : INT64_MAX;
	uint64_t unsigned_number = 0;

	if (!shape_is_number_size(size)) {
		*ret_complaint = not_settable;
		return -EINVAL;
	}
	if (btf_int_encoding(type) & BTF_INT_BOOL) {
		*ret_complaint = "is neither yes nor no";
		if (parse_bool(text, &flag))
			return -EINVAL;
		*to = flag;
		return 0;
	}
	*ret_complaint = "is not a whole number in the variable's range";
	if (is_signed) {
		if (parse_s64(text, &number) || (size < 8 && (number < -limit || number >= limit)))
			return -EINVAL;
		unsigned_number = (uint64_t)number;
	} else if (parse_u64(text, &unsigned_number) || (size < 8 && unsigned_number >> (8 * size))) {
		return -EINVAL;
	}
	memcpy(to, &unsigned_number, size); /* little endian, as every machine that is built for */
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

int setting_set(struct settings *settings, const struct setting *setting, const char *text,
		const char **ret_complaint)
{
	uint8_t *to = settings->data + setting->offset_bytes;
	uint32_t id = setting->type_id;
	const char *typedef_name = "";
	const struct btf_type *type = shape_bare_type(settings->btf, &id, &typedef_name);

	if (type && !strcmp(typedef_name, "prm_syscalls"))
		return set_syscalls(to, setting->size_bytes, text, ret_complaint);
	if (type && btf_is_int(type))
		return set_integer(type, to, setting->size_bytes, text, ret_complaint);
	if (type && btf_is_any_enum(type))
		return set_enum(settings, id, to, setting->size_bytes, text, ret_complaint);
	if (type && shape_is_text(settings->btf, type))
		return set_text(to, setting->size_bytes, text, ret_complaint);
	*ret_complaint = not_settable;
	return -EINVAL;
}

void setting_note(struct settings *settings, const struct setting *setting, const char *text,
		  const char *path, unsigned int line)
{
	struct setting *own = &settings->items[setting - settings->items];

	own->text = text;
	own->path = path;
	own->line = line;
}

void setting_scale(struct settings *settings, const struct setting *setting, uint64_t factor, uint64_t most)
{
	uint64_t number = setting_number(settings, setting), scaled = number * factor;

	if (setting->path || number >= most)
		return;
	if (scaled > most)
		scaled = most;
	if (shape_is_number_size(setting->size_bytes))
		memcpy(settings->data + setting->offset_bytes, &scaled, setting->size_bytes);
}
